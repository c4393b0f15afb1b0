"""The sample of masks, with and without the package that carries radiologists' outlines."""

import nibabel
import numpy as np
import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.importing import import_files
from raterscope.app.kinds.masks.sample import (
    STUDY,
    Nodule,
    about,
    choose_nodules,
    is_real,
    make_sample,
    two_schools,
)
from raterscope.app.review import Decision
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries
from tests.app.kinds.masks.test_lidc_package import HEIGHTS, box, make

RATERS = [f"rater {number}" for number in range(1, 8)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sample of two simulated cases, and of nodules from a made-up database."""
    folder = tmp_path_factory.mktemp("sample")
    scans = [
        (f"LIDC-IDRI-{number:04d}", HEIGHTS, [box(200, 300, 20 + number * reader) for reader in range(4)])
        for number in range(1, 4)
    ]
    make_sample(folder, import_files, make(folder / "made.sqlite", scans), cases=2)
    return folder


def masks_of(folder, name):
    with Study.open(folder / STUDY) as study:
        (image,) = [entry.id for entry in study.images() if entry.name == name]
        return {mask.annotator: mask for mask in mask_entries(study, image)}


def test_the_files_are_marked_as_simulated(folder):
    files = list((folder / "simulated_prostates").iterdir())
    assert len(files) == 2 * (1 + 7 + 1)
    assert all(file.name.startswith("simulated_") for file in files)
    volume = nibabel.load(folder / "simulated_prostates" / "simulated_1.nii.gz")
    assert volume.get_data_dtype() == np.int16
    np.testing.assert_allclose(volume.header.get_zooms(), (0.9, 0.9, 1.5))


def test_the_study_holds_volumes_seven_raters_and_the_truth(folder):
    with Study.open(folder / STUDY) as study:
        simulated = [entry for entry in study.images() if not is_real(entry)]
        assert [entry.name for entry in simulated] == ["simulated_1.nii.gz", "simulated_2.nii.gz"]
        assert all(study.locate(entry).is_file() for entry in simulated)
    for name in ("simulated_1.nii.gz", "simulated_2.nii.gz"):
        masks = masks_of(folder, name)
        assert set(masks) == {*RATERS, None}
        assert {mask.structure for mask in masks.values()} == {"prostate"}


def test_the_raters_have_the_habits_that_the_text_shows(folder):
    plain, divided = masks_of(folder, "simulated_1.nii.gz"), masks_of(folder, "simulated_2.nii.gz")
    true = plain[None].voxels
    assert max(plain[name].voxels for name in RATERS if name != "rater 4") < plain["rater 4"].voxels
    assert plain["rater 3"].voxels > 1.08 * true
    assert all(
        abs(plain[name].voxels / true - 1) < 0.12 for name in ("rater 1", "rater 2", "rater 6", "rater 7")
    )
    assert two_schools()[0] == "simulated_2"
    wider = min(divided[name].voxels for name in RATERS[4:])
    assert wider > 1.05 * max(divided[name].voxels for name in RATERS[:2])


def test_nodules_have_readers_of_their_own_ct_alone(folder):
    with Study.open(folder / STUDY) as study:
        real = [entry for entry in study.images() if is_real(entry)]
        assert {entry.name for entry in real} == {f"LIDC-000{number} nodule 1" for number in (1, 2, 3)}
        assert all(entry.grid.calibrated for entry in real)
        raters_of = [{mask.annotator for mask in mask_entries(study, entry.id)} for entry in real]
    assert all(len(readers) == 4 for readers in raters_of)
    assert len(set.union(*raters_of)) == 12
    assert "0002 R3" in set.union(*raters_of)


def test_the_text_distinguishes_the_real_from_the_simulated(folder, tmp_path):
    with Study.open(folder / STUDY) as study:
        words = " ".join(about(study).split())
    assert "Armato" in words
    assert "doi:10.7937/K9/TCIA.2015.LO9QL9SX" in words
    assert "Creative Commons Attribution 3.0" in words
    assert "does not name the radiologists" in words
    with Study.open(make_sample(tmp_path, import_files, cases=1)) as study:
        assert not any(map(is_real, study.images()))
        assert "LIDC-IDRI) are not in masks.rscope" in about(study)


def test_decisions_in_a_study_that_is_there_are_kept(folder):
    with Study.open(folder / STUDY) as study:
        study.record(Decision(verb="exclude", annotators=("rater 4",)))
    make_sample(folder, import_files, cases=1)
    with Study.open(folder / STUDY) as study:
        assert len(study.decisions()) == 1


def nodule(patient, shift):
    """Four readers on one line of voxels, of which two mark `shift` voxels further on."""
    masks = np.zeros((4, 1, 1, 40), dtype=bool)
    for mask, start in zip(masks, (0, 0, shift, shift), strict=True):
        mask[..., start : start + 20] = True
    return Nodule(patient, 1, "", (1, 2, 3, 4), Grid.plain((1, 1, 40)), (0, 0, 0), masks)


def test_those_that_are_agreed_on_least_and_most_are_chosen_one_a_patient():
    nodules = [nodule(f"{shift}", shift) for shift in range(1, 16)]
    second = [nodule("15", 16), nodule("1", 0)]  # smaller ones of the same patients come later
    chosen = [nodule.patient for nodule in choose_nodules([*nodules, *second])]
    assert chosen == ["15", "14", "13", "12", "11", "3", "2", "1"]
    assert [nodule.patient for nodule in choose_nodules(nodules[:3])] == ["3", "2", "1"]
