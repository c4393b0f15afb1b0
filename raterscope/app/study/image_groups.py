"""Groups of a study's images or tasks, and folds that keep groups together.

Groups are patients, slides or sites, from a table or from the folders of the images. They are stored as a
decision, so that they can be undone. Studies before version 22 have them as a setting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from raterscope.app.errors import InputError, StudyError, plain
from raterscope.app.formats.table_files import read_table
from raterscope.app.formats.tables import Faults, find_columns, read_names
from raterscope.app.review import Decision, GroupsSubject, ReviewState
from raterscope.app.study.records import ImageEntry
from raterscope.text import counted

if TYPE_CHECKING:
    from raterscope.app.study import Study
from raterscope.app.study.references import ImageNames

FOLDER_GROUPS = "folders"
"""Word in place of a table: groups are the images' folders."""

STORED_GROUPS = "study"
"""Word in place of a table: groups are those stored in the study."""

_FOLDS = 5


def subjects_of(study: Study, entries: Sequence[ImageEntry]) -> list[tuple[ImageEntry, str]]:
    """Return the images that are Zooniverse subjects, with the subject of each."""
    images, own = ImageNames(study.images(), study.path.parent), {entry.id: entry for entry in entries}
    found = [(images.find(name), subject) for name, subject in study.settings.subjects.items()]
    return [(own[image.id], subject) for image, subject in found if image is not None and image.id in own]


def read_groups(
    study: Study, source: Path, column: str | None = None
) -> tuple[dict[str, tuple[int, ...]], list[str]]:
    """Read the groups of a study's images by name, as numbers of images; return them and notices.

    Raises `InputError` for a table without columns of images and groups, with an image in two groups, or
    without any image of the study, and for folders if an image has no file.

    `source`: a table, "folders", or "study" for the groups that were stored with `store_groups`. `column`:
    column of the groups; by default the first with a name such as group, patient, slide or site.
    """
    entries = study.images()
    if str(source) == FOLDER_GROUPS:
        return _sorted({entry.id: _folder(study, entry) for entry in entries}), []
    if str(source) == STORED_GROUPS:
        stored = present_groups(study, study.review_state())
        if not stored:
            raise StudyError(
                "contains no groups; `raterscope import --groups TABLE` stores them", file=study.path
            )
        return _sorted(stored), []
    images = ImageNames(entries, study.path.parent)
    group_of: dict[int, str] = {}
    for line, name, group in _read_rows(source, "image", column):
        entry = images.find(name)
        if entry is not None and group_of.setdefault(entry.id, group) != group:
            raise InputError(
                f"{plain(name)} is in the groups {plain(group_of[entry.id])} and {plain(group)}",
                file=source, line=line,
            )  # fmt: skip
    if not group_of:
        raise InputError("contains none of the study's images", file=source)
    missing = len(entries) - len(group_of)
    return _sorted(group_of), [f"{counted(missing, 'image')} without a group skipped."] if missing else []


def present_groups(study: Study, state: ReviewState) -> Mapping[int, str]:
    """Return the group of each image that has one, by the study's decisions."""
    return study.settings.groups if state.groups is None else state.groups


def make_grouping(study: Study, source: Path | None) -> tuple[Decision, list[str]]:
    """Make the decision that groups a study's images, see `read_groups`; describe it in sentences.

    `source`: None for no groups.
    """
    groups, notices = ({}, []) if source is None else read_groups(study, source)
    decision = Decision(verb="group", subject=GroupsSubject(groups=groups))
    if not groups:
        return decision, ["The images have no groups now."]
    images = sum(map(len, groups.values()))
    return decision, [f"{counted(images, 'image')} in {counted(len(groups), 'group')}.", *notices]


def store_groups(study: Study, source: Path) -> list[str]:
    """Group a study's images, see `make_grouping`; describe the groups in sentences."""
    decision, sentences = make_grouping(study, source)
    study.record(decision)
    return sentences


def read_task_groups(source: Path, column: str | None = None) -> dict[str, str]:
    """Read the group of each task from a table; see `read_groups`."""
    if str(source) == FOLDER_GROUPS:
        raise InputError("tasks have no folders; give a table with the columns task and patient")
    group_of: dict[str, str] = {}
    for line, name, group in _read_rows(source, "task", column):
        if group_of.setdefault(name, group) != group:
            raise InputError(
                f"{plain(name)} is in the groups {plain(group_of[name])} and {plain(group)}",
                file=source, line=line,
            )  # fmt: skip
    return group_of


def _read_rows(source: Path, item: str, column: str | None) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and group of each row of a table. Raises `InputError` without such columns."""
    table = read_table(source)
    if column is not None and column not in table.header:
        known = ", ".join(plain(name, 30) for name in table.header[:12])
        raise InputError(f"there is no column {plain(column)}; the columns are {known}", file=source)
    fields = find_columns(table, (item,) if column else (item, "group"))
    if fields is None:
        raise InputError(f"has no columns of {item}s and groups; expected {item} and patient", file=source)
    faults = Faults(table)
    names = read_names(table, fields[item], faults)
    groups = read_names(table, column or fields["group"], faults)
    faults.refuse()
    yield from zip(table.lines, names, groups, strict=True)


def split_groups(groups: Collection[str]) -> tuple[frozenset[str], ...]:
    """Divide groups into five folds, or one for each group if fewer, always in the same way.

    A single group has none.
    """
    names = sorted(set(groups))
    order = np.random.default_rng(0).permutation(len(names))
    folds = min(len(names), _FOLDS)
    return tuple(frozenset(names[row] for row in order[k::folds]) for k in range(folds)) if folds > 1 else ()


def _folder(study: Study, entry: ImageEntry) -> str:
    path = study.locate(entry)
    if path is None:
        raise StudyError(f"{plain(entry.name)} has no file, and so no folder", file=study.path)
    return path.parent.name


def _sorted(group_of: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    groups: dict[str, list[int]] = {}
    for image, group in group_of.items():
        groups.setdefault(group, []).append(image)
    return {name: tuple(groups[name]) for name in sorted(groups, key=lambda name: (name.casefold(), name))}
