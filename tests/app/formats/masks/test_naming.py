"""Annotator, item and structure from the names of files."""

from pathlib import Path

import pytest

from raterscope.app.ambiguous_files import names_by
from raterscope.app.errors import InputError
from raterscope.app.formats.masks.naming import (
    compare_names,
    parse_bids,
    parse_name,
    parse_path,
    strip_suffixes,
)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("case07_reader2_liver", "{item}_{annotator}_{structure}", ("case07", "reader2", "liver")),
        ("case_07_reader2_liver", "{item}_{annotator}_{structure}", ("case_07", "reader2", "liver")),
        ("reader1_case_07", "{annotator}_{item}", ("case_07", "reader1", None)),
        ("x.anna.final", "*.{annotator}.*", (None, "anna", None)),
        ("anna/case1", "{annotator}/{item}", ("case1", "anna", None)),
        ("case1", "{item}_{annotator}", None),
    ],
)
def test_patterns(text: str, pattern: str, expected: object) -> None:
    assert parse_name(text, pattern) == expected


@pytest.mark.parametrize("pattern", ["liver", "{who}", "{item}{item}", "{item}" + "*" * 20])
def test_patterns_that_are_none(pattern: str) -> None:
    with pytest.raises(InputError, match="not a pattern of names"):
        parse_name("a", pattern)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sub-01_rater-A_mask.nii.gz", ("sub-01", "A", None)),
        (
            "sub-01_ses-2_run-1_space-T1w_rater-2_label-lesion_mask.nii.gz",
            ("sub-01_ses-2_run-1", "2", "lesion"),
        ),
        ("sub-01_desc-edema_rater-B_dseg.nii.gz", ("sub-01", "B", "edema")),
        ("sub-01_desc-manual_mask.nii.gz", None),
        ("rater-A_mask.nii.gz", None),
    ],
)
def test_entities_of_bids(name: str, expected: object) -> None:
    assert parse_bids(Path(name)) == expected


def test_folders_count_where_the_pattern_has_them() -> None:
    path = Path("study/anna/case1.seg.nrrd")
    assert strip_suffixes(path) == strip_suffixes(Path("case1.ome.nii.gz")) == "case1"
    assert parse_path(path, "{annotator}/{item}") == ("case1", "anna", None)
    assert parse_path(path, "{item}") == ("case1", None, None)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["rater1.nii.gz", "rater2.nii.gz"], [(None, "rater1", None), (None, "rater2", None)]),
        (["anna.nii", "bob.nii"], [(None, "anna", None), (None, "bob", None)]),
        (["liver_anna.nii", "liver_bob.nii"], [(None, "anna", "liver"), (None, "bob", "liver")]),
        (["case1.nii", "case2.nii"], [("case1", None, None), ("case2", None, None)]),
        (
            ["case07_reader2_liver.nii.gz", "case08_reader1_liver.nii.gz"],
            [("case07", "reader2", "liver"), ("case08", "reader1", "liver")],
        ),
        (
            ["12_anna_liver.nii", "12_bob_spleen.nii", "13_bob_liver.nii"],
            [("12", "anna", "liver"), ("12", "bob", "spleen"), ("13", "bob", "liver")],
        ),
        (
            ["anna/case1.png", "bob/case1.png", "anna/case2.png"],
            [("case1", "anna", None), ("case1", "bob", None), ("case2", "anna", None)],
        ),
        (
            ["Anna Müller/case1.png", "Dr. Bo-Ek/case1.png", "Anna Müller/case2.png"],
            [("case1", "Anna Müller", None), ("case1", "Dr. Bo-Ek", None), ("case2", "Anna Müller", None)],
        ),
        (
            ["case1/r1.png", "case1/r2.png", "case2/r1.png"],
            [("case1", "r1", None), ("case1", "r2", None), ("case2", "r1", None)],
        ),
        (
            ["case_07_seg_reader_1.nrrd", "case_07_seg_reader_2.nrrd"],
            [("case 07", "reader 1", None), ("case 07", "reader 2", None)],
        ),
        (["one.nii"], [(None, None, None)]),
        (
            ["case3_reader2_left.nii", "case3_reader1.nii"],
            [("case3", "reader2", "left"), ("case3", "reader1", None)],
        ),
        (
            ["Person1_Amira/b01.png", "crowd2/b01.png", "Person1_Amira/b02.png", "crowd2/b02.png"],
            [
                ("b01", "Person1_Amira", None),
                ("b01", "crowd2", None),
                ("b02", "Person1_Amira", None),
                ("b02", "crowd2", None),
            ],
        ),
        (
            ["b01/Person1_Amira.png", "b01/team2.png", "b02/Person1_Amira.png", "b02/team2.png"],
            [
                ("b01", "Person1_Amira", None),
                ("b01", "team2", None),
                ("b02", "Person1_Amira", None),
                ("b02", "team2", None),
            ],
        ),
        (
            ["p1/heart_obs1.nii", "p1/lung_left_obs1.nii", "p2/heart_obs1.nii", "p2/lung_left_obs1.nii"],
            [(case, "obs1", structure) for case in ("p1", "p2") for structure in ("heart", "lung_left")],
        ),
        (
            ["2021-03-01_JS.nii", "2021-03-01_MK.nii", "2021-04-02_JS.nii", "2021-04-02_MK.nii"],
            [(f"{day}", rater, None) for day in ("03_01", "04_02") for rater in ("JS", "MK")],
        ),
        (
            [f"im1_p{k}_{organ}.png" for k in (1, 2) for organ in ("liver", "spleen")]
            + ["im2_p1_liver.png", "im2_p1_spleen.png"],
            [("im1", f"p{k}", organ) for k in (1, 2) for organ in ("liver", "spleen")]
            + [("im2", "p1", "liver"), ("im2", "p1", "spleen")],
        ),
        (
            [f"img{k}_label{n}_{who}.png" for k in (1, 2) for n in (1, 2) for who in ("anna", "ben")],
            [(f"img{k}", who, f"label{n}") for k in (1, 2) for n in (1, 2) for who in ("anna", "ben")],
        ),
        (
            [f"{who}/img{k}_label{n}.png" for who in ("anna", "ben") for k in (1, 2) for n in (1, 2)],
            [(f"img{k}", who, f"label{n}") for who in ("anna", "ben") for k in (1, 2) for n in (1, 2)],
        ),
        (
            ["p1_s1_anna.png", "p1_s2_ben.png", "p2_s1_anna.png"],
            [("p1_s1", "anna", None), ("p1_s2", "ben", None), ("p2_s1", "anna", None)],
        ),
        ([], []),
    ],
)
def test_what_differs_between_names(names: list[str], expected: list[object]) -> None:
    assert list(compare_names(map(Path, names)).values()) == expected


