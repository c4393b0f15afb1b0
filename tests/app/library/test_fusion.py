"""Fusion from Python: the numbers of the command line, from any table or image."""

import csv
from xml.etree import ElementTree

import numpy as np
import pyarrow
import pytest

import raterscope as rs
from raterscope.app.library.inputs import frame_of_rows
from tests.app.commands import run
from tests.app.tables import write

CLASSES = np.array(["ring", "schizont"])


def votes():
    random = np.random.default_rng(4)
    truth = random.integers(0, 2, 30)
    rows = [
        (f"a{a}", f"cell {t:02}", CLASSES[truth[t] ^ (random.random() < 0.05 + 0.1 * a)])
        for a in range(5)
        for t in range(30)
    ]
    return dict(zip(("worker", "item", "answer"), map(list, zip(*rows, strict=True)), strict=True)), truth


def clicks():
    random = np.random.default_rng(5)
    spots = random.uniform(20, 180, (6, 2))
    rows = [
        (f"a{a}", f"smear {i}.png", *(spot + random.normal(0, 1.5, 2)).round(3).tolist())
        for a in range(8)
        for i in range(2)
        for spot in spots
        if random.random() < 0.9
    ]
    names = ("annotator", "image", "x", "y")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def pairs():
    random = np.random.default_rng(6)
    rows = []
    for a in range(12):
        for _ in range(25):
            left, right = random.choice(8, 2, replace=False).tolist()
            left_wins = left + random.normal(0, 1) + 4 * (a == 3) > right
            rows.append((f"a{a}", f"i{left}", f"i{right}", "left" if left_wins else "right"))
    names = ("annotator", "left", "right", "choice")
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def masks(dtype=bool):
    result = {}
    for number, name in enumerate(("anna", "ben", "carla", "dora")):
        mask = np.zeros((6, 30, 32), dtype=dtype)
        mask[1:5, 8 + number : 22, 6 : 24 + number] = 1
        result[name] = mask
    return result


