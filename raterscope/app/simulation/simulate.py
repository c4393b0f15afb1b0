"""Simulate a set-up into a new folder: whole or not at all, and never over what is there."""

from __future__ import annotations

import json
import shlex
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from raterscope import __version__
from raterscope.algorithms.errors import RefusedError
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.algorithms.settings import Settings
from raterscope.app.errors import InputError
from raterscope.app.formats.drafts import draft_for
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.masks.reading import MaskReading
from raterscope.app.simulation.setups import Setup, check_size
from raterscope.app.simulation.tables import WRITERS, Drawn
from raterscope.app.study.labels import set_scheme
from raterscope.app.study.new_study import new_study
from raterscope.app.study.records import Scheme

__all__ = ["RECORD", "check_folder", "commands_in_words", "simulate", "study_in"]

RECORD = "simulation.json"
_README = "README.txt"
_TEXT = """\
Simulated by Raterscope {version}: {title}. Nothing here comes from a person.
{summary}

{parameters}

{files}
In this folder:

{commands}
"""


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something, and a file.

    Raises
    ------
    InputError
    """
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        what = "is not empty" if folder.is_dir() else "is a file"
        raise InputError(f"{what}; expected a new or empty folder, nothing is overwritten", file=folder)


def simulate(setup: Setup, settings: Settings, folder: Path, watch: Watch = silent) -> Drawn:
    """Draw a set-up and write it into a folder that is new or empty.

    Parameters
    ----------
    setup : Setup
    settings : Settings
        Of the set-up's own class.
    folder : Path
        Appears when all is written; after a failure or `Cancelled` nothing is left.
    watch : Watch

    Returns
    -------
    Drawn
        The files.

    Raises
    ------
    InputError
        Where the folder cannot be taken, too much is asked for, or the parameters contradict each other.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from raterscope.app.simulation.setups import find_setup
    >>> setup = find_setup("voting")
    >>> with tempfile.TemporaryDirectory() as place:
    ...     drawn = simulate(setup, setup.settings(), Path(place) / "votes")
    >>> [path.name for path in drawn.data + drawn.truth]
    ['labels.csv', 'truth.csv']
    """
    check_size(setup, settings)
    check_folder(folder)
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = draft_for(folder.absolute())
        draft.mkdir()
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", file=folder) from error
    try:
        try:
            drawn = WRITERS[setup.name](settings, draft, part(watch, 0.0, 0.95))
        except RefusedError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from error
        _describe(setup, settings, drawn, draft)
        watch(0.95, "finishing")
        check_folder(folder)  # it may have been filled meanwhile
        if folder.is_dir():
            folder.rmdir()
        draft.rename(folder)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=folder) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return _moved(drawn, folder)


def study_in(setup: Setup, drawn: Drawn, watch: Watch = silent) -> Path:
    """Import what was simulated, and its truth, into a study in the same folder.

    Returns
    -------
    Path
        The study.
    """
    path = drawn.data[0].parent / f"{setup.name}.rscope"
    reading = MaskReading(structure="prostate") if setup.kind == "masks" else MaskReading()
    readings = read_files([*drawn.data, *drawn.truth], reading=reading, watch=part(watch, 0.0, 0.5))
    with new_study(path) as study:
        store(readings, study, part(watch, 0.5, 0.95))
        if drawn.radius is not None:
            study.settings.set_matching_radius(drawn.radius)
        if drawn.classes:
            outputs = tuple(drawn.classes)
            classes = tuple(dict.fromkeys(drawn.classes.values()))
            meaning = tuple(classes.index(one) for one in drawn.classes.values())
            for question in study.questions():
                set_scheme(study, question.id, Scheme(outputs, classes, meaning))
    return path


def commands_in_words(setup: Setup, drawn: Drawn, folder: Path) -> list[str]:
    """Give the commands that fuse what was simulated, compare it with the truth, and make a study."""

    def at(name: str) -> str:
        return shlex.quote(str(folder / name))

    def all_of(pattern: str) -> str:
        """Quote a folder, and leave the pattern in it to the shell."""
        return f"{shlex.quote(str(folder))}/{pattern}" if folder != Path() else pattern

    fuse = ["raterscope fuse", setup.kind]
    if setup.kind == "masks":
        fuse += [all_of("prostate_reader_*.nii.gz"), "--image", at(drawn.data[0].name)]
        fuse += ["--structure prostate"]
    else:
        fuse += [at(one.name) for one in drawn.data]
    fuse += [f"--truth {at(one.name)}" for one in drawn.truth]
    if drawn.radius is not None:
        fuse.append(f"--radius {drawn.radius:g}")
    if drawn.classes:
        fuse.append("--outputs=" + ",".join(drawn.classes))
        fuse.append("--classes " + shlex.quote(",".join(dict.fromkeys(drawn.classes.values()))))
        stands = (shlex.quote(f"{one}={other}") for one, other in drawn.classes.items())
        fuse.append("--stands " + " ".join(stands))
    fuse.append(f"-o {at('fused')}")
    given = " ".join(at(one.name) for one in (*drawn.data, *drawn.truth))
    if setup.kind == "masks":
        given = f"{all_of('prostate*.nii.gz')} --structure prostate"
    return [" ".join(fuse), f"raterscope import {at(f'{setup.name}.rscope')} {given}"]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _describe(setup: Setup, settings: Settings, drawn: Drawn, folder: Path) -> None:
    """Write what was simulated, for people and for programs."""
    record: dict[str, Any] = {
        "simulated": True,
        "setup": setup.name,
        "kind": setup.kind,
        "parameters": settings.as_dict(),
        "raterscope": __version__,
        "data": [one.name for one in drawn.data],
        "truth": [one.name for one in drawn.truth],
        "also_true": [one.name for one in drawn.beside],
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    text = _TEXT.format(
        version=__version__, title=setup.title.lower(), summary=_wrapped(setup.summary),
        parameters=_wrapped(f"Parameters: {settings.in_words()}."),
        files="".join(
            f"{words:<14}{', '.join(one.name for one in files)}\n"
            for words, files in (("data", drawn.data), ("truth", drawn.truth), ("also true", drawn.beside))
            if files
        ),
        commands="\n".join(commands_in_words(setup, drawn, Path())),
    )  # fmt: skip
    (folder / _README).write_text(text, encoding="utf-8")


def _moved(drawn: Drawn, folder: Path) -> Drawn:
    def here(paths: Sequence[Path]) -> tuple[Path, ...]:
        return tuple(folder / path.name for path in paths)

    return replace(drawn, data=here(drawn.data), truth=here(drawn.truth), beside=here(drawn.beside))
