"""A consensus that Raterscope exported is no rater: it is skipped with a sentence, unless asked for."""

import numpy as np
import pytest

from raterscope.app.cli import main
from raterscope.app.formats.masks.export import write_array
from raterscope.app.formats.masks.rtstruct import _BEYOND, _list_contours
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries
from raterscope.app.window.import_reading import new_study_path
from tests.app.kinds.masks.dicom_cases import a_patient, box


@pytest.fixture
def exported(tmp_path):
    """A study of two raters on a CT, and a function that exports its consensus in a format."""
    volume = a_patient(tmp_path / "ct")
    study = tmp_path / "s.rscope"
    files = []
    for rater, end in (("anna", 12), ("ben", 14)):
        files.append(tmp_path / f"ct_{rater}.nii.gz")
        write_array(files[-1], box(1, 4, 5, end, 6, 15).astype(np.uint8), volume.grid)
    assert main(["import", str(study), str(tmp_path / "ct"), *map(str, files), "--structure", "heart"]) == 0
    assert main(["run", str(study), "majority"]) == 0

    def export(form):
        path = tmp_path / f"consensus-{form}.dcm"
        assert main(["export", str(study), "--what", "consensus", "--format", form, "-o", str(path)]) == 0
        return path

    return study, export


def raters(study):
    with Study.open(study, to_read=True) as opened:
        return {entry.annotator for entry in mask_entries(opened)}


@pytest.mark.parametrize("form", ["dicom-seg", "rtstruct"])
def test_an_exported_consensus_becomes_no_rater(exported, form, capsys):
    study, export = exported
    path = str(export(form))
    assert main(["import", str(study), path]) == 0
    assert "This is a consensus of Raterscope, run 1 (majority" in "".join(capsys.readouterr())
    assert raters(study) == {"anna", "ben"}
    assert main(["import", str(study), path, "--kind", "truth"]) == 0
    assert raters(study) == {"anna", "ben", None}
    assert main(["import", str(study), path, "--annotator", "machine"]) == 0
    assert raters(study) == {"anna", "ben", None, "machine"}


def test_a_new_study_is_proposed_outside_of_the_series(tmp_path):
    volume = a_patient(tmp_path / "patient" / "ct")
    series = {path.parent for path in volume.files}
    assert new_study_path(tmp_path / "patient" / "ct", series) == tmp_path / "patient" / "ct.rscope"
    assert new_study_path(volume.files[0], series) == tmp_path / "patient" / "ct.rscope"
    assert new_study_path(tmp_path / "patient", series) == tmp_path / "patient" / "patient.rscope"


def test_a_new_study_is_not_named_after_a_folder_of_images(tmp_path):
    for folder, study in (("malaria/images", "malaria/malaria"), ("malaria/day1", "malaria/day1/day1")):
        (tmp_path / folder).mkdir(parents=True)
        assert new_study_path(tmp_path / folder) == tmp_path / f"{study}.rscope"
    assert new_study_path(tmp_path / "malaria/images/a.png") == tmp_path / "malaria/images/a.rscope"


def test_contours_in_a_notice_are_listed_by_structure():
    contours = [("GTV by anna", "contour 1 at 5.00 mm"), ("GTV by anna", "contour 2 at 7.50 mm")]
    assert _list_contours(_BEYOND, [*contours, ("heart", "contour 4 at 10.00 mm")]) == (
        "3 contours could not be placed: they are beyond the image's slices. GTV by anna: "
        "contour 1 at 5.00 mm, contour 2 at 7.50 mm; heart: contour 4 at 10.00 mm."
    )
