"""Export of masks: formats by name, NIfTI files, de-identified copies of images, DICOM structured reports.

A structured report contains the volume and the raters' agreement for each structure, with its segmentation.

References
----------
DICOM PS3.16, template TID 1500 "Measurement Report", with TID 1411 "Volumetric ROI Measurements and
Qualitative Evaluations" for each structure.
"""

from __future__ import annotations

import io
import itertools
import struct
import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import volumes_of
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import THREADS, Check, Watch, no_check, part, silent
from raterscope.app.coding import TISSUE, Code
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.deidentify import (
    Deidentifier,
    deidentify_dataset,
    explain_burned_in,
    remove_dates,
)
from raterscope.app.formats.masks.dicom_seg import make_segmentation, write_dicom_seg
from raterscope.app.formats.masks.terminology import (
    Structure,
    file_names,
    lasting_uid,
    reference_errors,
    require_masks,
    require_source,
)
from raterscope.app.formats.output_files import make_folder, write_together
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.sources import Source
from raterscope.app.formats.untrusted import file_errors
from raterscope.app.formats.volumes import load_volume
from raterscope.app.formats.volumes.dicom_headers import read_dataset
from raterscope.app.formats.volumes.nifti import RAS_TO_LPS, split_blocks
from raterscope.app.formats.volumes.resampling import explain_irregularity, regular_grid
from raterscope.app.formats.volumes.resampling import resample as resampled

__all__ = ["write_dicom_sr", "write_packed"]


class Writer(Protocol):
    """Function that writes structures on a grid into one or several files."""

    def __call__(
        self,
        path: Path,
        structures: Sequence[Structure],
        grid: Grid,
        *,
        source: VolumeFile | None = None,
        deidentify: Deidentifier | None = None,
        description: str = "",
    ) -> list[Path]:
        """Write the structures; return the files."""


FORMATS = ("nifti", "seg.nrrd", "dicom-seg", "rtstruct", "dicom-sr")


def _writer_of(kind: str) -> Writer:
    """Import the writer of one of `FORMATS`."""
    if kind == "seg.nrrd":
        from raterscope.app.formats.masks.seg_nrrd import write_seg_nrrd

        return write_seg_nrrd
    if kind == "dicom-seg":
        return write_dicom_seg
    if kind == "rtstruct":
        from raterscope.app.formats.masks.rtstruct import write_rtstruct

        return write_rtstruct
    if kind == "dicom-sr":
        return write_dicom_sr
    return write_nifti


REGULAR = ("nifti", "seg.nrrd", "nnunet")
"""Formats that support only evenly spaced slices and axes at right angles."""

OF_SERIES = ("dicom-seg", "rtstruct", "dicom-sr")
"""Formats that refer to the images of the marked DICOM series."""

ANY_SLICES = {"dicom-seg": "DICOM SEG", "rtstruct": "RTSTRUCT"}
"""Formats that keep every slice in place."""

RESAMPLE = "Resample to a regular grid (--resample, or in the window)"


def write_masks(
    path: Path | str,
    kind: str,
    structures: Sequence[Structure],
    grid: Grid,
    *,
    source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None,
    resample: bool = False,
    description: str = "",
) -> list[Path]:
    """Write structures in one of `FORMATS`; return the files.

    Raises `InputError` if there is nothing to write, the format does not support it, or a file cannot be
    written.

    `path`: the file; if a format needs several, their names begin with its stem.
    `structures`: at least one, all on the grid. `source`: the marked DICOM series, to which DICOM SEG and
    RTSTRUCT refer.
    `deidentify`: removes from a DICOM file all data that could identify the patient.
    `resample`: resample structures to a regular grid if the slices are uneven or tilted and the format
    supports only regular grids. `description`: description of the file in ASCII, truncated to the format's
    limit.
    """
    path = Path(path)
    if kind not in FORMATS:
        raise InputError(f"{plain(kind)} is not a format of masks; expected one of {', '.join(FORMATS)}")
    if not structures:
        raise InputError("there is no mask to write", file=path)
    for structure in structures:
        if structure.values.shape != grid.shape:
            raise InputError(
                f"{plain(structure.name)} has {' x '.join(map(str, structure.values.shape))} voxels; "
                f"the grid has {' x '.join(map(str, grid.shape))}",
                file=path,
            )
    check_geometry(path, kind, grid, source, resample=resample)
    if kind in REGULAR and explain_irregularity(grid):
        regular = regular_grid(grid)
        structures = [
            replace(structure, values=resampled(structure.values, grid, regular)) for structure in structures
        ]
        grid = regular
    write = _writer_of(kind)
    return write(path, structures, grid, source=source, deidentify=deidentify, description=description)


