"""Files of annotation tools that are not read, by their first bytes: what to import instead.

References
----------
3D Slicer, "Markups", https://slicer.readthedocs.io/en/latest/user_guide/modules/markups.html.
ImageJ, "ROI file format", https://imagej.net/ij/developer/source/ij/io/RoiDecoder.java.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from raterscope.app.errors import InputError

_TABLE = "a table with the columns annotator, image, x and y"
_IN_SPACE = f"lists points in space, not on images; expected {_TABLE}, in pixels"
_CONVERTED = f"convert it to COCO, or points to {_TABLE}"


_DRAWN = re.compile(rb"\btype\W+(point|polygon|rectangle)\b")


def _begins(*signatures: bytes) -> Callable[[bytes], bool]:
    return lambda start: start.startswith(signatures)


def _is_json(*keys: str) -> Callable[[bytes], bool]:
    """Recognise JSON objects and lists with all of these keys."""
    quoted = [f'"{key}"'.encode() for key in keys]
    return lambda start: start.lstrip()[:1] in (b"{", b"[") and all(key in start for key in quoted)


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
    (_is_table("region_shape_attributes", "region_attributes"), f"is a table of VIA; {_CONVERTED}"),
    (_is_json("data_row", "projects", "media_attributes"), f"is an export of Labelbox; {_CONVERTED}"),
    (_is_json("DataRow ID", "Labeled Data"), f"is an export of Labelbox; {_CONVERTED}"),
    (_is_json("metadata", "instances", "classId"), f"is a file of SuperAnnotate; {_CONVERTED}"),
    (_is_json("objects", "classTitle"), f"is a file of Supervisely; {_CONVERTED}"),
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
