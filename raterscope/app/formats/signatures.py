"""Formats of files by their first bytes and, for voxels and workbooks, by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

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
