"""Files that are read once, on first use: all kinds of annotation share what was read until it is taken."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import Content, Document, Kind
from raterscope.app.formats.untrusted import json_content, read_bytes, read_xml

if TYPE_CHECKING:
    from raterscope.app.formats.labels.columns import Head
    from raterscope.app.formats.tables import Table
    from raterscope.app.formats.volumes.dicom_headers import DicomFile

__all__ = ["SUFFIXES", "File", "Source", "Sources", "open_source"]

_SNIFFED = 4096
"""Bytes by which a format is chosen whose parser is made for it."""

SUFFIXES = (".json", ".geojson", ".xml")
"""How the names of files of annotations end that are no tables."""

_HELD = 400 << 20
"""Bytes of memory that may be held at once, beside those of the file that is being read."""

_HEAD = 256 << 10
"""Bytes of a table that its head is made of."""

_OBJECTS = 6
"""Bytes of memory for a byte of a file that was decoded into objects."""


class Source:
    """A file that is read once: as a document of annotations, or as a table.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._known: dict[str, Any] = {}

    def document(self) -> Document | None:
        """Parse the file, or give what was parsed before; None for a format that is not known.

        Raises
        ------
        InputError
            For a file that cannot be read; the same one each time.
        """
        return cast("Document | None", self._once("document", lambda: _parse(self.path)))

    def head(self) -> Head:
        """Read the first rows of a table, or give them again.

        Raises
        ------
        InputError
            For a file that is no table; the same one each time.
        """
        from raterscope.app.formats.labels.columns import head_of

        return cast("Head", self._once("head", lambda: head_of(self.path)))

    def table(self, watch: Watch = silent) -> Table:
        """Read a whole table, or give it again.

        Raises
        ------
        InputError
            For a file that is no table; the same one each time.
        """
        from raterscope.app.formats.tables import read_table

        return cast("Table", self._once("table", lambda: read_table(self.path, watch)))

    def dicom(self) -> DicomFile | None:
        """Read the head of a DICOM file, or give it again; None for a file that is no DICOM."""
        from raterscope.app.formats.volumes.dicom_headers import read_dicom

        return cast("DicomFile | None", self._once("dicom", lambda: read_dicom(self.path)))

    def _once(self, name: str, make: Callable[[], object]) -> object:
        if name not in self._known:
            try:
                self._known[name] = make()
            except InputError as error:
                error.__cause__ = error.__context__ = None  # whose frames hold all of the file
                self._known[name] = error
        found = self._known[name]
        if isinstance(found, InputError):
            raise found.with_traceback(None)
        return found

    def contents(self, kind: Kind) -> frozenset[Content] | None:
        """Find which sorts of annotations the file holds; None for a format that cannot hold a kind's.

        Parameters
        ----------
        kind : Kind

        Raises
        ------
        InputError
            As `document`.
        """
        document = self.document()
        if document is None or kind not in document.expected:
            return None
        return cast("frozenset[Content]", self._once("contents", document.contents))

    @property
    def memory(self) -> int:
        """Bytes that are held, about."""
        try:
            size = self.path.stat().st_size if self._known else 0
        except OSError:
            return 0
        document = self._known.get("document")
        taken = _OBJECTS * (min(size, _HEAD) * ("head" in self._known) + size * ("table" in self._known))
        if isinstance(document, Document):
            taken += size if document.is_text else _OBJECTS * size
        return taken

    def release(self) -> None:
        """Drop what was read; if it is needed again, the file is read again."""
        self._known.clear()


File = Path | str | Source


def open_source(file: File) -> Source:
    """Give the source of a file that may be open already."""
    return file if isinstance(file, Source) else Source(file)


class Sources:
    """The files of one import, so that sorting them and taking from them reads each once.

    What was read is held until it is released. Once that takes more than 400 MB, those that came later are
    read a second time when they are taken, which bounds the memory.

    Parameters
    ----------
    is_lasting : bool
        Whether to hold what was released too, within that bound, because the same files may be read again:
        after a question to the user.
    """

    def __init__(self, *, is_lasting: bool = False) -> None:
        self._is_lasting = is_lasting
        self._open: dict[Path, Source] = {}
        self._memory: dict[Path, int] = {}
        self._total = 0
        self._last: Path | None = None

    def open(self, path: Path) -> Source:
        """Give the source of a file, the same one until it is released."""
        if path != self._last and self._last is not None and self._is_full(self._last):
            self._drop(self._last)
        self._last = path
        return self._open.setdefault(path, Source(path))

    def release(self, path: Path) -> None:
        """Drop what was read of a file."""
        if not self._is_lasting or self._is_full(path):
            self._drop(path)

    def keep(self, paths: Collection[Path]) -> None:
        """Drop what was read of all files but these."""
        kept = set(paths)
        for path in [path for path in self._open if path not in kept]:
            self.release(path)

    def close(self) -> None:
        """Drop everything."""
        for path in list(self._open):
            self._drop(path)

    def _is_full(self, path: Path) -> bool:
        """Count what a file takes by now, and tell whether all take more than may be held."""
        if path in self._open:
            memory = self._open[path].memory
            self._total += memory - self._memory.get(path, 0)
            self._memory[path] = memory
        return self._total > _HELD

    def _drop(self, path: Path) -> None:
        self._total -= self._memory.pop(path, 0)
        source = self._open.pop(path, None)
        if source is not None:
            source.release()


def _parse(path: Path) -> Document | None:
    """Parse a JSON or XML file; None for a format that is not known."""
    from raterscope.app.formats import coco, cvat, geojson, label_studio, labelme
    from raterscope.app.formats.points import tables

    if path.suffix.casefold() == ".xml":
        root = read_xml(path)
        if root.tag == "LidcReadMessage":
            from raterscope.app.formats.masks.lidc import LidcDocument

            return LidcDocument(root)
        return cvat.CvatDocument(path, root) if root.tag == "annotations" else None
    text = read_bytes(path)
    may_be_scores = tables.may_hold_scores(text)
    if coco.sniff(text[:_SNIFFED]) and (typed := coco.parse(path, text)) is not None:
        return (tables.recognize(typed) if may_be_scores else None) or typed
    content = json_content(path, text)
    if may_be_scores and (scored := tables.recognize(content)) is not None:
        return scored
    formats = (geojson, coco, label_studio, labelme)
    documents = (one.recognize(path, content) for one in formats)
    return next((document for document in documents if document is not None), None)
