"""Preview of an import before anything is stored: contents, columns, names and their spellings."""

import shlex

import numpy as np
import pytest
from PIL import Image

from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats.sources import Source
from raterscope.app.import_preview import change_names, parse_changes, preview_readings, suggest_classes
from raterscope.app.importing import read_files
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries
from tests.app.formats.dicom_builder import write_contours, write_series

NAMED = MaskOptions(naming="{item}_{annotator}_{structure}")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def votes(tmp_path):
    rows = ["worker,url,answer,page"]
    rows += [
        f"{worker},u{task},{answer},-"
        for worker, answer in (("ann", "Cat"), ("bob", "cat"))
        for task in (1, 2)
    ]
    rows += ["cy,u1,cat,-", "cy,u2,dog,-"]
    return write(tmp_path / "votes.csv", "\n".join(rows) + "\n")


def draw_masks(folder, names):
    """A mask by each rater of each name, on one image."""
    folder.mkdir(exist_ok=True)
    values = np.zeros((40, 40), dtype=np.uint8)
    values[10:20, 10:20] = 255
    paths = []
    for name in names:
        paths.append(folder / f"{name}.png")
        Image.fromarray(values).save(paths[-1])
    return paths


def test_a_preview_counts_what_a_table_holds_and_names_its_columns(votes):
    preview = preview_readings(read_files([votes]))
    assert preview.contents == ("6 labels by 3 annotators on 2 tasks",)
    (layout,) = preview.layouts
    assert layout.fields == {"worker": "annotator", "url": "task", "answer": "label"}
    assert layout.rows[0] == ("ann", "u1", "Cat", "-")
    assert preview.names["annotator"] == {"ann": 2, "bob": 2, "cy": 2}
    assert preview.names["class"] == {"Cat": 2, "cat": 3, "dog": 1}


def test_spellings_of_a_class_are_joined_if_requested(votes):
    readings = read_files([votes])
    preview = preview_readings(readings)
    assert preview.suggested.class_ == {"Cat": "cat"}
    joined = preview_readings(change_names(readings, preview.suggested))
    assert joined.names["class"] == {"cat": 5, "dog": 1}


def test_annotators_with_one_new_name_become_one(tmp_path):
    clicks = write(tmp_path / "c.csv", "annotator,image,x,y\nann,a.png,1,2\nAnn K.,a.png,5,6\nbob,a.png,,\n")
    readings = change_names(read_files([clicks]), parse_changes(["annotator:Ann K.=ann"]))
    (table,) = readings.clicks
    assert table.annotators == ("ann", "bob")
    assert table.annotator.tolist() == [0, 0]
    assert table.looked == {(1, 0)}


def test_structures_of_three_spellings_are_one_structure(tmp_path):
    masks = draw_masks(tmp_path / "m", ("case1_ann_GTV", "case1_bob_gtv", "case1_cy_GTVp"))
    readings = read_files(masks, reading=NAMED)
    preview = preview_readings(readings)
    assert preview.names["structure"] == {"GTV": 1, "gtv": 1, "GTVp": 1}
    assert preview.suggested.structure == {"gtv": "GTV", "GTVp": "GTV"}
    joined = preview_readings(change_names(readings, preview.suggested))
    assert joined.names["structure"] == {"GTV": 3}