@pytest.mark.parametrize("layout", ["{rater}/{image}.png", "{image}/{rater}.png"])
def test_image_names_distinguish_images_from_raters(layout: str) -> None:
    """Both have numbers, so only the names of the images decide."""
    raters, images = ("X7_a", "q12"), ("A1", "B7")
    files = {
        Path(layout.format(rater=rater, image=image)): (rater, image) for rater in raters for image in images
    }
    names = names_by(list(files), [f"{image}.png" for image in images])
    for file, (rater, image) in files.items():
        assert (names[file].item or "").removesuffix(".png") == image
        assert names[file].annotator == rater


@pytest.mark.parametrize("images", [["A.png", "B.png"], ["A/image.png", "B/image.png"]])
def test_folders_named_like_images_are_cases(images: list[str]) -> None:
    files = [Path(f"{case}/annotation_{number}.png") for case in "AB" for number in (1, 2)]
    names = names_by(files, images)
    assert [(name.item, name.annotator) for name in names.values()] == [
        (image, f"annotation {number}") for image in images for number in (1, 2)
    ]
    assert names_by(files, ["1.png", "2.png"])[files[0]].annotator == "A"


def test_folders_of_numbered_annotations_are_cases_without_images() -> None:
    files = [Path(f"{folder}/annotation_{number}.png") for folder in "AB" for number in (1, 2)]
    assert names_by(files, [])[files[3]][:2] == ("B", "annotation 2")
    files = [Path(f"{folder}/mask_{number}.png") for folder in ("anna", "ben") for number in (1, 2)]
    assert names_by(files, [])[files[3]][:2] == ("mask 2", "ben")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            "case0{c}/task01_seg0{r}.nii.gz",  # QUBIQ 2020
            [("case01", "seg01", "task01"), ("case01", "seg02", "task01"), ("case02", "seg01", "task01")],
        ),
        (
            "UKCHLL00{c}/annotation_{r}.nii.gz",  # CURVAS 2024
            [
                ("UKCHLL001", "annotation 1", None),
                ("UKCHLL001", "annotation 2", None),
                ("UKCHLL002", "annotation 1", None),
            ],
        ),
        (
            "p0{c}/Masks/ManualSegmentation_{r}.nii.gz",  # MSSEG 2016
            [
                ("p01", "ManualSegmentation 1", None),
                ("p01", "ManualSegmentation 2", None),
                ("p02", "ManualSegmentation 1", None),
            ],
        ),
        (
            "training0{c}_0{c}_mask{r}.nii",  # ISBI 2015, longitudinal MS lesions
            [
                ("training01_01", "mask1", None),
                ("training01_01", "mask2", None),
                ("training02_02", "mask1", None),
            ],
        ),
    ],
)
def test_names_of_public_data_sets(files: str, expected: list[object]) -> None:
    names = [files.format(c=case, r=rater) for case, rater in ((1, 1), (1, 2), (2, 1), (2, 2))]
    assert list(compare_names(map(Path, names)).values())[:3] == expected
