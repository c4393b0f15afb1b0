"""DICOM structured reports: volume and raters' agreement of each structure, with its segmentation.

References
----------
DICOM PS3.16, template TID 1500 "Measurement Report", with TID 1411 "Volumetric ROI Measurements and
Qualitative Evaluations" for each structure.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.algorithms.masks.data import volumes_of
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.coding import TISSUE, Code
from raterscope.app.errors import plain
from raterscope.app.formats.masks.deidentify import Deidentifier, deidentify_dataset, remove_dates
from raterscope.app.formats.masks.dicom_seg import make_segmentation
from raterscope.app.formats.masks.terminology import Structure, lasting_uid, reference_errors, require_masks
from raterscope.app.formats.output_files import write_together
from raterscope.app.formats.records import VolumeFile

_SERIES_NUMBER = 910
_OWN_SCHEME = "99RATERSCOPE"
_UNITS = {"mm": "millimeter", "mm3": "cubic millimeter", "1": "no units"}


def write_dicom_sr(
    path: Path, structures: Sequence[Structure], grid: Grid, *, source: VolumeFile | None = None,
    deidentify: Deidentifier | None = None, description: str = "",
) -> list[Path]:  # fmt: skip
    """Write a measurement report and the segmentation that it refers to, NAME_seg.dcm.

    A structure keeps its tracking identifiers in every report on a series. See `export.write_masks`.
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
    import warnings

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
    """Round to what the 16 bytes of a decimal string hold."""
    return float(f"{value:.8g}")
