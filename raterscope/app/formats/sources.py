"""Files that are sniffed once and parsed once for all kinds of annotation.

Sniffing opens a file, reads its first bytes, detects the format, and reads the header: the size of an image,
the geometry of a volume, the first rows of a table. Parsing opens the file again and reads its content.
Annotations in JSON and XML are parsed without sniffing. A format is detected by the file's first bytes and,
for voxels, by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from raterscope.algorithms.plugins import load
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import AnnotationFormat, Content, Document, Kind
from raterscope.app.formats.signatures import IMAGES, SNIFFED, VOXELS, Format, format_of, refuse_unread
from raterscope.app.formats.untrusted import json_content, read_bytes, read_xml, refuse_special

if TYPE_CHECKING:
    from raterscope.app.formats.image_heads import ImageHead
    from raterscope.app.formats.masks.label_maps import LabelMap
    from raterscope.app.formats.table_files import Head
    from raterscope.app.formats.tables import Table
    from raterscope.app.formats.volumes.dicom_headers import DicomFile
    from raterscope.app.formats.volumes.voxel_files import VoxelHead


_ANNOTATIONS = (".json", ".geojson", ".xml")


@cache
def _formats_of_plugins() -> dict[str, tuple[str, AnnotationFormat]]:
    """Return the plugins that read further formats, with their names, by file suffix."""
    return {
        ending: (name, plugin)
        for name, plugin in load("raterscope.formats", AnnotationFormat).items()
        for ending in plugin.endings
    }


def is_of_plugin(path: Path) -> bool:
    """Return whether a file has the suffix of a plugin's format."""
    return path.suffix.casefold() in _formats_of_plugins()


def may_hold_annotations(path: Path) -> bool:
    """Return whether a file has a suffix of annotations that are not tables."""
    return path.suffix.casefold() in _ANNOTATIONS or is_of_plugin(path)


_MAX_MEMORY = 400 << 20
"""Maximum memory for parsed contents, in addition to the file that is being read, bytes."""

_HEAD = 256 << 10
"""Number of bytes of a table from which its head is read."""

_OBJECTS = 6
"""Memory for each byte of a file that was decoded into objects, bytes."""


