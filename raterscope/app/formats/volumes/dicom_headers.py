"""Headers of DICOM files: kind, geometry, pixel layout and uptake values of PET, without the pixels."""

from __future__ import annotations

import io
import logging
import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Literal

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.signatures import is_dicom_start
from raterscope.app.formats.untrusted import MAX_VOXELS, file_errors, open_file, refuse_special

SUV = "SUV"
PET_TAGS = (
    "Units", "DecayCorrection", "PatientWeight", "SeriesDate", "SeriesTime", "AcquisitionDate",
    "AcquisitionTime", "RadiopharmaceuticalInformationSequence",
)  # fmt: skip


def suv_factor(data: Any) -> float | None:
    """Return the factor from Bq/ml to the uptake per body weight, g/ml; None if the header has no dose.

    Activity is corrected for decay to the start of the series or to the injection. The result is also None
    for a series whose time is later than its acquisition: it was processed later, and its time is not that of
    the scan.
    """
    dose = next(iter(data.get("RadiopharmaceuticalInformationSequence") or ()), None)
    if dose is None or str(data.get("Units", "")) != "BQML":
        return None
    try:
        activity, weight = float(dose.RadionuclideTotalDose), 1000.0 * float(data.PatientWeight)
        correction = str(data.DecayCorrection)
        if correction == "START":
            begin = _moment(data.SeriesDate, data.SeriesTime)
            if begin > _moment(data.get("AcquisitionDate") or data.SeriesDate, data.AcquisitionTime):
                return None
            stated = str(dose.get("RadiopharmaceuticalStartDateTime") or "")
            injected = _moment(stated[:8] or data.SeriesDate, stated[8:] or dose.RadiopharmaceuticalStartTime)
            if injected > begin and not stated:  # before midnight
                injected -= timedelta(days=1)
            seconds = (begin - injected).total_seconds()
            activity *= 0.5 ** (seconds / float(dose.RadionuclideHalfLife))
        elif correction != "ADMIN":
            return None
        factor = weight / activity
    except (AttributeError, TypeError, ValueError, ArithmeticError):
        return None
    return factor if 0 < factor < float("inf") and weight > 0 else None


def _moment(day: Any, clock: Any) -> datetime:
    """Combine a date and a time of DICOM; the time zone of a date with time is dropped."""
    text = str(clock).replace(":", "").partition("+")[0].partition("-")[0]
    seconds = float(text[4:] or 0)
    whole = time(int(text[:2]), int(text[2:4] or 0), int(seconds), round(seconds % 1 * 1e6) % 1_000_000)
    digits = str(day).replace(".", "")
    return datetime.combine(date(int(digits[:4]), int(digits[4:6]), int(digits[6:8])), whole)


def as_suv(heads: Sequence[SliceHead]) -> list[SliceHead]:
    """Convert the scale of all slices to uptake values, if they have one factor."""
    factor = heads[0].suv_factor
    if factor is None or any(head.suv_factor != factor for head in heads):
        return list(heads)
    return [
        replace(
            head,
            slope=head.slope * factor,
            intercept=head.intercept * factor,
            window=None if head.window is None else (head.window[0] * factor, head.window[1] * factor),
            unit=SUV,
        )
        for head in heads
    ]


Vector = tuple[float, ...]

NATIVE = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1")
"""Transfer syntaxes of uncompressed pixels, the lowest byte first."""

_DEFLATED = "1.2.840.10008.1.2.1.99"
_MAX_INFLATED, _INFLATED_A_BYTE = 256 << 20, 20
"""Maximum size of an inflated file, bytes: in any case, and for each of its bytes."""

_LONGEST_HEAD = 32 << 20
_TRAILING = 1 << 20
_PIXELS = 0x7FE0
_START = 1024
"""Number of first bytes that show whether a file is DICOM, and whether it is deflated."""

_PREAMBLE = 144
"""Number of bytes before those counted by the group length of the file's header."""

