"""Cases of a reader study that are texts: the tasks of a table or a study, with their contents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.records import STUDY_SUFFIX, TaskContents
from raterscope.app.formats.sounds import media_kind
from raterscope.app.formats.sources import Source
from raterscope.app.study import Study
from raterscope.app.study.task_contents import read_all_contents


@dataclass(frozen=True)
class TextCase:
    """A task whose texts readers see.

    Attributes
    ----------
    path : Path
        Table or study.
    name : str
        Task.
    texts : dict of field to text
        In the order of the file.
    """

    path: Path
    name: str
    texts: dict[str, str]


def holds_tasks(source: Source) -> bool:
    """Return whether a file of a protocol is a table or a study of tasks, rather than an image."""
    return source.path.suffix.casefold() == STUDY_SUFFIX or find_labels(source) is not None


def read_text_cases(source: Source, watch: Watch) -> list[TextCase]:
    """Read the tasks of a table or a study.

    Raises `InputError` if it holds none with a text, or if a task names a sound or film.
    """
    path = source.path
    if path.suffix.casefold() == STUDY_SUFFIX:
        with Study.open(path, to_read=True) as study:
            contents = read_all_contents(study)
    else:
        contents = {}
        for table in read_labels(source, watch=watch):
            if isinstance(table, TaskContents):
                for name, texts in table.fields.items():
                    for task, text in texts.items():
                        contents.setdefault(task, {})[name] = text
    if not contents:
        raise InputError(
            "holds no texts of tasks; expected a column task and columns such as text, prompt, response, "
            "html or markdown",
            file=path,
        )
    for task, texts in contents.items():
        for text in texts.values():
            if kind := media_kind(text):
                raise InputError(
                    f"{plain(task)} names a {kind}, {plain(text)}; readers can be shown texts only", file=path
                )
    return [TextCase(path, task, texts) for task, texts in contents.items()]