class Source:
    """File whose header and content are read once each."""

    __slots__ = ("_contents", "_format", "_headers", "_start", "path")

    def __init__(self, path: Path | str) -> None:
        self.path = path if isinstance(path, Path) else Path(path)
        self._format: Format | None = None
        self._start = b""
        self._headers: dict[str, Any] = {}
        self._contents: dict[str, Any] = {}

    @property
    def format(self) -> Format:
        """Format by the first bytes; empty for text, an unknown format, and a file that cannot be opened.

        Raises `InputError` for a study, a pipe, a device, and a name that is not UTF-8.
        """
        if self._format is None:
            refuse_special(self.path)
            try:
                with self.path.open("rb") as file:
                    self._start = file.read(SNIFFED)
                    self._format = format_of(self.path, self._start)
                    name = _header_of(self._format, self._start)
                    if name is not None:
                        file.seek(0)
                        with suppress(InputError):  # raised again when the header is used
                            self._once(name, partial(_read, name, self.path, self._format, file))
            except OSError:
                self._format = ""
        return self._format

    def refuse_unread(self) -> None:
        """Raise `InputError` for a file of an annotation tool that is not read."""
        suffix = self.path.suffix.casefold()
        if suffix in _ANNOTATIONS:  # parsed in any case
            with suppress(InputError):  # raised again when the file is read
                if self.document() is not None:
                    return
        if self.format == "" and not is_of_plugin(self.path):
            refuse_unread(self.path, self._start)

    def is_image(self) -> bool:
        """Return whether the file is an image, by its first bytes."""
        try:
            return self.format in IMAGES
        except InputError:
            return False

    def image(self) -> ImageHead:
        """Read the header of an image.

        Raises `InputError` for any other file, and a damaged one; the same error each time.
        """
        return cast("ImageHead", self._header("image"))

    def dicom(self) -> DicomFile | None:
        """Read the header of a DICOM file; None for any other file."""
        return cast("DicomFile | None", self._header("dicom") if self.format == "DICOM" else None)

    def voxels(self) -> VoxelHead:
        """Read the header of a NIfTI, NRRD or MetaImage file.

        Raises `InputError` for any other file, and a damaged one; the same error each time.
        """
        return cast("VoxelHead", self._header("voxels"))

    def head(self) -> Head:
        """Read the first rows of a table.

        Raises `InputError` for a file that is not a table; the same error each time.
        """
        return cast("Head", self._header("table head"))

    def records(self) -> Head:
        """Read a JSON list of records as a table.

        Raises `InputError` for a file that is not one; the same error each time.
        """
        from raterscope.app.formats.table_files import records_head

        return cast("Head", self._once("records", lambda: records_head(self.path)))

    def first_rows(self) -> Table:
        """Return the first rows of a table that has been read, without reading it again."""
        parts = [self._contents.get(name) for name in ("table", "table head", "records")]
        read = next((part for part in parts if part is not None and not isinstance(part, InputError)), None)
        if read is None:
            read = self.head()
        return cast("Table", getattr(read, "table", read))

    def _header(self, name: str) -> object:
        return self._once(name, partial(_read, name, self.path, self.format))

    def document(self) -> Document | None:
        """Parse a file of annotations; None for an unknown format.

        Raises `InputError` for a file that cannot be read; the same error each time.
        """
        return cast("Document | None", self._once("document", lambda: _parse(self.path)))

    def table(self, watch: Watch = silent, *, may_be_empty: bool = False) -> Table:
        """Read a complete table, which may be without rows if it may be empty.

        Raises `InputError` for a file that is not a table; the same error each time.
        """
        from raterscope.app.formats.json_lines import is_json_lines
        from raterscope.app.formats.table_files import read_table

        def read() -> Table:
            if self.format == "" and is_json_lines(self.path, self._start):
                return self.head().table
            return read_table(self.path, watch, may_be_empty=True, is_parquet=self.format == "Parquet")

        table = cast("Table", self._once("table", read))
        if not may_be_empty and not len(table):
            raise InputError("has a header but no rows", file=self.path)
        return table

    def label_map(self, watch: Watch = silent) -> LabelMap:
        """Read the voxels of a file that may be a mask.

        Raises `InputError` for a file that cannot be read; the same error each time.
        """
        from raterscope.app.formats.masks.label_maps import is_plain_image, read_values

        def read() -> LabelMap:
            return read_values(self.path, None if is_plain_image(self.path) else self.voxels(), watch)

        return cast("LabelMap", self._once("label map", read))

    def _once(self, name: str, read: Callable[[], object]) -> object:
        """Read a part the first time; return the same result, or raise the same error, each time."""
        parts = self._contents if name in _CONTENTS else self._headers
        if name not in parts:
            try:
                parts[name] = read()
            except InputError as error:
                error.__cause__ = error.__context__ = None  # whose frames hold all of the file
                parts[name] = error
        content = parts[name]
        if isinstance(content, InputError):
            raise content.with_traceback(None)
        return content

    def contents(self, kind: Kind) -> frozenset[Content] | None:
        """Find the sorts of annotations in the file; None for a format that cannot contain `kind`.

        Raises `InputError` as `document`.
        """
        document = self.document()
        if document is None or kind not in document.expected:
            return None
        return cast("frozenset[Content]", self._once("contents", document.contents))

    @property
    def memory(self) -> int:
        """Approximate bytes of memory in use."""
        contents = self._contents
        if not contents:
            return 0
        try:
            size = self.path.stat().st_size
        except OSError:
            return 0
        used = _OBJECTS * (min(size, _HEAD) * ("table head" in contents) + size * ("table" in contents))
        if isinstance(document := contents.get("document"), Document):
            used += size if document.is_text else _OBJECTS * size
        return used + getattr(contents.get("label map"), "memory", 0)

    def release(self) -> None:
        """Release the content, but not the header; the content is read again when needed."""
        self._contents.clear()


_CONTENTS = {"table head", "records", "document", "contents", "table", "label map"}
"""Parts that are released; headers are small and are kept."""

File = Path | str | Source


def open_source(file: File) -> Source:
    """Return the source of a file, or the given source itself."""
    return file if isinstance(file, Source) else Source(file)


def _header_of(format_name: Format, start: bytes) -> str | None:
    """Return the name of the header of a file format; None if it has no header."""
    from raterscope.app.formats.dialects import may_be_text

    if format_name in IMAGES:
        return "image"
    if format_name == "DICOM":
        return "dicom"
    if format_name in VOXELS:
        return "voxels"
    return "table head" if format_name in ("Parquet", "Spreadsheet") or may_be_text(start) else None