_MAX_FRAMES = 100_000
_ALLOCATED = (1, 8, 16, 32, 64)
_TAGS = [
    "SOPClassUID", "SOPInstanceUID", "SeriesInstanceUID", "SeriesDescription", "SeriesNumber", "Modality",
    "InstanceNumber", "ImageType", "AcquisitionNumber", "TemporalPositionIdentifier", "EchoNumbers",
    "PatientID", "FrameOfReferenceUID", "Rows", "Columns", "NumberOfFrames", "SamplesPerPixel",
    "PhotometricInterpretation",
    "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "PlanarConfiguration", "PixelSpacing",
    "ImagerPixelSpacing", "ImagePositionPatient", "ImageOrientationPatient", "SliceThickness",
    "SpacingBetweenSlices", "RescaleSlope", "RescaleIntercept", "ModalityLUTSequence", "WindowCenter",
    "WindowWidth", "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence", *PET_TAGS,
]  # fmt: skip
_NO_IMAGES = {
    "SEG": "is a segmentation; open it as masks",
    "RTSTRUCT": "holds contours and no image; open it as masks",
    "RTPLAN": "is a plan of radiotherapy and contains no image",
    "RTDOSE": "holds a dose of radiotherapy; expected an image",
    "SM": "holds the tiles of a microscope's slide; expected slices of a volume",
    "ANN": "holds annotations and no image",
    "SR": "is a report and contains no image",
    "PR": "describes the display of images and holds none",
    "KO": "is a list of images and holds none",
}

# pydicom logs irregularities to the terminal; this module itself reports whether a file can be read.
logging.getLogger("pydicom").setLevel(logging.CRITICAL)


class NoImageError(InputError):
    """A valid DICOM file without an image: a report, contours, a plan."""


@dataclass(frozen=True)
class SliceHead:
    """Header of one image of a DICOM file: of the complete file, or of one frame."""

    path: Path
    frame: int  # from 0
    frames: int  # number of frames of the file
    # instance, series: the UIDs of the image and of its series
    instance: str
    series: str
    patient: str  # the patient's ID
    modality: str
    title: str  # the series' description and number, or its modality and number
    order: tuple[float, ...]  # sorts images at the same position, the earliest first
    shape: tuple[int, int]  # (rows, columns)
    colour: bool
    bits: tuple[int, int, int]  # (allocated, stored, highest)
    signed: bool
    photometric: str
    syntax: str  # UID of the transfer syntax
    offset: int | None  # bytes before the file's first pixel, if the pixels are not compressed
    # position, orientation: as in the standard (PS3.3, C.7.6.2): centre of the first pixel in mm, and
    # directions of rows and columns
    position: Vector | None
    orientation: Vector | None
    spacing: Vector | None  # (between rows, between columns): mm
    thickness: float | None  # millimetres from slice to slice, or the thickness of the slice
    slope: float
    intercept: float
    window: tuple[float, float] | None  # (centre, width)
    table: bool  # whether a table instead of slope and intercept converts stored to real values
    mosaic: bool  # whether the image holds many slices as tiles
    unit: str = ""  # of the real values, where it is neither HU nor arbitrary: "Bq/ml", "SUV"
    suv_factor: float | None = None  # from Bq/ml to SUV
    frame_of_reference: str = ""  # its UID
    scale_problem: str = ""  # of slope and intercept as stated, for a notice


def read_dataset(path: Path, file: BinaryIO | None = None, *, pixels: bool) -> Any:
    """Read a DICOM file with pydicom, from `file` if it is already open.

    Raises `InputError` for a file that is not DICOM, or that decompresses to more than its size allows.
    """
    with open_file(path, file) as stream:
        return _read(path, stream, pixels=pixels)[0]


def read_heads(path: Path) -> tuple[SliceHead, ...]:
    """Read the headers of a DICOM file's images, one per frame.

    Raises `NoImageError` for a file without an image, such as a report, contours or a plan. Raises
    `InputError` for a file that is not DICOM, is cut short, or claims more than 2^30 pixels.
    """
    file = read_dicom(path)
    if file is None:
        raise InputError("is not a DICOM file", file=path)
    return file.images()


@dataclass(frozen=True)
class DicomFile:
    """Header of a DICOM file."""

    path: Path
    sop_class: str = ""  # UID of its content type; empty for a damaged file
    heads: tuple[SliceHead, ...] = ()
    problem: InputError | None = None  # the reason why there is no image

    def images(self) -> tuple[SliceHead, ...]:
        """Return one header for each image, or raise the problem."""
        if self.problem is not None:
            raise self.problem
        return self.heads


def read_dicom(path: Path, file: BinaryIO | None = None) -> DicomFile | None:
    """Read the header of a file, from `file` if it is already open; None for a file that is not DICOM.

    For a file that is damaged or without an image, the result has a problem.
    """
    if file is not None:
        return _read_dicom(path, file)
    refuse_special(path)
    try:
        with path.open("rb") as stream:
            return _read_dicom(path, stream) if is_dicom_start(stream.read(_START)) else None
    except OSError:
        return None