def test_an_import_names_the_command_that_joins_spellings(tmp_path, capsys):
    masks = draw_masks(tmp_path / "m", ("case1_ann_left lung", "case1_bob_Left Lung"))
    study = str(tmp_path / "s.rscope")
    assert main(["import", study, *map(str, masks), "--naming", "{item}_{annotator}_{structure}"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    suggestion, _, command = line.partition(": raterscope ")
    assert suggestion.endswith("is probably left lung")
    assert main(shlex.split(command.removesuffix(" joins them"))) == 0
    with Study.open(study) as opened:
        entries = mask_entries(opened, opened.images()[0].id)
        assert {(entry.annotator, entry.structure) for entry in entries} == {
            ("ann", "left lung"), ("bob", "left lung"),
        }  # fmt: skip


def test_two_structures_that_a_rater_drew_on_one_image_stay_two(tmp_path):
    names = ("case1_ann_GTV", "case1_ann_GTVp", "case1_bob_GTV")
    readings = read_files(draw_masks(tmp_path / "m", names), reading=NAMED)
    assert preview_readings(readings).suggested.structure == {}
    with pytest.raises(InputError):
        preview_readings(change_names(readings, parse_changes(["structure:GTVp=GTV"])))


def test_the_image_of_every_mask_is_known(tmp_path):
    readings = read_files(draw_masks(tmp_path / "m", ("case1_ann_GTV", "case2_ann_GTV")), reading=NAMED)
    placed = preview_readings(readings).placed
    assert {mask.file.name: image for mask, image in placed} == {
        "case1_ann_GTV.png": "case1",
        "case2_ann_GTV.png": "case2",
    }


def test_the_size_of_images_without_a_file_is_proposed_from_the_clicks(tmp_path):
    clicks = write(tmp_path / "c.csv", "annotator,image,px,py\nann,a.png,99.5,20\nbob,a.png,5,60\n")
    preview = preview_readings(read_files([clicks]))
    assert preview.unsized == ("a.png",)
    assert preview.extent == (100, 61)


def test_the_command_prints_a_preview_and_stores_nothing(votes, tmp_path, capsys):
    study = tmp_path / "s.rscope"
    assert main(["import", str(study), str(votes), "--preview"]) == 0
    out = capsys.readouterr().out
    assert "6 labels by 3 annotators on 2 tasks" in out
    assert "worker: annotator" in out
    assert "ignored: page" in out
    assert "--rename class:Cat=cat" in out
    assert not study.exists()


def test_the_command_imports_under_other_names(votes, tmp_path):
    study = tmp_path / "s.rscope"
    changes = ["--rename", "annotator:bob=Robert", "--join-spellings"]
    assert main(["import", str(study), str(votes), *changes]) == 0
    with Study.open(study) as opened:
        (question,) = opened.questions()
        assert set(question.scheme.outputs) == {"cat", "dog"}
        assert "Robert" in opened.annotators()


@pytest.mark.parametrize("change", ["class:bird=owl", "structure", "color:red=blue", "class:=cat"])
def test_a_change_of_a_name_that_does_not_occur_is_refused(votes, tmp_path, change, capsys):
    study = tmp_path / "s.rscope"
    assert main(["import", str(study), str(votes), "--rename", change]) == 1
    assert not study.exists()


def contour_set(folder, names, rater=""):
    series = write_series(folder / "ct")
    square = np.array([[-10.0, -20, 50], [0, -20, 50], [0, -10, 50], [-10, -10, 50]])
    square[:, 2] = series.places[4, 2]
    outlines = {name: [(square, None)] for name in names}
    return [folder / "ct", write_contours(folder / "contours.dcm", series, outlines, rater=rater)]


def test_structure_names_that_end_with_the_rater_name_the_raters(tmp_path):
    preview = preview_readings(read_files(contour_set(tmp_path, ("GTV_Adler", "GTV_Brandt"))))
    assert preview.names["annotator"] == {"Adler": 1, "Brandt": 1}
    assert preview.names["structure"] == {"GTV": 2}


def test_a_named_operator_is_the_rater_of_all_structures(tmp_path):
    files = contour_set(tmp_path, ("GTV_Adler", "GTV_Brandt"), rater="Kim")
    assert preview_readings(read_files(files)).names["annotator"] == {"Kim": 2}
    split = MaskOptions(structure_naming="{structure}_{annotator}")
    preview = preview_readings(read_files(files, reading=split))
    assert preview.names["annotator"] == {"Adler": 1, "Brandt": 1}


def test_classes_of_clicks_are_named_and_joined(tmp_path):
    rows = "annotator,image,x,y,class\nann,a.png,1,2,Ring\nbob,a.png,1,3,ring\nbob,a.png,9,9,\n"
    readings = read_files([write(tmp_path / "c.csv", rows)])
    assert preview_readings(readings).names["class"] == {"Ring": 1, "ring": 1}
    (table,) = change_names(readings, parse_changes(["class:ring=Ring"])).clicks
    assert table.classes == ("Ring",)
    assert table.label.tolist() == [0, 0, -1]


def test_classes_without_a_name_are_no_answer(votes, tmp_path):
    truth = write(tmp_path / "truth.csv", "task,label\nu1,cat\nu2,skip\n")
    clicks = write(tmp_path / "c.csv", "annotator,image,x,y,class\nann,a,1,2,skip\nann,a,3,4,ring\n")
    changes = parse_changes(["class:Cat=", "class:skip="])
    readings = change_names(read_files([votes, truth, clicks]), changes)
    (points,) = readings.clicks
    assert (points.classes, points.label.tolist()) == (("ring",), [-1, 0])
    labels, true = readings.labels
    assert labels.outputs == ("cat", "dog")
    assert [labels.outputs[at] for at in labels.label] == ["cat", "cat", "cat", "dog"]
    assert [labels.annotators[at] for at in labels.annotator] == ["bob", "bob", "cy", "cy"]
    assert labels.unlabelled.tolist() == [[0, 0], [0, 1]]
    assert labels.missing == 2
    assert (true.tasks, true.classes) == (("u1",), ("cat",))
    every = parse_changes(["class:Cat=", "class:cat=", "class:dog="])
    with pytest.raises(InputError, match="has no class with a name"):
        change_names(read_files([votes]), every)
    for text in ("annotator:ann=", "structure:a=", "class:cat"):
        with pytest.raises(InputError, match="is not a change of a name"):
            parse_changes([text])


def test_rejected_assignments_are_skipped_with_a_notice(tmp_path):
    header = "HITId,WorkerId,AssignmentStatus,Input.url,Answer.animal,Answer.size\n"
    rows = ["h1,ann,Approved,u1,cat,big", "h1,bob,Rejected,u1,dog,big", "h1,cy,Submitted,u1,cat,small"]
    readings = read_files([write(tmp_path / "Batch.csv", header + "\n".join(rows) + "\n")])
    preview = preview_readings(readings)
    assert preview.names["annotator"] == {"ann": 2, "cy": 2}
    assert "Batch.csv: 1 row skipped: the answer was rejected or ignored." in preview.notices


def test_a_row_without_an_answer_is_reported_once(tmp_path, capsys):
    votes = write(tmp_path / "v.csv", "worker,task,label\nann,t1,a\nbob,t1,\n")
    assert main(["import", str(tmp_path / "s.rscope"), str(votes)]) == 0
    assert capsys.readouterr().out.count("skipped") == 1


def test_columns_with_numbers_as_names_are_a_header(tmp_path):
    table = write(tmp_path / "probabilities.csv", "task,0,1\na,0.2,0.8\nb,0.9,0.1\n")
    assert Source(table).table().header == ("task", "0", "1")
    assert Source(table).head().table.header == ("task", "0", "1")
    bare = write(tmp_path / "bare.csv", "ann,a.png,1,2\nbob,a.png,3,4\n")
    assert len(Source(bare).table()) == 2


def test_a_volume_with_few_levels_of_grey_is_a_volume(tmp_path):
    nib = pytest.importorskip("nibabel")
    z, y, x = np.indices((20, 40, 40))
    distance = np.hypot(np.hypot(x - 20, y - 20), 2.0 * (z - 10))
    grey = np.clip(8 - distance / 2, 0, 7).astype(np.uint8) * 16
    nib.save(nib.Nifti1Image(grey, np.eye(4)), tmp_path / "image.nii.gz")
    readings = read_files([tmp_path / "image.nii.gz"])
    assert len(readings.volumes) == 1
    labels = np.zeros((20, 40, 40), dtype=np.uint8)
    for label in range(1, 7):
        labels[5:10, 5:30, 6 * label - 5 : 6 * label - 2] = label
    nib.save(nib.Nifti1Image(labels, np.eye(4)), tmp_path / "organs_ann.nii.gz")
    readings = read_files([tmp_path / "organs_ann.nii.gz"], reading=MaskOptions(annotator="ann"))
    assert len(readings.attributed) == 6


def test_clicks_on_images_that_did_not_come_are_announced(tmp_path):
    Image.fromarray(np.full((80, 90, 3), 200, dtype=np.uint8)).save(tmp_path / "a.png")
    clicks = write(tmp_path / "c.csv", "annotator,image,x,y\nann,a.png,5,6\nann,b.png,5,6\nbob,b.png,7,8\n")
    preview = preview_readings(read_files([tmp_path / "a.png", clicks]))
    assert preview.unsized == ()
    assert "3 clicks by 2 annotators on 2 images (2 without an image will be skipped)" in preview.contents
    assert "c.csv: marks without an image are skipped: b.png (2)." in preview.notices


def test_classes_that_differ_in_a_sign_or_a_number_are_not_joined():
    for names in (
        ("-1", "1"),
        ("ER+", "ER-"),
        ("1-5", "15"),
        ("1.5", "15"),
        ("grade -1", "grade 1"),
        ("+", "-"),
    ):
        assert suggest_classes(dict.fromkeys(names, 1)) == {}
    spellings = {
        "No parasite": 3,
        "no_parasite": 1,
        "no-parasite": 1,
        "noparasite ": 1,
        "stage 1": 2,
        "Stage1": 1,
    }
    assert suggest_classes(spellings) == {
        **dict.fromkeys(("no_parasite", "no-parasite", "noparasite "), "No parasite"),
        "Stage1": "stage 1",
    }
