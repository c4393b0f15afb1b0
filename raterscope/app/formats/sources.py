"""Files that are read once: parsed on first use, shared by all kinds of annotation, released when taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import Content, Document, Kind
from raterscope.app.formats.strangers import json_content, read_bytes, read_xml

__all__ = ["SUFFIXES", "File", "LidcDocument", "Source", "Sources", "open_source"]

_SNIFFED = 4096
"""Bytes by which a format is chosen whose parser is made for it."""

SUFFIXES = (".json", ".geojson", ".xml")
"""How the names of files of annotations end that are no tables."""

_HELD = 64 << 20
"""Bytes of files whose content is held at once, beside the file that is being read."""


class Source:
    """A file of annotations that is parsed at most once while it is held.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._parsed: tuple[Document | None] | InputError | None = None
        self._contents: frozenset[Content] | None = None

    def document(self) -> Document | None:
        """Parse the file, or give what was parsed before; None for a format that is not known.

        Raises
        ------
        InputError
            For a file that cannot be read; the same one each time.
        """
        if self._parsed is None:
            try:
                self._parsed = (_parse(self.path),)
            except InputError as error:
                error.__cause__ = error.__context__ = None  # whose frames hold all of the file
                self._parsed = error
        if isinstance(self._parsed, InputError):
            raise self._parsed.with_traceback(None)
        return self._parsed[0]

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
        if self._contents is None:
            self._contents = document.contents()
        return self._contents

    def release(self) -> None:
        """Drop what was parsed; if it is needed again, the file is read again."""
        self._parsed = self._contents = None


File = Path | str | Source


def open_source(file: File) -> Source:
    """Give the source of a file that may be open already."""
    return file if isinstance(file, Source) else Source(file)


class Sources:
    """The files of one import, so that whoever sorts them and whoever reads them parse each once.

    Small files stay parsed until they are released. Of more than 64 MB in all, those that came later are
    parsed a second time when they are read, which bounds the memory.
    """

    def __init__(self) -> None:
        self._open: dict[Path, Source] = {}
        self._sizes: dict[Path, int] = {}
        self._last: Path | None = None

    def open(self, path: Path) -> Source:
        """Give the source of a file, the same one until it is released."""
        if path != self._last and self._last is not None and sum(self._sizes.values()) > _HELD:
            self.release(self._last)
        self._last = path
        if path not in self._open:
            self._open[path] = Source(path)
            try:
                self._sizes[path] = path.stat().st_size
            except OSError:
                self._sizes[path] = 0
        return self._open[path]

    def release(self, path: Path) -> None:
        """Drop what was parsed of a file."""
        source = self._open.pop(path, None)
        self._sizes.pop(path, None)
        if source is not None:
            source.release()

    def keep(self, paths: Collection[Path]) -> None:
        """Drop what was parsed of all files but these."""
        kept = set(paths)
        for path in [path for path in self._open if path not in kept]:
            self.release(path)


class LidcDocument(Document):
    """A file of LIDC-IDRI, whose contours lie in a volume: `masks.lidc` reads it with the series at hand.

    Attributes
    ----------
    root : xml.etree.ElementTree.Element
    """

    expected: ClassVar[Mapping[Kind, str]] = {"masks": "reading sessions of a CT"}

    def __init__(self, root: Any) -> None:
        self.root = root


def _parse(path: Path) -> Document | None:
    """Parse a JSON or XML file; None for a format that is not known."""
    from raterscope.app.formats import coco, cvat, geojson, label_studio, labelme

    if path.suffix.casefold() == ".xml":
        root = read_xml(path)
        if root.tag == "LidcReadMessage":
            return LidcDocument(root)
        return cvat.CvatDocument(path, root) if root.tag == "annotations" else None
    text = read_bytes(path)
    if coco.sniff(text[:_SNIFFED]) and (typed := coco.parse(path, text)) is not None:
        return typed
    content = json_content(path, text)
    formats = (geojson, coco, label_studio, labelme)
    documents = (one.recognize(path, content) for one in formats)
    return next((document for document in documents if document is not None), None)