def _read_dicom(path: Path, file: BinaryIO) -> DicomFile:
    sop_class = ""
    try:
        with file_errors(path):
            data, at = _read(path, file, pixels=False, tags=_TAGS)
            sop_class = _text(data, "SOPClassUID")
            return DicomFile(path, sop_class, _images(path, file, data, at))
    except InputError as error:
        error.__cause__ = error.__context__ = None  # their frames hold the data
        return DicomFile(path, sop_class, problem=error.with_traceback(None))


def _images(path: Path, file: BinaryIO, data: Any, at: int) -> tuple[SliceHead, ...]:
    modality = _text(data, "Modality")
    text = _NO_IMAGES.get(modality)
    if text is None and (_text(data, "SOPClassUID") == "" or "Rows" not in data):
        kind = getattr(data.get("SOPClassUID"), "name", "") or modality or "of unknown kind"
        text = f"contains no image ({plain(kind)})"
    if text is not None:
        raise NoImageError(text, file=path)
    return tuple(_heads(path, file, data, at))


def _read(path: Path, file: BinaryIO, *, pixels: bool, tags: Sequence[str] | None = None) -> tuple[Any, int]:
    import pydicom

    file.seek(0)
    start = file.read(_START)
    if not is_dicom_start(start):
        raise InputError("is not a DICOM file", file=path)
    packed = _deflated_from(path, start)
    if packed is not None:
        data, head = _head_of_deflated(path, packed, tags if not pixels else None)
        if not pixels:
            return data, 0
        _refuse_bomb(path, packed, head + _pixel_bytes(path, data) + _TRAILING)
    file.seek(0)
    data = pydicom.dcmread(
        file, force=True, stop_before_pixels=not pixels, specific_tags=None if tags is None else list(tags)
    )
    return data, file.tell()


def _deflated_from(path: Path, start: bytes) -> int | None:
    """Return the offset of the deflated part of a file; None if there is none."""
    import pydicom

    if start[128:132] != b"DICM" or _DEFLATED.encode() not in start:
        return None
    meta = pydicom.filereader.read_file_meta_info(path)
    if meta.get("TransferSyntaxUID") != _DEFLATED:
        return None
    return _PREAMBLE + int(meta.FileMetaInformationGroupLength)


def _inflate(path: Path, begin: int) -> Iterator[bytes]:
    """Inflate a file in pieces."""
    with path.open("rb") as file:
        file.seek(begin)
        state = zlib.decompressobj(-zlib.MAX_WBITS)
        while packed := file.read(1 << 16):
            while packed and not state.eof:
                yield state.decompress(packed, 1 << 20)
                packed = state.unconsumed_tail


def _head_of_deflated(path: Path, begin: int, tags: Sequence[str] | None) -> tuple[Any, int]:
    """Read the part before the pixels of a deflated file, and its size, without inflating everything."""
    import pydicom
    from pydicom.tag import Tag

    head = bytearray()
    is_complete = True
    for piece in _inflate(path, begin):
        head += piece
        if len(head) > _LONGEST_HEAD:
            del head[_LONGEST_HEAD:]
            is_complete = False
            break
    stream = io.BytesIO(head)
    too_long = InputError(
        f"unpacks to more than {_LONGEST_HEAD >> 20} MB before its pixels; expected a smaller head", file=path
    )
    try:
        data = pydicom.filereader.read_dataset(
            stream,
            is_implicit_VR=False,
            is_little_endian=True,
            stop_when=lambda tag, *_: tag.group == _PIXELS,
            specific_tags=None if tags is None else [Tag(tag) for tag in tags],
        )
    except EOFError:
        if is_complete:
            raise
        raise too_long from None
    if not is_complete and stream.tell() >= len(head):
        raise too_long
    data.file_meta = pydicom.filereader.read_file_meta_info(path)
    return data, stream.tell()