def _read(name: str, path: Path, format_name: Format, file: BinaryIO | None = None) -> object:
    """Read a header, from the file that the sniff has opened if there is one."""
    if name == "image":
        from raterscope.app.formats.image_heads import read_image_head

        return read_image_head(path, file, pages=True)
    if name == "dicom":
        from raterscope.app.formats.volumes.dicom_headers import read_dicom

        return read_dicom(path, file)
    if name == "voxels":
        return _read_voxel_head(path, format_name, file)
    from raterscope.app.formats.table_files import read_head

    return read_head(path, file, is_parquet=format_name == "Parquet")


def _read_voxel_head(path: Path, format_name: Format, file: BinaryIO | None) -> VoxelHead:
    """Read the header of a voxel file; NIfTI if the format is unknown."""
    from raterscope.app.formats.volumes import metaimage, nifti, nrrd_files
    from raterscope.app.formats.volumes.voxel_files import note_surplus, with_ending

    readers = {"NRRD": nrrd_files.read_head, "MetaImage": metaimage.read_head}
    head = readers.get(format_name, nifti.read_head)(path, file)
    return note_surplus(head if file is None else with_ending(head, file))


class Sources:
    """Files of one import, each sniffed once and parsed once.

    Contents are kept until they are released. When they use more than 400 MB, later files are parsed a second
    time when they are imported, which limits the memory.

    `is_lasting`: whether to keep also released contents, within that limit, because the same files may be
    read again after a question to the user.
    """

    def __init__(self, *, is_lasting: bool = False) -> None:
        self._is_lasting = is_lasting
        self._open: dict[Path, Source] = {}
        self._memory: dict[Path, int] = {}
        self._total = 0
        self._last: Path | None = None

    def open(self, path: Path) -> Source:
        """Return the source of a file, the same one each time."""
        if path != self._last and self._last is not None and self._is_full(self._last):
            self._drop(self._last)
        self._last = path
        source = self._open.get(path)
        if source is None:
            source = self._open[path] = Source(path)
        return source

    def release(self, path: Path) -> None:
        """Release the content of a file."""
        if not self._is_lasting or self._is_full(path):
            self._drop(path)

    def keep(self, paths: Collection[Path]) -> None:
        """Release the contents of all files except these."""
        for path in set(self._open).difference(paths):
            self.release(path)

    def close(self) -> None:
        """Release all contents and headers."""
        self._open.clear()
        self._memory.clear()
        self._total = 0

    def _is_full(self, path: Path) -> bool:
        """Update a file's memory, and return whether all files use more than the limit."""
        if path in self._open:
            memory = self._open[path].memory
            self._total += memory - self._memory.get(path, 0)
            self._memory[path] = memory
        return self._total > _MAX_MEMORY

    def _drop(self, path: Path) -> None:
        self._total -= self._memory.pop(path, 0)
        if path in self._open:
            self._open[path].release()


def _parse(path: Path) -> Document | None:
    """Parse a JSON or XML file, or a file of a plugin's format; None for an unknown format."""
    if is_of_plugin(path):
        name, plugin = _formats_of_plugins()[path.suffix.casefold()]
        try:
            return plugin.read(path)
        except (InputError, OSError):
            raise
        except Exception as error:  # code of others may raise anything
            raise InputError(f"the plugin {name} cannot read it: {error!r}", file=path) from error
    from raterscope.app.formats import coco, cvat, geojson, label_studio, labelme
    from raterscope.app.formats.points import tables

    if path.suffix.casefold() == ".xml":
        root = read_xml(path)
        if root.tag == "LidcReadMessage":
            from raterscope.app.formats.masks.lidc import LidcDocument

            return LidcDocument(root)
        is_cvat = root.tag == "annotations" and root.find("ndpviewstate") is None
        return cvat.CvatDocument(path, root) if is_cvat else None
    text = read_bytes(path)
    may_be_scores = tables.may_hold_scores(text)
    if coco.sniff(text[:SNIFFED]) and (typed := coco.parse(path, text)) is not None:
        return (tables.recognize(typed) if may_be_scores else None) or typed
    content = json_content(path, text)
    if may_be_scores and (scored := tables.recognize(content)) is not None:
        return scored
    formats = (geojson, coco, label_studio, labelme)
    documents = (module.recognize(path, content) for module in formats)
    return next((document for document in documents if document is not None), None)