def check_geometry(
    path: Path,
    kind: str,
    grid: Grid,
    source: VolumeFile | None,
    *,
    resample: bool,
    formats: Sequence[str] = tuple(ANY_SLICES),
) -> None:
    """Raise `InputError` if a format does not support masks on this grid, or has no series to refer to.

    `formats`: formats in which the masks or maps can be written.
    """
    if kind in REGULAR and not resample and (reason := explain_irregularity(grid)):
        others = " or ".join(ANY_SLICES[name] for name in formats if name in ANY_SLICES)
        instead = f"{RESAMPLE}, or write {others}" if others else RESAMPLE
        raise InputError(f"cannot be written: {reason}. {instead}", file=path)
    if kind in OF_SERIES:
        require_source(path, source, grid)


_SCANNER = 1
_MAX_LABELS_PER_FILE = 255
_DESCRIPTION = 79
"""Length of the description in the header, bytes."""


def write_nifti(
    path: Path,
    structures: Sequence[Structure],
    grid: Grid,
    *,
    source: VolumeFile | None = None,  # noqa: ARG001 - common to all writers of masks
    deidentify: Deidentifier | None = None,  # noqa: ARG001 - there is nothing to remove
    description: str = "",
) -> list[Path]:
    """Write all masks as one label map, label k for the k-th mask; one file each if they overlap.

    Maps get one file each. The files hold only values and geometry; there is nothing to de-identify.
    See `export.write_masks`.
    """
    masks = [structure for structure in structures if structure.values.dtype == np.bool_]
    maps = [structure for structure in structures if structure.values.dtype != np.bool_]
    suffix = ".nii" if path.name.casefold().endswith(".nii") else ".nii.gz"
    labels = _labels(masks, grid)
    files: list[Path]
    arrays: list[NDArray[Any]]
    single_file = path if path.name.casefold().endswith(suffix) else path.with_name(path.name + suffix)
    if not maps and labels is not None:
        files, arrays = [single_file], [labels]
    elif len(structures) == 1:
        files, arrays = [single_file], [maps[0].values.astype(np.float32)]
    else:
        files = file_names(path, suffix, [structure.name for structure in structures])
        arrays = [
            structure.values.astype(np.float32 if structure in maps else np.uint8) for structure in structures
        ]
    with write_together(files) as drafts:
        for draft, array in zip(drafts, arrays, strict=True):
            write_array(draft, array, grid, description)
    return files


def _labels(masks: Sequence[Structure], grid: Grid) -> NDArray[np.uint8] | None:
    """Combine masks to one label map; None if they overlap."""
    if len(masks) > _MAX_LABELS_PER_FILE:
        return None
    labels = np.zeros(grid.shape, dtype=np.uint8)
    for label, mask in enumerate(masks, start=1):
        if labels[mask.values].any():
            return None
        labels[mask.values] = label
    return labels


