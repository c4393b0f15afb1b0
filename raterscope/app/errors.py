"""Errors in the user's files: one sentence with file, line and field."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from raterscope.text import counted, listed

_LONGEST = 80

_EXTRAS = {
    "sklearn": ("scikit-learn", "full"),
    "imagecodecs": ("imagecodecs", "full"),
    "pydicom": ("pydicom", "full"),
    "highdicom": ("highdicom", "full"),
    "nibabel": ("nibabel", "full"),
    "nrrd": ("pynrrd", "full"),
    "python_calamine": ("python-calamine", "full"),
    "PySide6": ("PySide6-Essentials", "app"),
    "shtab": ("shtab", "app"),
    "argparse_manpage": ("argparse-manpage", "app"),
    "dicomweb_client": ("dicomweb-client", "pacs"),
    "pynetdicom": ("pynetdicom", "pacs"),
}
"""By module name: the package, and the extra that installs it."""


class InputError(Exception):
    """Error about input that cannot be used.

    `what`: end of the sentence: the problem, and what was expected.
    `file`: the file; its name alone is shown.
    `line`: line in the file, from 1.
    `field`: column or element.
    `is_question`: whether an answer of the user resolves it.
    """

    is_question = False

    def __init__(
        self, what: str, *, file: Path | str | None = None, line: int | None = None, field: str | None = None
    ) -> None:
        self.what = what
        self.file = None if file is None else Path(file)
        self.line = line
        self.field = field
        super().__init__(str(self))

    def __str__(self) -> str:
        where = []
        if self.file is not None:
            where.append(plain(self.file.name or str(self.file), 200))
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.field is not None:
            where.append(f"field {plain(self.field)}")
        message = self.what if self.what.endswith((".", "?", "!")) else self.what + "."
        return f"{', '.join(where)}: {message}" if where else message


class StudyError(InputError):
    """A study that cannot be opened, read or written."""


class InUseError(StudyError):
    """A study that cannot be locked: another program has it open, or its disk has no locks."""


class UnwrittenError(StudyError):
    """A failed write that changed nothing and can be repeated, here or elsewhere."""


class SkippedFiles:
    """Files of an import that cannot be read and are skipped, unless they are `required`."""

    def __init__(self, required: Collection[Path] = ()) -> None:
        self.required = frozenset(required)
        self.errors: list[InputError] = []

    @contextmanager
    def reading(self, path: Path) -> Iterator[None]:
        """Collect the error of a file that may be skipped."""
        try:
            yield
        except InputError as error:
            if path in self.required or error.is_question:
                raise
            self.errors.append(error)


class TableProblems(InputError):  # noqa: N818 - several errors in one
    """A table with problems; the message has the first, the command line lists all."""

    def __init__(self, file: Path, problems: Sequence[str], consequence: str = "") -> None:
        self.problems = tuple(problems)  # a sentence for each, with its line
        more = f" and {counted(len(problems) - 1, 'more problem')}" if len(problems) > 1 else ""
        super().__init__(f"{problems[0].rstrip('.')}{more}{consequence}", file=file)


def refuse_unknown(names: Iterable[str], known: Iterable[str], act: str) -> None:
    """Refuse unknown names of annotators.

    Raises `InputError` for the first unknown name, with some of the known ones.
    """
    present = dict.fromkeys(known)
    for name in names:
        if name not in present:
            raise InputError(
                f"there is no annotator {plain(name)} to {act}; expected one of {plain_names(present)}"
            )


DISK_FULL = "the disk is full"
FREE_SPACE = "free space on it, then try again"


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether the disk or the user's quota is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def system_reason(error: OSError) -> str:
    """Return the system's reason for an error, with the next step where it is known.

    Examples
    --------
    >>> system_reason(OSError(errno.ENOSPC, "No space left on device"))
    'the disk is full; free space on it, then try again'
    >>> system_reason(OSError(errno.EROFS, "Read-only file system"))
    'the disk is read-only; choose another folder'
    """
    if error.errno == errno.EROFS:
        return "the disk is read-only; choose another folder"
    return f"{DISK_FULL}; {FREE_SPACE}" if is_disk_full(error) else error.strerror or str(error)


def missing_package(error: Exception) -> str | None:
    """Name the package that is not installed; None if the error has another cause.

    Examples
    --------
    >>> missing_package(ModuleNotFoundError("No module named 'nrrd'", name="nrrd"))
    "this needs pynrrd, which is not installed; `pip install 'raterscope[full]'` installs it"
    """
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name not in _EXTRAS:
        return None
    package, extra = _EXTRAS[name]
    return f"this needs {package}, which is not installed; `pip install 'raterscope[{extra}]'` installs it"


def plain_names(names: Iterable[object], most: int = 8, longest: int = 30) -> str:
    """Make a list of untrusted names safe within a sentence: the first ones, and the number of others."""
    return listed([plain(name, longest) for name in names], most)


def plain(text: object, longest: int = _LONGEST) -> str:
    """Make untrusted text safe within a sentence: one printable line of limited length."""
    printable = str(text)
    if not printable.isprintable():
        printable = "".join(
            letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in printable
        )
    return printable if len(printable) <= longest else printable[: longest - 1] + "…"