def of_file(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return frame_of_rows(header, rows)


def assert_same(frame, other, rtol=1e-5):
    assert list(frame) == list(other)
    for name, column in frame.items():
        if column.dtype.kind == "U":
            assert column.tolist() == other[name].tolist(), name
        else:
            np.testing.assert_allclose(column, other[name].astype(float), rtol=rtol, atol=1e-9, err_msg=name)


def test_clicks_are_those_of_the_command_line(tmp_path):
    table = clicks()
    file = write(tmp_path / "clicks.csv", list(table), zip(*table.values(), strict=True))
    assert run("fuse", "clicks", file, "--extent", 200, 200, "--jobs", 1, "-o", tmp_path / "out") == 0
    result = rs.fuse_clicks(table, extent=(200, 200))
    for name in result.tables:
        assert_same(result.to_frame(name), of_file(tmp_path / "out" / f"{name}.csv"))
    assert result.to_frame()["detected"].sum() == 12


def test_labels_are_those_of_the_command_line(tmp_path):
    table, truth = votes()
    true = {"task": [f"cell {t:02}" for t in range(30)], "label": CLASSES[truth]}
    file = write(tmp_path / "votes.csv", list(table), zip(*table.values(), strict=True))
    truth_file = write(tmp_path / "truth.csv", list(true), zip(*true.values(), strict=True))
    assert run("fuse", "labels", file, "--truth", truth_file, "-o", tmp_path / "out") == 0
    result = rs.fuse_labels(table, truth=true)
    for name in ("labels", "annotators", "evaluation"):
        assert_same(result.to_frame(name), of_file(tmp_path / "out" / f"{name}.csv"))
    confusion = of_file(tmp_path / "out" / "confusion.csv")
    del confusion["step"]
    assert_same(result.to_frame("confusion"), confusion)
    assert result.to_frame("evaluation")["accuracy"][0] > 0.9


def test_pairs_are_those_of_the_command_line(tmp_path):
    table = pairs()
    file = write(tmp_path / "pairs.csv", list(table), zip(*table.values(), strict=True))
    assert run("fuse", "pairs", file, "-o", tmp_path / "out") == 0
    result = rs.fuse_pairs(table)
    for name in result.tables:
        assert_same(result.to_frame(name), of_file(tmp_path / "out" / f"{name}.csv"))
    annotators = result.to_frame("annotators")
    assert annotators["annotator"][annotators["flagged"]].tolist() == ["a3"]


def nifti(mask, spacing=(2.0, 0.5, 0.7)):
    nibabel = pytest.importorskip("nibabel")
    affine = np.diag([-spacing[2], -spacing[1], spacing[0], 1.0])
    return nibabel.Nifti1Image(mask.astype(np.uint8).transpose(2, 1, 0), affine)


def test_masks_are_those_of_the_command_line(tmp_path):
    nibabel = pytest.importorskip("nibabel")
    files = []
    for name, mask in masks().items():
        files.append(tmp_path / f"{name}.nii.gz")
        nibabel.save(nifti(mask), files[-1])
    assert run("fuse", "masks", *files, "-o", tmp_path / "out") == 0
    result = rs.fuse_masks(masks(), spacing=(2, 0.5, 0.7))
    for name in result.tables:
        assert_same(result.to_frame(name), of_file(tmp_path / "out" / f"{name}.csv"))
    written = np.asarray(nibabel.load(tmp_path / "out" / "uncertainty.nii.gz").dataobj).transpose(2, 1, 0)
    np.testing.assert_allclose(result.uncertainty, written, rtol=1e-5)
    consensus = np.asarray(nibabel.load(tmp_path / "out" / "consensus_mask.nii.gz").dataobj)
    assert np.array_equal(result.mask, consensus.transpose(2, 1, 0) > 0)


def test_masks_of_images_have_their_spacing_and_axes():
    simple_itk = pytest.importorskip("SimpleITK")
    arrays = masks()
    expected = rs.fuse_masks(arrays, spacing=(2, 0.5, 0.7))
    images = {}
    for name, mask in arrays.items():
        images[name] = simple_itk.GetImageFromArray(mask.astype(np.uint8))
        images[name].SetSpacing((0.7, 0.5, 2.0))
    of_images = rs.fuse_masks(images)
    assert np.array_equal(of_images.mask, expected.mask)
    assert_same(of_images.to_frame(), expected.to_frame())
    of_nifti = rs.fuse_masks({name: nifti(mask) for name, mask in arrays.items()})
    assert np.array_equal(of_nifti.mask.transpose(2, 1, 0), expected.mask)
    assert_same(of_nifti.to_frame(), expected.to_frame())
    with pytest.raises(rs.DataError, match="mask of anna: has a spacing of its own"):
        rs.fuse_masks(images, spacing=(1, 1, 1))


def test_maps_of_labels_are_a_structure_each():
    arrays = {name: mask * (1 + (np.arange(32) > 15)) for name, mask in masks(np.uint8).items()}
    result = rs.fuse_masks(arrays)
    assert result.structures() == ("label 1", "label 2")
    assert not (result.to_array("mask", "label 1") & result.to_array("mask", "label 2")).any()
    assert "bias_px" in result.to_frame()
    with pytest.raises(rs.DataError, match="several structures"):
        _ = result.mask


class Interchange:
    """A table that has nothing but the interchange protocol."""

    def __init__(self, table):
        self._table = pyarrow.table(table)

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self._table.__dataframe__(nan_as_null, allow_copy)


def to_pandas(table):
    return pytest.importorskip("pandas").DataFrame(table)


def to_categories(table):
    return to_pandas(table).astype({"worker": "category"}).set_index("item")


def to_polars(table):
    return pytest.importorskip("polars").DataFrame(table)


@pytest.mark.parametrize("convert", [pyarrow.table, Interchange, to_pandas, to_categories, to_polars])
def test_every_kind_of_table_gives_the_same(convert):
    table, _ = votes()
    table["answer"] = [None if at == 7 else int(name == "ring") for at, name in enumerate(table["answer"])]
    expected = rs.fuse_labels(table, algorithm="majority")
    assert set(expected.to_frame()["label"].tolist()) == {"0", "1"}
    assert_same(rs.fuse_labels(convert(table), algorithm="majority").to_frame(), expected.to_frame())
    assert any("no label" in notice for notice in expected.notices)


def test_a_column_per_annotator_is_read_too():
    wide = {"task": ["t1", "t2", "t3"], "rater 1": ["a", "b", "a"], "rater 2": ["a", "b", "b"]}
    result = rs.fuse_labels(wide, algorithm="majority")
    assert result.to_frame("annotators")["annotator"].tolist() == ["rater 1", "rater 2"]


def test_frames_become_tables_of_other_libraries():
    table, _ = votes()
    frame = rs.fuse_labels(table, algorithm="majority").to_frame()
    assert pyarrow.table(frame).column("label").to_pylist() == frame["label"].tolist()
    assert to_pandas(frame)["task"].tolist() == frame["task"].tolist()
    assert to_polars(frame)["task"].to_list() == frame["task"].tolist()


def test_several_questions_are_stacked():
    table, _ = votes()
    table["question"] = ["shape" if at % 2 else "stage" for at in range(len(table["item"]))]
    frame = rs.fuse_labels(table, algorithm="majority").to_frame()
    assert next(iter(frame)) == "question"
    assert set(frame["question"].tolist()) == {"shape", "stage"}


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ([1, 2], "a table is expected .* not list"),
        ({}, "no rows"),
        ({"worker": ["a"]}, "no column is recognised as task or label; .* names one"),
        ({"worker": ["a", "b"], "task": ["t", "t"], "label": ["x"]}, "column label: has 1 value, "),
        ({"worker": ["a", None], "task": ["t", "t"], "label": [1, 2]}, "row 2, column worker: is empty"),
        ({"worker": ["a"], "task": [[1]], "label": [1]}, "column task: "),
        ({"worker": ["a"], "task": ["t"], "label": [None]}, "column label: has no labels"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(table, problem):
    with pytest.raises(rs.DataError, match=problem) as refused:
        rs.fuse_labels(table)
    assert "\n" not in str(refused.value)
    assert str(refused.value).endswith(".")


def test_bad_values_are_refused_by_row_and_column():
    table = clicks()
    with pytest.raises(rs.DataError, match=r"the size of the image smear 0\.png is unknown"):
        rs.fuse_clicks(table)
    with pytest.raises(rs.DataError, match="expected width and height in pixels"):
        rs.fuse_clicks(table, extent=200)
    table["x"][4] = "left"
    with pytest.raises(rs.DataError, match=r'row 5, column x: "left" is not a number; .* pixels\.$'):
        rs.fuse_clicks(table, extent=(200, 200))
    with pytest.raises(rs.DataError, match="clicking is not a setting here"):
        rs.fuse_clicks(clicks(), extent=(200, 200), clicking=1)
    with pytest.raises(rs.DataError, match="row 1, column right: compares an item with itself"):
        rs.fuse_pairs({"annotator": ["a"], "left": ["i"], "right": ["i"], "choice": ["left"]})


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ([], "there are no masks"),
        ([np.ones((4, 4), bool), np.ones((5, 4), bool)], "mask of annotator 2: is on another grid"),
        ([np.ones(4)], r"mask of annotator 1: has the shape \(4,\)"),
        ([np.full((4, 4), 0.5 - 3j)], "values of type complex128"),
        ([np.full((4, 4), 2.5)], "has values from 0 to 2.5"),
    ],
)
def test_bad_masks_are_refused_by_name(bad, problem):
    with pytest.raises(rs.DataError, match=problem):
        rs.fuse_masks(bad)


