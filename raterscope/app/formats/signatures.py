"""Formats of files by their first bytes and, for voxels and workbooks, by their names.

Files of annotation tools that are not read are recognised too, to name what to import instead.

References
----------
3D Slicer, "Markups", https://slicer.readthedocs.io/en/latest/user_guide/modules/markups.html.
ImageJ, "ROI file format", https://imagej.net/ij/developer/source/ij/io/RoiDecoder.java.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from raterscope.app.errors import InputError
from raterscope.app.formats.workbooks import WORKBOOKS

Format = Literal[
    "PNG", "JPEG", "TIFF", "BMP", "GIF", "DICOM", "NIfTI", "NRRD", "MetaImage", "Parquet", "Spreadsheet", "",
]  # fmt: skip

SNIFFED = 4096
"""Number of first bytes by which a format is detected."""

IMAGES = ("PNG", "JPEG", "TIFF", "BMP", "GIF")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif")
IMAGES_IN_WORDS = "PNG, JPEG, TIFF, BMP or GIF"
VOXELS = ("NIfTI", "NRRD", "MetaImage")

_NAMES: dict[Format, tuple[str, ...]] = {
    "NIfTI": (".nii", ".nii.gz", ".hdr", ".hdr.gz", ".img", ".img.gz"),
    "NRRD": (".nrrd", ".nhdr"),
    "MetaImage": (".mha", ".mhd"),
    "Spreadsheet": WORKBOOKS,
}
_SIGNATURES: dict[bytes, Format] = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"NRRD000": "NRRD",
    b"ObjectType": "MetaImage",
    b"PAR1": "Parquet",
}


def format_of(path: Path, start: bytes) -> Format:
    """Detect the format of a file; empty for text and for an unknown format."""
    if is_dicom_start(start):
        return "DICOM"
    name = path.name.casefold()
    for format_name, endings in _NAMES.items():
        if name.endswith(endings):
            return format_name
    return _by_signature(start)


def image_kind(start: bytes) -> Format:
    """Detect the format of an image; empty for any other file."""
    format_name = _by_signature(start)
    return format_name if format_name in IMAGES else ""


def is_dicom_start(start: bytes) -> bool:
    """Return whether a file is DICOM, with or without a preamble."""
    if start[128:132] == b"DICM":
        return True
    group, element = int.from_bytes(start[:2], "little"), int.from_bytes(start[2:4], "little")
    if len(start) < 132 or group not in (2, 8) or element > 0x60:
        return False
    explicit = start[4:6] in (b"UL", b"OB", b"UI", b"CS", b"DA", b"TM", b"SH", b"LO", b"DT")
    return explicit or int.from_bytes(start[4:8], "little") <= 128


def _by_signature(start: bytes) -> Format:
    if start.startswith(b"BM") and start[6:10] == bytes(4):  # two reserved numbers; no text has them
        return "BMP"
    return next((name for signature, name in _SIGNATURES.items() if start.startswith(signature)), "")


_TABLE = "a table with the columns annotator, image, x and y"
_IN_SPACE = f"lists points in space, not on images; expected {_TABLE}, in pixels"
_CONVERTED = f"convert it to COCO, or points to {_TABLE}"


_EXPORTED = "import the export of its classifications"
_SAVED = "save the table as CSV or Parquet"

_YOLO = re.compile(rb"\d+( (0|1|[01]?\.\d+([eE][-+]?\d+)?)){4,}\s*(\n|$)")
"""Pattern of a box or polygon of YOLO: the class, then shares of the image's width and height."""

_DRAWN = re.compile(rb"\btype\W+(point|polygon|rectangle)\b")


def _begins(*signatures: bytes) -> Callable[[bytes], bool]:
    return lambda start: start.startswith(signatures)


def _is_json(*keys: str) -> Callable[[bytes], bool]:
    """Recognise JSON objects and lists with all of these keys."""
    quoted = [f'"{key}"'.encode() for key in keys]
    return lambda start: start.lstrip()[:1] in (b"{", b"[") and all(key in start for key in quoted)


def _has(*words: bytes) -> Callable[[bytes], bool]:
    """Recognise files with all of these bytes near their begin."""
    return lambda start: all(word in start for word in words)


def _is_table(*columns: str) -> Callable[[bytes], bool]:
    """Recognise tables with all of these words in their first line."""
    words = [column.encode() for column in columns]
    return lambda start: all(word in start.partition(b"\n")[0] for word in words)


