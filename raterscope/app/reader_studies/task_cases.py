"""Cases of a reader study that are tasks of a table or a study: texts, pictures, or both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.images import read_image
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.records import STUDY_SUFFIX, ImageFile, TaskContents
from raterscope.app.formats.sounds import find_media, media_kind
from raterscope.app.formats.sources import IMAGES, Source
from raterscope.app.formats.tables import UnknownColumns
from raterscope.app.study import Study
from raterscope.app.study.labels import pictures_of
from raterscope.app.study.task_contents import read_all_contents

MOST_PICTURES = 4
"""Pictures of a task."""

_PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
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
            contents = read_all_contents(study)
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
                for name, texts in read.fields.items():
                    for task, text in texts.items():
                        contents.setdefault(task, {})[name] = text
    except UnknownColumns as error:
        raise InputError(f"holds no tasks; {_EXPECTED}", file=source.path) from error
    return contents


def _pictures_of_tasks(study: Study) -> dict[str, Path]:
    """Find the pictures of tasks; raises `InputError` for one that is missing."""
    pictures: dict[str, Path] = {}
    for question in study.questions():
        tasks = study.vote_set(question.id).tasks
        for task, image in pictures_of(study, question.id).items():
            entry = study.image(image)
            path = study.locate(entry)
            if path is None:
                raise InputError(f"the picture {plain(entry.name)} is missing", file=study.path)
            pictures.setdefault(tasks[task], path)
    return pictures