def write_array(
    path: Path, values: NDArray[np.generic], grid: Grid, description: str = "", check: Check = no_check,
    origin: tuple[int, int, int] = (0, 0, 0),
) -> None:  # fmt: skip
    """Write (Z, Y, X) values on a grid unchanged, compressed if the path ends in ".gz".

    They begin at the voxel `origin`; the grid's other voxels are 0. `check` is called every megabyte; an
    exception ends the work.
    """
    import nibabel
    from nibabel.spatialimages import HeaderDataError

    affine = RAS_TO_LPS @ grid.matrix
    image = nibabel.Nifti1Image(values.T, affine)
    image.header.set_data_shape(grid.shape[::-1])
    code = _SCANNER if grid.calibrated else 0
    image.header.set_xyzt_units("mm" if grid.calibrated else "unknown")
    image.header["descrip"] = description.encode("ascii", "replace")[:_DESCRIPTION]
    image.set_sform(affine, code=code)
    try:
        image.set_qform(affine, code=code, strip_shears=False)
    except HeaderDataError:  # a tilted stack, which only the sform can hold
        image.set_qform(None, code=0)
    image.header.set_slope_inter(1.0, 0.0)
    head = io.BytesIO()
    image.header.write_to(head)
    blocks = split_blocks(values.astype(values.dtype.newbyteorder("="), copy=False), origin, grid.shape)
    chunks = (block if isinstance(block, int) else block.data.cast("B") for block in blocks)
    if path.suffix.casefold() == ".gz":
        write_packed(path, itertools.chain([head.getvalue()], chunks), check)
        return
    with path.open("wb") as file:
        file.write(head.getvalue())
        for chunk in chunks:
            check()
            file.write(bytes(chunk) if isinstance(chunk, int) else chunk)


def write_dicom_images(
    folder: Path, source: VolumeFile, deidentifier: Deidentifier, watch: Watch = silent
) -> tuple[list[Path], list[str]]:
    """Write every file of a DICOM series without data that could identify the patient, in slice order.

    Also return reasons why the pixels may still identify the patient, one sentence each. Pixels and their
    compression are unchanged. Raises `InputError` if a file cannot be read or written.
    """
    make_folder(folder)
    written: list[Path] = []
    warnings: dict[str, int] = {}
    digits = max(4, len(str(len(source.files))))
    for number, path in enumerate(source.files, start=1):
        watch((number - 1) / len(source.files), f"writing image {number:,} of {len(source.files):,}")
        with file_errors(path):
            dataset = read_dataset(path, pixels=True)
            reason = explain_burned_in(dataset)
            copy = deidentify_dataset(dataset, deidentifier)
        if reason is not None:
            warnings[reason] = warnings.get(reason, 0) + 1
        file = folder / f"{number:0{digits}d}.dcm"
        with write_together([file]) as (draft,):
            copy.save_as(draft, enforce_file_format=True)
        written.append(file)
    total = len(source.files)
    return written, [
        f"{plain(folder.name)}: {count:,} of {total:,} images: the file {reason}. Check the pixels before "
        "you pass them on."
        for reason, count in warnings.items()
    ]


def write_nifti_image(
    path: Path,
    source: VolumeFile,
    watch: Watch = silent,
    *,
    resample: bool = False,
    colours: Sequence[Path] = (),
) -> tuple[list[Path], list[str]]:
    """Write a volume as NIfTI, which holds only values and geometry; return files and warnings.

    Raises `InputError` if the volume is in colour, NIfTI does not support its grid, or a file cannot be read
    or written.

    `resample`: resample uneven or tilted slices to a regular grid. `colours`: files for red, green and blue
    of a volume in colour, instead of `path`; without these it is refused. For the warnings see
    `write_dicom_images`.
    """
    volume = load_volume(source, part(watch, 0.0, 0.8))
    in_colour = volume.values.ndim != 3
    if in_colour and not colours:
        raise InputError("is in colour; export only its masks, or as DICOM", file=path)
    paths = list(colours) if in_colour else [path]
    channels = list(np.moveaxis(volume.values, 3, 0)) if in_colour else [volume.values]
    grid = volume.grid
    if reason := explain_irregularity(grid):
        if not resample:
            raise InputError(f"cannot be written: {reason}. {RESAMPLE}", file=path)
        grid = regular_grid(grid)
        channels = [resampled(values, volume.grid, grid) for values in channels]
    first = source.files[0]
    burned_in = (
        explain_burned_in(read_dataset(first, pixels=False)) if Source(first).format == "DICOM" else None
    )
    with write_together(paths) as drafts:
        for draft, values in zip(drafts, channels, strict=True):
            write_array(draft, np.ascontiguousarray(values), grid)
    warning = f"{plain(path.name)}: the file {burned_in}. Check the pixels before you pass them on."
    return paths, [] if burned_in is None else [warning]


