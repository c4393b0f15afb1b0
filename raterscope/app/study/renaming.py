"""Present names of structures and classes: of annotations as they are read, and of stored results.

A result has the names of its time, which are replaced by the present ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raterscope.algorithms.click_classes import sort_classes
from raterscope.algorithms.clicks.result import Fusion, SpotClasses
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.app.errors import plain
from raterscope.app.review import NAMED, Decision, Names, NameSubject
from raterscope.app.study.rows import read_marks

if TYPE_CHECKING:
    from raterscope.app.study.records import MarksRecord, RunEntry
    from raterscope.app.study.study import Study


def original_names(study: Study, kind: str) -> tuple[str, ...]:
    """List the names of structures or classes in the files, in the order of import."""
    if kind == "masks":
        with study.reading() as connection:
            rows = connection.execute(
                "SELECT structure FROM masks GROUP BY structure ORDER BY min(import), structure"
            )
            return tuple(name for (name,) in rows)
    classes: dict[str, None] = {}
    with study.reading() as connection:
        for entry in study.images():
            classes |= dict.fromkeys(read_marks(connection, study.path, entry.id, "clicks").classes)
    return tuple(classes)


def present_names(study: Study, kind: str) -> tuple[str, ...]:
    """List the present names of structures or classes."""
    names = study.shown.names(kind)
    return tuple(dict.fromkeys(names.get(name, name) for name in original_names(study, kind)))


def make_renaming(study: Study, kind: str, name: str, new: str) -> Decision:
    """Make the decision that renames a structure or class, or merges it with one that has the new name.

    Raises `ValueError` if that is not possible.
    """
    known, names, noun = present_names(study, kind), study.shown.names(kind), NAMED[kind]
    new = new.strip()
    if name not in known:
        among = ", ".join(plain(each, 30) for each in known[:8]) or "none"
        raise ValueError(f"There is no {noun} {plain(name)}; expected one of {among}.")
    if not new or new == name:
        raise ValueError(f"The new name of {noun} {plain(name)} is missing.")
    if new not in known and names.get(new, name) != name:
        raise ValueError(
            f"{plain(new)} was the name of another {noun}, which is {plain(names[new])} now. "
            "Give another name."
        )
    if new in known and kind == "masks":
        _refuse_merger(study, names, name, new)
    verb = "merge" if new in known else "rename"
    return Decision(verb=verb, subject=NameSubject(of=kind, name=name, new=new))


def _refuse_merger(study: Study, names: Names, name: str, new: str) -> None:
    """Refuse to merge structures that a rater marked on the same image."""
    with study.reading() as connection:
        rows = connection.execute("SELECT DISTINCT image, annotator, structure FROM masks").fetchall()
    drawn: dict[tuple[int, int], str] = {}
    for image, annotator, structure in rows:
        present = names.get(structure, structure)
        if present in (name, new) and drawn.setdefault((image, annotator), present) != present:
            rater = "The truth" if annotator < 0 else plain(study.annotators()[annotator], 60)
            where = plain(study.image(image).name, 60)
            raise ValueError(
                f"{rater} has a mask of {plain(name, 60)} and one of {plain(new, 60)} on {where}: "
                "they cannot be one structure."
            )


def renamed_marks(marks: MarksRecord, names: Names) -> MarksRecord:
    """Return marks with the present names of their classes; classes with one name become one."""
    if not marks.classes or names.keys().isdisjoint(marks.classes):
        return marks
    present = [names.get(name, name) for name in marks.classes]
    classes = tuple(dict.fromkeys(present))
    label = marks.label
    if label is not None:  # the last entry is for -1, a click without a class
        label = np.array([*map(classes.index, present), -1], dtype=label.dtype)[label]
    return replace(marks, classes=classes, label=label)


def with_present_names(study: Study, run: RunEntry, item: int, result: Any) -> Any:
    """Return a result with the present names; None if nothing of it is left.

    A structure that was merged or taken apart since is left out until it is fused again.
    """
    now = study.shown.names(run.kind)
    if isinstance(result, Fusion):
        classes = result.classes
        return result if classes is None or not now else replace(result, classes=_renamed(classes, now))
    if not isinstance(result, CaseResult) or study.shown.names(run.kind, run.known) == now:
        return result
    kept = []
    for fusion, report in zip(result.fusions, result.reports, strict=True):
        if new := present_structure(study, run, item, fusion.structures[0]):
            kept.append((replace(fusion, structures=(new,)), report))
    if not kept:
        return None
    return CaseResult(tuple(fusion for fusion, _ in kept), tuple(report for _, report in kept))


def present_structure(study: Study, run: RunEntry, item: int, structure: str) -> str:
    """Return the present name of a structure in the log of a run; empty if it was merged or taken apart."""
    then, now = study.shown.names("masks", run.known), study.shown.names("masks")
    if then == now:
        return structure
    originals = _structures(study, item)
    own = {name for name in originals if then.get(name, name) == structure}
    new = {now.get(name, name) for name in own}
    whole = len(new) == 1 and own == {name for name in originals if now.get(name, name) in new}
    return next(iter(new)) if whole else ""


def _structures(study: Study, image: int) -> Sequence[str]:
    with study.reading() as connection:
        rows = connection.execute(
            "SELECT DISTINCT structure FROM masks WHERE image = ? AND annotator >= 0", (image,)
        )
        return [name for (name,) in rows]


def _renamed(classes: SpotClasses, names: Names) -> SpotClasses:
    """Return classes with present names; the probabilities and votes of merged ones are added."""
    present = [names.get(name, name) for name in classes.names]
    unique = sort_classes(present)
    index = np.array([*map(unique.index, present), -1])
    joined = np.zeros((len(present), len(unique)), dtype=np.int64)
    joined[np.arange(len(present)), index[:-1]] = 1
    return replace(
        classes, names=unique, posterior=classes.posterior @ joined, votes=classes.votes @ joined,
        known=index[classes.known],
    )  # fmt: skip
