"""Cases of a reader study that are tasks or comparisons of a table or a study: texts, pictures, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.images import read_image
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.pairs import has_pairs, read_pairs
from raterscope.app.formats.records import STUDY_SUFFIX, ImageFile, PairTable, TaskContents
from raterscope.app.formats.sounds import find_media, media_kind
from raterscope.app.formats.sources import IMAGES, Source
from raterscope.app.formats.tables import UnknownColumns
from raterscope.app.study import Study
from raterscope.app.study.labels import pictures_of, read_all_contents, split_comparison
from raterscope.app.study.pairs import item_pictures
from raterscope.app.study.vote_sets import ComparisonSet

MOST_PICTURES = 4
"""Pictures of a task."""

_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
_EXPECTED_ANSWERS = "expected columns such as prompt, response_a and response_b, or pictures of the items"
_EXPECTED = (
    "expected a column task and columns such as text, prompt, response, html or markdown, or with pictures"
)


@dataclass(frozen=True)
class TaskCase:
    """A task that readers see."""

    path: Path  # table or study
    name: str  # task
    texts: dict[str, str]  # by field: in the order of the file, without the names of pictures
    images: tuple[ImageFile, ...]


class ItemCase(TaskCase):
    """An item of a comparison, which has the same name in every file."""


@dataclass(frozen=True)
class ComparisonCase:
    """A comparison that readers see.

    Attributes
    ----------
    task : str
        What the items are compared on; empty without tasks.
    texts : dict of field to text
        That both items have in common.
    """

    items: tuple[ItemCase, ItemCase]
    task: str = ""
    texts: dict[str, str] = field(default_factory=dict)


def holds_comparisons(source: Source) -> bool:
    """Return whether a file of a protocol is a table of comparisons, or a study with some."""
    if source.path.suffix.casefold() != STUDY_SUFFIX:
        return source.format not in IMAGES and has_pairs(source)
    with Study.open(source.path, to_read=True) as study:
        return bool(study.pair_questions())


def read_comparison_cases(source: Source, watch: Watch) -> list[ComparisonCase]:
    """Read the comparisons of a table or a study, each once, without their answers.

    Raises `InputError` if an item has neither a text nor a picture.
    """
    path = source.path
    cases: dict[tuple[str, frozenset[str]], ComparisonCase] = {}
    if path.suffix.casefold() == STUDY_SUFFIX:
        with Study.open(path, to_read=True) as study:
            for question in study.pair_questions():
                compared = study.comparison_set(question.id)
                pictures = {compared.items[item]: _picture_path(study, image)
                            for item, image in item_pictures(study, question.id).items()}  # fmt: skip
                contents = read_all_contents(study, [question.id])
                _add_comparisons(cases, path, compared, contents, pictures)
        return list(cases.values())
    for table in read_pairs(source, None, watch):
        contents = {} if table.contents is None else _by_task(table.contents)
        pictures = {
            name: file
            for number, name in enumerate(table.items)
            if (named := table.pictures.get(number, name)) and _names_picture(named)
            and (file := find_media(named, path.parent))
        }  # fmt: skip
        _add_comparisons(cases, path, table, contents, pictures)
    return list(cases.values())


def _add_comparisons(
    cases: dict[tuple[str, frozenset[str]], ComparisonCase],
    path: Path,
    compared: PairTable | ComparisonSet,
    contents: Mapping[str, Mapping[str, str]],
    pictures: Mapping[str, Path],
) -> None:
    """Add the comparisons that are new."""
    images = {name: read_image(file) for name, file in pictures.items()}
    items = set(compared.items)
    task = np.full(len(compared.left), -1) if compared.task is None else compared.task
    distinct = np.unique(np.stack([task, np.sort(np.stack([compared.left, compared.right]), axis=0)[0],
                                   np.maximum(compared.left, compared.right)], axis=1), axis=0)  # fmt: skip
    for number, left, right in distinct.tolist():
        name = "" if number < 0 else compared.tasks[number]
        names = compared.items[left], compared.items[right]
        texts, *answers = split_comparison(contents.get(name, {}), *names, items)
        if not any(answers):
            answers = ["\n\n".join(contents.get(item, {}).values()) for item in names]
        for item, answer in zip(names, answers, strict=True):
            if not answer and item not in images:
                raise InputError(
                    f"{plain(item)} has neither a text nor a picture; {_EXPECTED_ANSWERS}", file=path
                )
        first, second = (
            ItemCase(
                path, item, {"text": answer} if answer else {}, (images[item],) if item in images else ()
            )
            for item, answer in zip(names, answers, strict=True)
        )
        cases.setdefault((name, frozenset(names)), ComparisonCase((first, second), name, texts))


def holds_tasks(source: Source) -> bool:
    """Return whether a file of a protocol is a table or a study of tasks, rather than an image."""
    if source.path.suffix.casefold() == STUDY_SUFFIX:
        return True
    if source.format in IMAGES:
        return False
    try:
        source.head()
    except InputError:
        return find_labels(source) is not None
    return True


def read_task_cases(source: Source, watch: Watch) -> list[TaskCase]:
    """Read the tasks of a table or a study.

    Raises `InputError` if it holds none with a text or picture, if a picture is missing, or if a task names a
    sound or film.
    """
    path = source.path
    pictures: dict[str, Path] = {}
    if path.suffix.casefold() == STUDY_SUFFIX:
        with Study.open(path, to_read=True) as study:
            contents = read_all_contents(study, [question.id for question in study.questions()])
            pictures = _pictures_of_tasks(study)
    else:
        contents = _contents_of_table(source, watch)
    tasks = list(dict.fromkeys([*contents, *pictures]))
    if not tasks:
        raise InputError(f"holds no tasks with texts or pictures; {_EXPECTED}", file=path)
    return [_case(path, task, contents.get(task, {}), pictures.get(task)) for task in tasks]


def _case(path: Path, task: str, contents: dict[str, str], picture: Path | None) -> TaskCase:
    texts, pictures = {}, [] if picture is None else [picture]
    for name, text in contents.items():
        if kind := media_kind(text):
            raise InputError(
                f"{plain(task)} names a {kind}, {plain(text)}; readers can be shown texts and pictures only",
                file=path,
            )
        file = find_media(text, path.parent) if _names_picture(text) else None
        if file is not None:
            pictures.append(file)
        elif _names_picture(text):
            raise InputError(f"{plain(task)}: there is no picture {plain(text, 200)}", file=path)
        else:
            texts[name] = text
    if len(pictures) > MOST_PICTURES:
        raise InputError(f"{plain(task)} has {len(pictures)} pictures; at most {MOST_PICTURES}", file=path)
    return TaskCase(path, task, texts, tuple(map(read_image, pictures)))


def _names_picture(text: str) -> bool:
    return text.casefold().endswith(_PICTURES) and "\n" not in text and "://" not in text


def _contents_of_table(source: Source, watch: Watch) -> dict[str, dict[str, str]]:
    """Read the contents of tasks by field; columns with names of pictures are among them."""
    contents: dict[str, dict[str, str]] = {}
    try:
        table = source.records().table if source.path.suffix.casefold() == ".json" else source.first_rows()
        pictures = {
            name: "content"
            for name, cells in zip(table.header, table.columns, strict=True)
            if name != table.header[0] and any(cells) and all(_names_picture(cell) for cell in cells if cell)
        }
        for read in read_labels(source, pictures, watch):
            if isinstance(read, TaskContents):
                for task, texts in _by_task(read).items():
                    contents.setdefault(task, {}).update(texts)
    except UnknownColumns as error:
        raise InputError(f"holds no tasks; {_EXPECTED}", file=source.path) from error
    return contents


def _by_task(contents: TaskContents) -> dict[str, dict[str, str]]:
    """Return contents by task and field."""
    return {
        task: {name: texts[task] for name, texts in contents.fields.items() if task in texts}
        for task in contents.tasks
    }


def _picture_path(study: Study, image: int) -> Path:
    """Find a picture; raises `InputError` if it is missing."""
    entry = study.image(image)
    path = study.locate(entry)
    if path is None:
        raise InputError(f"the picture {plain(entry.name)} is missing", file=study.path)
    return path


def _pictures_of_tasks(study: Study) -> dict[str, Path]:
    """Find the pictures of tasks; raises `InputError` for one that is missing."""
    pictures: dict[str, Path] = {}
    for question in study.questions():
        tasks = study.vote_set(question.id).tasks
        for task, image in pictures_of(study, question.id).items():
            pictures.setdefault(tasks[task], _picture_path(study, image))
    return pictures