def _pixel_bytes(path: Path, data: Any) -> int:
    """Return the number of bytes of pixels that a file claims; 0 for a file without pixels."""
    return -(-_form(path, data).size // 8) if "Rows" in data else 0


def _refuse_bomb(path: Path, begin: int, most: int) -> None:
    """Refuse a deflated file with more content than claimed or allowed: pydicom inflates everything."""
    most = min(most, _MAX_INFLATED + _INFLATED_A_BYTE * path.stat().st_size)
    size = 0
    for piece in _inflate(path, begin):
        size += len(piece)
        if size > most:
            raise InputError(
                f"unpacks to more than the {most / 1e6:,.0f} MB that its size allows; store it unpacked",
                file=path,
            )


@dataclass(frozen=True)
class _Form:
    """Claimed layout of a file's pixels, after checking its limits."""

    shape: tuple[int, int]
    frames: int
    samples: int
    bits: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Bits of all frames."""
        return self.shape[0] * self.shape[1] * self.frames * self.samples * self.bits[0]


def _form(path: Path, data: Any) -> _Form:
    rows, columns = _integer(data, "Rows"), _integer(data, "Columns")
    frames = _integer(data, "NumberOfFrames", 1, path)
    samples = _integer(data, "SamplesPerPixel", 1)
    allocated = _integer(data, "BitsAllocated", 16)
    stored = _integer(data, "BitsStored", allocated)
    highest = _integer(data, "HighBit", stored - 1)
    if allocated not in _ALLOCATED:
        raise InputError(f"has pixels of {allocated} bits; expected 1, 8, 16, 32 or 64", file=path)
    if not 1 <= stored <= allocated or not stored - 1 <= highest < allocated:
        stored, highest = allocated, allocated - 1
    if rows < 1 or columns < 1 or frames < 1:
        raise InputError("has no pixels", file=path)
    if rows * columns * frames * samples > MAX_VOXELS or frames > _MAX_FRAMES:
        text = f"claims {frames} frames of {rows} x {columns} pixels"
        raise InputError(f"{text}; expected {MAX_VOXELS} pixels at most", file=path)
    if samples not in (1, 3):
        raise InputError(f"has {samples} values a pixel; expected 1 or 3", file=path)
    return _Form((rows, columns), frames, samples, (allocated, stored, highest))


def _heads(path: Path, file: BinaryIO, data: Any, at: int) -> Iterator[SliceHead]:
    form = _form(path, data)
    photometric = _text(data, "PhotometricInterpretation") or "MONOCHROME2"
    syntax = str(getattr(data.file_meta, "TransferSyntaxUID", "") or _guess_syntax(data))
    offset = _offset(path, file, at, syntax, form.size, photometric)
    spacing, title = _numbers(data, "PixelSpacing", 2), _title(data)
    shared = next(iter(data.get("SharedFunctionalGroupsSequence") or ()), None)
    groups = list(data.get("PerFrameFunctionalGroupsSequence") or ())
    order = tuple(
        _number(data, name, 0.0)
        for name in ("TemporalPositionIdentifier", "AcquisitionNumber", "EchoNumbers", "InstanceNumber")
    )
    kinds = [str(word) for word in (data.get("ImageType") or ())]
    for frame in range(form.frames):
        own = _Groups(groups[frame] if frame < len(groups) else None, shared, data)
        measures = own.find("PixelMeasuresSequence")
        values = own.find("PixelValueTransformationSequence")
        view = own.find("FrameVOILUTSequence")
        centre, width = _number(view, "WindowCenter"), _number(view, "WindowWidth")
        slope, intercept = _number(values, "RescaleSlope"), _number(values, "RescaleIntercept", 0.0)
        # Position and orientation of an old file with several frames belong to its first frame only.
        has_position = form.frames == 1 or bool(groups)
        steps = _numbers(measures, "PixelSpacing", 2) or spacing or _numbers(data, "ImagerPixelSpacing", 2)
        yield SliceHead(
            path=path,
            frame=frame,
            frames=form.frames,
            instance=_text(data, "SOPInstanceUID"),
            series=_text(data, "SeriesInstanceUID"),
            patient=_text(data, "PatientID"),
            modality=_text(data, "Modality"),
            title=title,
            order=(*order, float(frame)),
            shape=form.shape,
            colour=form.samples == 3 or photometric == "PALETTE COLOR",
            bits=form.bits,
            signed=_integer(data, "PixelRepresentation", 0) == 1,
            photometric=photometric,
            syntax=syntax,
            offset=offset,
            position=_numbers(own.find("PlanePositionSequence"), "ImagePositionPatient", 3)
            if has_position
            else None,
            orientation=_unit(_numbers(own.find("PlaneOrientationSequence"), "ImageOrientationPatient", 6)),
            spacing=steps if steps and min(steps) > 0 else None,
            thickness=_number(measures, "SpacingBetweenSlices") or _number(measures, "SliceThickness"),
            slope=slope or 1.0,
            intercept=intercept,
            window=(centre, width) if centre is not None and width is not None and width > 0 else None,
            table=bool(data.get("ModalityLUTSequence")),
            mosaic="MOSAIC" in kinds,
            unit="Bq/ml" if _text(data, "Units") == "BQML" else "",
            suv_factor=suv_factor(data),
            frame_of_reference=_text(data, "FrameOfReferenceUID"),
            scale_problem=_scale_problem(slope, intercept),
        )


def _scale_problem(slope: float | None, intercept: float) -> str:
    if slope == 0:
        return "states a rescale slope of 0"
    return "states a rescale intercept without a slope" if slope is None and intercept else ""


@dataclass(frozen=True)
class _Groups:
    """Sources of a frame's attributes: its own groups, the shared groups, the file itself."""

    own: Any
    shared: Any
    data: Any

    def find(self, name: str) -> Any:
        for groups in (self.own, self.shared):
            for item in (groups.get(name) if groups is not None else None) or ():
                return item
        return self.data


def _offset(path: Path, file: BinaryIO, at: int, syntax: str, bits: int, photometric: str) -> int | None:
    """Return the offset of uncompressed pixels, after checking that they are complete."""
    if syntax == _DEFLATED:
        return None
    file.seek(at)
    start = file.read(12)
    order: Literal["big", "little"] = "big" if syntax == "1.2.840.10008.1.2.2" else "little"
    group, element = (int.from_bytes(start[k : k + 2], order) for k in (0, 2))
    if group != 0x7FE0 or element not in (0x8, 0x9, 0x10):
        raise InputError("contains no pixels", file=path)
    explicit = syntax != NATIVE[0]
    length = int.from_bytes(start[8:12] if explicit else start[4:8], order)
    if length == 0xFFFFFFFF:
        return None
    begin = at + (12 if explicit else 8)
    needed = bits // 8 if photometric != "YBR_FULL_422" else bits // 12
    available = min(length, path.stat().st_size - begin)
    if available < needed:
        raise InputError(f"is cut short: {available} of {needed} bytes of pixels are there", file=path)
    return begin if syntax in NATIVE and element == 0x10 else None


def _guess_syntax(data: Any) -> str:
    implicit, little = data.original_encoding
    return NATIVE[0] if implicit else NATIVE[1] if little else "1.2.840.10008.1.2.2"


def _title(data: Any) -> str:
    text = plain(_text(data, "SeriesDescription"))
    number = _number(data, "SeriesNumber")
    text = text or f"{plain(_text(data, 'Modality'))} series".strip()
    return text if number is None else f"{text} {number:g}"


def _text(data: Any, name: str) -> str:
    try:
        value = data.get(name)
    except Exception:  # a value that cannot be read is missing
        return ""
    return "" if value is None else str(value).strip()


def _numbers(data: Any, name: str, count: int) -> Vector | None:
    try:
        value = data.get(name)
        numbers = tuple(float(part) for part in value) if value is not None else ()
    except Exception:  # a value that cannot be read is missing
        return None
    return numbers if len(numbers) == count and all(map(math.isfinite, numbers)) else None


def _number(data: Any, name: str, default: float | None = None) -> Any:
    """Return an attribute's number, or the first of its numbers."""
    try:
        value = data.get(name)
        if value is None or value == "":
            return default
        first = value if isinstance(value, (int, float)) else value[0]
        return float(first) if math.isfinite(float(first)) else default
    except Exception:  # a value that cannot be read is missing
        return default


def _integer(data: Any, name: str, default: int = 0, path: Path | None = None) -> int:
    try:
        value = data.get(name)
        return default if value in (None, "") else int(value)
    except Exception as error:
        if path is None:
            return default
        raise InputError("is not an integer", file=path, field=name) from error


def _unit(orientation: Vector | None) -> Vector | None:
    """Normalise directions; None unless they have length 1 and a right angle, to a hundredth."""
    if orientation is None:
        return None
    row, column = orientation[:3], orientation[3:]
    lengths = [math.hypot(*row), math.hypot(*column)]
    skew = sum(a * b for a, b in zip(row, column, strict=True))
    is_valid = all(abs(length - 1.0) < 0.01 for length in lengths) and abs(skew) < 0.01
    return tuple(v / lengths[k // 3] for k, v in enumerate(orientation)) if is_valid else None
