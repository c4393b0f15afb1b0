"""Cases found by the names of files."""

import csv
import io

import pytest

from raterscope.app.batch.manifest import find_cases
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from tests.app.batch.test_batch import a_crowd
from tests.app.kinds.masks.made import a_ball, a_volume, write

BIDS = "sub-{subject}_ses-{session}_desc-lesion_rater-{rater}_mask.nii.gz"


@pytest.fixture
def derivatives(tmp_path):
    """Masks of two subjects, one with two sessions, by two raters each, and one image."""
    for subject, session in (("01", "1"), ("01", "2"), ("02", "1")):
        folder = tmp_path / f"sub-{subject}" / f"ses-{session}" / "anat"
        folder.mkdir(parents=True)
        for rater, radius in (("anna", 5.0), ("ben", 6.5)):
            name = BIDS.format(subject=subject, session=session, rater=rater)
            write(folder / name, a_ball(radius=radius))
    a_volume(tmp_path / "sub-02" / "ses-1" / "anat" / "sub-02_ses-1_T1w.nii.gz")
    return tmp_path


def test_derivatives_are_a_case_per_subject_and_session(derivatives):
    cases = find_cases(str(derivatives)).cases
    assert [case.name for case in cases] == ["sub-01_ses-1", "sub-01_ses-2", "sub-02_ses-1"]
    assert [len(case.files) for case in cases] == [2, 2, 3]
    pattern = derivatives / "sub-*" / "ses-*" / "anat" / "*_mask.nii.gz"
    assert [len(case.files) for case in find_cases(str(pattern)).cases] == [2, 2, 2]


def test_a_listed_table_is_a_manifest_of_the_same_cases(derivatives, capsys, monkeypatch):
    monkeypatch.chdir(derivatives)
    assert main(["batch", ".", "--list"]) == 0
    (derivatives / "saved.csv").write_text(capsys.readouterr().out.replace(",masks,", ",masks,", 1))
    assert main(["batch", "saved.csv", "--list"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["case"] for row in rows] == ["sub-01_ses-1", "sub-01_ses-2", "sub-02_ses-1"]
    assert all(len(row["files"].split(";")) >= 2 for row in rows)


@pytest.mark.usefixtures("cases_in_threads")
def test_found_cases_are_fused(derivatives, capsys):
    out = derivatives.with_name("found")
    assert main(["batch", str(derivatives / "sub-*"), "-o", str(out), "--jobs", "1"]) == 0
    assert "3 done" in capsys.readouterr().out
    with (out / "cases.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 3


def test_several_images_are_left_out_with_a_notice(derivatives):
    a_volume(derivatives / "sub-02" / "ses-1" / "anat" / "sub-02_ses-1_FLAIR.nii.gz")
    found = find_cases(str(derivatives))
    assert [len(case.files) for case in found.cases] == [2, 2, 2]
    assert "sub-02_ses-1" in found.notices[0]


def test_each_folder_is_a_case(tmp_path):
    for case in ("case1", "case2"):
        for reader in ("reader1", "reader2"):
            (tmp_path / case).mkdir(exist_ok=True)
            write(tmp_path / case / f"{reader}.nii.gz", a_ball())
    assert [case.name for case in find_cases(str(tmp_path)).cases] == ["case1", "case2"]


def test_names_follow_a_given_pattern(tmp_path):
    for reader in ("kim", "lee"):
        for item in ("x7", "y8"):
            write(tmp_path / f"{reader}--{item}.nii.gz", a_ball())
    found = find_cases(str(tmp_path), "{annotator}--{item}")
    assert {case.name: len(case.files) for case in found.cases} == {"x7": 2, "y8": 2}
    assert {row[5] for row in found.rows("{annotator}--{item}")} == {"{annotator}--{item}"}


def test_tables_are_a_case_per_study_and_kind(tmp_path):
    for study in ("a", "b"):
        (tmp_path / study / "images").mkdir(parents=True)
        (tmp_path / study / "images" / "1.png").touch()
        (tmp_path / study / "clicks.csv").write_text("image,annotator,x,y\n1.png,kim,3,4\n")
    a_crowd(tmp_path / "b" / "votes.csv")
    (tmp_path / "notes.csv").write_text("date,text\n1,hello\n")
    cases = {case.name: case for case in find_cases(str(tmp_path)).cases}
    assert {name: case.kind for name, case in cases.items()} == {
        "a": "clicks", "b_clicks": "clicks", "b_labels": "labels",
    }  # fmt: skip
    assert cases["a"].files == (str(tmp_path / "a/images/*.png"), str(tmp_path / "a/clicks.csv"))


def test_a_folder_without_annotations_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no masks"):
        find_cases(str(tmp_path))