_UNREAD: tuple[tuple[Callable[[bytes], bool], str], ...] = (
    (_begins(b"Iout"), "is a ROI of ImageJ; import the table of results of Analyze, Measure"),
    (_begins(b"# Markups fiducial file"), _IN_SPACE),
    (_is_json("markups", "controlPoints"), _IN_SPACE),
    (lambda start: b"<point_set_file" in start, _IN_SPACE),
    (
        lambda start: b"ITK-SnAP Label Description File" in start,
        "only names labels of ITK-SNAP; import the segmentation itself (NIfTI, NRRD or MetaImage)",
    ),
    (_is_json("shape_attributes", "region_attributes"), f"is a file of VIA; {_CONVERTED}"),
    (_is_table("subject_id", "extractor"), f"holds extracts of Zooniverse; {_EXPORTED}"),
    (_is_table("subject_id", "reducer"), f"holds reductions of Zooniverse; {_EXPORTED}"),
    (_is_table("region_shape_attributes", "region_attributes"), f"is a table of VIA; {_CONVERTED}"),
    (_is_json("data_row", "projects", "media_attributes"), f"is an export of Labelbox; {_CONVERTED}"),
    (_is_json("DataRow ID", "Labeled Data"), f"is an export of Labelbox; {_CONVERTED}"),
    (_is_json("metadata", "instances", "classId"), f"is a file of SuperAnnotate; {_CONVERTED}"),
    (_is_json("objects", "classTitle"), f"is a file of Supervisely; {_CONVERTED}"),
    (_has(b'"source-ref"', b'-metadata"'), "is a manifest of Ground Truth, which names no workers; "
     "import a table of their answers with the columns annotator, task and label"),
    (_is_json("answerContent", "workerId"), "holds answers of Ground Truth; convert them to a table with the "
     "columns annotator, task and label"),
    (_has(b"<ASAP_Annotations"), f"is a file of ASAP; {_CONVERTED}"),
    (_has(b"<ndpviewstate"), f"is a file of NDP.view; {_CONVERTED}"),
    (_has(b"<Annotations", b"<Regions>", b"<V X="), f"is a file of HALO; {_CONVERTED}"),
    (_has(b"<Annotations", b"<Regions>"), f"is a file of Aperio ImageScope; {_CONVERTED}"),
    (_has(b"<annotation", b"<bndbox>"), "holds boxes of Pascal VOC; a box is no click and no outline: "
     f"write the centres as {_TABLE}"),
    (lambda start: _YOLO.match(start) is not None, f"holds boxes or polygons of YOLO; {_CONVERTED}"),
    (_begins(b"ARROW1", b"FEA1", b"\xff\xff\xff\xff"), f"is a file of Arrow; {_SAVED}"),
    (_begins(b"SQLite format 3\0"), f"is an SQLite database; {_SAVED}"),
    (_begins(b"$FL2@(#)", b"$FL3@(#)"), f"is a file of SPSS; {_SAVED}"),
    (_begins(b"<stata_dta>", b"\x71\x01\x01", b"\x71\x02\x01", b"\x72\x01\x01", b"\x72\x02\x01",
             b"\x73\x01\x01", b"\x73\x02\x01"), f"is a file of Stata; {_SAVED}"),
    (_begins(bytes(12) + b"\xc2\xea\x81\x60"), f"is a file of SAS; {_SAVED}"),
    (_begins(b"\x80\x04\x95", b"\x80\x05\x95"), f"is a pickle of Python; {_SAVED}"),
    (_begins(b"\x89HDF"), f"is an HDF5 file; {_SAVED}, or an image as TIFF, a volume as NIfTI"),
    (_begins(b"\x28\xb5\x2f\xfd"), "is compressed by zstd; unpack it, or compress it by gzip instead"),
    (
        lambda start: _is_table("annotation_id", "lead_time")(start) and b"original_width" in start,
        "is a table of Label Studio with drawings; export it as JSON",
    ),
    (
        lambda start: _is_table("HITId", "WorkerId")(start) and b"inputImageProperties" in start,
        f"holds drawings of Mechanical Turk; convert them to {_TABLE}",
    ),
    (
        lambda start: _is_table("OUTPUT:", "ASSIGNMENT:")(start) and _DRAWN.search(start) is not None,
        f"holds drawings of Toloka; convert them to {_TABLE}",
    ),
)  # fmt: skip


def refuse_unread(path: Path, start: bytes) -> None:
    """Raise `InputError` for a file of a format that is not read, with what to import instead."""
    for recognises, problem in _UNREAD:
        if recognises(start):
            raise InputError(problem, file=path)
