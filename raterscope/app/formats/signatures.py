"""Detection of a file's format by its first bytes and, for voxels, by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

__all__ = ["IMAGES", "SNIFFED", "VOXELS", "Format", "format_of", "image_kind", "is_dicom_start"]

Format = Literal["PNG", "JPEG", "TIFF", "DICOM", "NIfTI", "NRRD", "MetaImage", "Parquet", ""]

SNIFFED = 4096
"""Bytes by which a format is detected."""

IMAGES = ("PNG", "JPEG", "TIFF")
VOXELS = ("NIfTI", "NRRD", "MetaImage")

_NAMES: dict[Format, tuple[str, ...]] = {
    "NIfTI": (".nii", ".nii.gz", ".hdr", ".hdr.gz", ".img", ".img.gz"),
    "NRRD": (".nrrd", ".nhdr"),
    "MetaImage": (".mha", ".mhd"),
}
_SIGNATURES: dict[bytes, Format] = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
    b"NRRD000": "NRRD",
    b"ObjectType": "MetaImage",
    b"PAR1": "Parquet",
}


def format_of(path: Path, start: bytes) -> Format:
    """Detect the format of a file; empty for text and for what is not known."""
    if is_dicom_start(start):
        return "DICOM"
    name = path.name.casefold()
    for format_name, endings in _NAMES.items():
        if name.endswith(endings):
            return format_name
    return _by_signature(start)


def image_kind(start: bytes) -> Format:
    """Detect PNG, JPEG or TIFF; empty for any other file."""
    found = _by_signature(start)
    return found if found in IMAGES else ""


def is_dicom_start(start: bytes) -> bool:
    """Tell whether a file is DICOM, with or without a preamble."""
    if start[128:132] == b"DICM":
        return True
    group, element = int.from_bytes(start[:2], "little"), int.from_bytes(start[2:4], "little")
    if len(start) < 132 or group not in (2, 8) or element > 0x60:
        return False
    explicit = start[4:6] in (b"UL", b"OB", b"UI", b"CS", b"DA", b"TM", b"SH", b"LO", b"DT")
    return explicit or int.from_bytes(start[4:8], "little") <= 128


def _by_signature(start: bytes) -> Format:
    return next((name for signature, name in _SIGNATURES.items() if start.startswith(signature)), "")