_LEVEL = 1
_RAW = -15
"""Window bits (zlib) of a deflate stream without header and checksum."""

_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF))
"""Gzip header without name and time, so that the same values give the same bytes."""

_ZEROS = 1 << 20
"""Block of zeros that is compressed once and stored as often as needed."""

_Packed = tuple[bytes, int, int]
"""Compressed bytes, with the checksum and the number of bytes before compression."""


def write_packed(path: Path, chunks: Iterable[bytes | memoryview | int], check: Check = no_check) -> None:
    """Write a gzip file with one member; a number among the chunks means that many zeros.

    `chunks`: bytes of about a megabyte each, so that memory stays small. `check`: called for each chunk; an
    exception ends the work.
    """
    from isal import isal_zlib

    checksum, size = 0, 0
    waiting: deque[Future[_Packed]] = deque()
    with path.open("wb") as file, ThreadPoolExecutor(THREADS) as pool:

        def add(packed: bytes, own_checksum: int, count: int, times: int = 1) -> None:
            nonlocal checksum, size
            for _ in range(times):
                file.write(packed)
                checksum = isal_zlib.crc32_combine(checksum, own_checksum, count)
            size += times * count

        def finish(most: int) -> None:
            while len(waiting) > most:
                add(*waiting.popleft().result())

        file.write(_HEADER)
        try:
            for chunk in chunks:
                check()
                if isinstance(chunk, int):
                    finish(0)
                    add(*_packed_zeros(_ZEROS), chunk // _ZEROS)
                    add(*_packed_zeros(chunk % _ZEROS))
                else:
                    waiting.append(pool.submit(_pack, chunk))
                    finish(2 * THREADS)
            finish(0)
        finally:
            pool.shutdown(cancel_futures=True)
        file.write(isal_zlib.compress(b"", wbits=_RAW))
        file.write(struct.pack("<II", checksum, size & 0xFFFFFFFF))


def _pack(data: bytes | memoryview) -> _Packed:
    from isal import isal_zlib

    stream = isal_zlib.compressobj(_LEVEL, wbits=_RAW)
    packed = stream.compress(data) + stream.flush(isal_zlib.Z_SYNC_FLUSH)
    return packed, isal_zlib.crc32(data), len(data)


@lru_cache(maxsize=16)
def _packed_zeros(count: int) -> _Packed:
    return _pack(bytes(count))


_SERIES_NUMBER = 910
_OWN_SCHEME = "99RATERSCOPE"
_UNITS = {"mm": "millimeter", "mm3": "cubic millimeter", "1": "no units"}


def write_dicom_sr(
    path: Path, structures: Sequence[Structure], grid: Grid, *, source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None, description: str = "",
) -> list[Path]:  # fmt: skip
    """Write a measurement report and the segmentation that it refers to, NAME_seg.dcm.

    A structure has the same tracking identifiers in every report on a series. See `export.write_masks`.
    """
    file = path if path.suffix.casefold() == ".dcm" else path.with_name(path.name + ".dcm")
    files = [file, file.with_name(f"{file.stem.removesuffix('_sr')}_seg.dcm")]
    require_masks(path, structures, "DICOM SEG")
    heads, segmentation = make_segmentation(path, structures, grid, source, description)
    if deidentify is not None:
        segmentation, *heads = (deidentify_dataset(dataset, deidentify) for dataset in (segmentation, *heads))
    with reference_errors(path, "a structured report"):
        report = _report(heads, segmentation, structures, grid, description)
    if deidentify is not None:
        remove_dates(report)
    with write_together(files) as drafts:
        for draft, dataset in zip(drafts, (report, segmentation), strict=True):
            dataset.save_as(draft, enforce_file_format=True)
    return files


def _report(
    heads: Sequence[Any], segmentation: Any, structures: Sequence[Structure], grid: Grid, description: str
) -> Any:
    from highdicom import sr
    from pydicom.sr.codedict import codes
    from pydicom.uid import generate_uid

    device = sr.ObserverContext(
        observer_type=codes.DCM.Device,
        observer_identifying_attributes=sr.DeviceObserverIdentifyingAttributes(
            uid=lasting_uid("Raterscope"), name="Raterscope", manufacturer_name="Raterscope",
            model_name="Raterscope", serial_number="0",
        ),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about oddities of the series, which were reported when it was read
        content = sr.MeasurementReport(
            observation_context=sr.ObservationContext(observer_device_context=device),
            procedure_reported=codes.SCT.ImagingProcedure,
            imaging_measurements=[
                _measurements(number, structure, segmentation, heads, grid)
                for number, structure in enumerate(structures, start=1)
            ],
            title=codes.DCM.ImagingMeasurementReport,
        )
        return sr.Comprehensive3DSR(
            evidence=[segmentation, *heads],
            content=content[0],
            series_number=_SERIES_NUMBER,
            series_instance_uid=generate_uid(prefix=None),
            sop_instance_uid=generate_uid(prefix=None),
            instance_number=1,
            manufacturer="Raterscope",
            is_complete=True,
            is_verified=False,
            series_description=plain(description or "Raterscope", 64),
        )


def _measurements(
    number: int, structure: Structure, segmentation: Any, heads: Sequence[Any], grid: Grid
) -> Any:
    from highdicom import sr
    from pydicom.sr.codedict import codes

    series = str(heads[0].SeriesInstanceUID)
    coding = structure.coding
    volume = float(volumes_of(structure.values, grid.spacing, grid.positions if grid.uneven else None))
    figures = [
        sr.Measurement(name=codes.SCT.Volume, value=_rounded(volume), unit=_unit("mm3")),
        *(
            sr.Measurement(
                name=_concept(Code(measure.code, _OWN_SCHEME, measure.meaning)),
                value=_rounded(measure.value), unit=_unit(measure.unit),
            )
            for measure in structure.measures
            if np.isfinite(measure.value)
        ),
    ]  # fmt: skip
    segment = sr.ReferencedSegment(
        sop_class_uid=segmentation.SOPClassUID,
        sop_instance_uid=segmentation.SOPInstanceUID,
        segment_number=number,
        source_series=sr.SourceSeriesForSegmentation(series),
    )
    return sr.VolumetricROIMeasurementsAndQualitativeEvaluations(
        tracking_identifier=sr.TrackingIdentifier(
            uid=lasting_uid(f"{series} {structure.name}"), identifier=plain(structure.title, 64)
        ),
        referenced_segment=segment,
        finding_category=_concept(coding.category or TISSUE),
        finding_type=_concept(coding.type or TISSUE),
        finding_sites=None
        if coding.region is None
        else [sr.FindingSite(anatomic_location=_concept(coding.region))],
        measurements=figures,
    )


def _concept(code: Code) -> Any:
    from pydicom.sr.coding import Code as Concept

    return Concept(code.value, code.scheme, code.meaning)


def _unit(symbol: str) -> Any:
    return _concept(Code(symbol, "UCUM", _UNITS[symbol]))


def _rounded(value: float) -> float:
    """Round to the precision of the 16 bytes of a decimal string."""
    return float(f"{value:.8g}")
