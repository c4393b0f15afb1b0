"""A structured report names each structure with its volume and agreement, and the segment measured."""

import shutil
import subprocess

import highdicom
import numpy as np
import pydicom
import pytest

from raterscope.app.coding import Code, Coding
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Measure, Structure

LUNG = Coding(type=Code("39607008", "SCT", "Lung"), label="Lung_L")


def figures(path):
    report = highdicom.sr.srread(path)
    return {
        group.tracking_identifier: (
            group.tracking_uid,
            {
                measure.name.meaning: (measure.value, measure.unit.value)
                for measure in group.get_measurements()
            },
            group.referenced_segmentation_frame or group.reference_type.meaning,
        )
        for group in report.content.get_volumetric_roi_measurement_groups()
    }


def test_volume_agreement_and_segment_of_each_structure(tmp_path, blobs, series):
    volume = series()
    mask = blobs((4, 20, 30))
    structures = [
        Structure("lung", mask, coding=LUNG, measures=(Measure("PAIR_DICE", "Mean Dice", 0.87654321),)),
        Structure("rest", ~mask, measures=(Measure("PAIR_HD95", "Mean distance", np.nan, "mm"),)),
    ]
    report, segmentation = write_masks(
        tmp_path / "a_sr.dcm", "dicom-sr", structures, volume.grid, source=volume
    )
    assert (report.name, segmentation.name) == ("a_sr.dcm", "a_seg.dcm")
    groups = highdicom.sr.srread(report).content.get_volumetric_roi_measurement_groups()
    assert [group.tracking_identifier for group in groups] == ["Lung_L", "rest"]
    assert groups[0].finding_type.value == "39607008"
    values = [
        {
            measure.name.meaning: (float(measure.value), measure.unit.value)
            for measure in group.get_measurements()
        }
        for group in groups
    ]
    voxel = 0.7 * 0.9 * 2.5
    assert values[0] == {"Volume": (pytest.approx(mask.sum() * voxel), "mm3"), "Mean Dice": (0.87654321, "1")}
    assert values[1] == {"Volume": (pytest.approx((~mask).sum() * voxel), "mm3")}

    segments = pydicom.dcmread(segmentation)
    references = [
        item.ReferencedSOPSequence[0]
        for group in groups
        for item in group[0].ContentSequence
        if item.get("ValueType") == "IMAGE" and "ReferencedSegmentNumber" in item.ReferencedSOPSequence[0]
    ]
    assert [item.ReferencedSegmentNumber for item in references] == [1, 2]
    assert {item.ReferencedSOPInstanceUID for item in references} == {segments.SOPInstanceUID}
    assert segments.pixel_array.sum() == mask.size  # a structure and the rest of the volume


def test_a_structure_keeps_its_identifiers_from_report_to_report(tmp_path, blobs, series):
    volume = series()
    uids = []
    for name in ("first", "second"):
        structures = [
            Structure("lung", blobs((4, 20, 30), seed=len(uids))),
            Structure(name, blobs((4, 20, 30))),
        ]
        report, _ = write_masks(tmp_path / name, "dicom-sr", structures, volume.grid, source=volume)
        groups = highdicom.sr.srread(report).content.get_volumetric_roi_measurement_groups()
        uids.append([group.tracking_uid for group in groups])
    assert uids[0][0] == uids[1][0]
    assert uids[0][1] != uids[1][1]


def test_the_volume_over_uneven_slices_is_that_of_their_slabs(tmp_path, series):
    volume = series(heights=[0.0, 2.0, 5.0, 9.0])
    mask = np.zeros((4, 20, 30), dtype=bool)
    mask[1:3, 4:8, 5:15] = True
    report, _ = write_masks(tmp_path / "a", "dicom-sr", [Structure("a", mask)], volume.grid, source=volume)
    (group,) = highdicom.sr.srread(report).content.get_volumetric_roi_measurement_groups()
    (measure,) = group.get_measurements()
    assert float(measure.value) == pytest.approx(40 * 0.7 * 0.9 * (2.5 + 3.5))


def test_a_report_without_the_patient(tmp_path, blobs, series):
    volume, by = series(), Deidentifier(b"key" * 8, {})
    files = write_masks(
        tmp_path / "a", "dicom-sr", [Structure("a", blobs((4, 20, 30)))], volume.grid,
        source=volume, deidentify=by,
    )  # fmt: skip
    report, segmentation = map(pydicom.dcmread, files)
    for dataset in (report, segmentation):
        assert b"Jane" not in dataset.to_json().encode()
        assert "4711" not in str(dataset.PatientID)
    assert str(segmentation.SOPInstanceUID) in report.to_json()
    dates = [element for element in report.iterall() if element.VR in ("DA", "TM", "DT") and element.value]
    assert {str(element.value) for element in dates} == {"19000101", "000000"}


def test_maps_are_refused(tmp_path, series):
    volume = series()
    values = np.zeros((4, 20, 30), dtype=np.float32)
    with pytest.raises(InputError, match="is a map, but the format supports only masks"):
        write_masks(tmp_path / "a", "dicom-sr", [Structure("a", values)], volume.grid, source=volume)


@pytest.mark.skipif(not shutil.which("dsrdump"), reason="dcmtk is not installed")
def test_dcmtk_accepts_the_report(tmp_path, blobs, series):
    volume = series()
    structures = [Structure("lung", blobs((4, 20, 30)), coding=LUNG)]
    report, _ = write_masks(tmp_path / "a", "dicom-sr", structures, volume.grid, source=volume)
    done = subprocess.run(["dsrdump", str(report)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Comprehensive 3D SR Document" in done.stdout
    assert "Error" not in done.stderr