def test_a_view_for_notebooks_is_short_and_escaped():
    table, _ = votes()
    table["item"][0] = "<script>alert(1)</script>"
    result = rs.fuse_labels(table, algorithm="majority")
    view = result._repr_html_()
    assert "<script>" not in view
    assert "&lt;script&gt;" in view
    assert view.count("<tr>") == 11
    assert "150 votes by 5 annotators" in view
    assert "150 votes by 5 annotators" in repr(result)
    assert "majority" in result.methods.lower()
    assert result.settings["algorithm"] == "majority"
    with pytest.raises(rs.DataError, match="no table ranking"):
        result.to_frame("ranking")


@pytest.mark.parametrize(
    ("fuse", "names"),
    [
        (lambda: rs.fuse_clicks(clicks(), extent=(200, 200)), [f"a{a}" for a in range(8)]),
        (lambda: rs.fuse_masks(masks()), list(masks())),
        (lambda: rs.fuse_labels(votes()[0], algorithm="majority"), [f"a{a}" for a in range(5)]),
        (lambda: rs.fuse_pairs(pairs()), [f"a{a}" for a in range(12)]),
    ],
)
def test_the_figure_of_a_result_names_its_annotators(fuse, names, tmp_path):
    figure = fuse().plot()
    drawing = ElementTree.fromstring(figure._repr_svg_())
    texts = [element.text for element in drawing.iter() if element.tag.endswith("text")]
    assert set(names) <= set(texts)
    assert figure.save(tmp_path / "figure.svg").read_text(encoding="utf-8") == figure.svg


def test_settings_are_those_of_the_algorithm():
    few = rs.fuse_clicks(clicks(), extent=(200, 200), detector="majority", algorithm="cem")
    assert few.settings["detector"] == "majority"
    assert few.settings["algorithm"] == "cem"
