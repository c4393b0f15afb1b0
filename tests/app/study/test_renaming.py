"""Structures and classes get other names: in annotations, results, decisions and exports, with undo."""

import csv

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.clicks.result import SpotClasses
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.cli import main
from raterscope.app.decision_tables import TableProblems, record_decisions
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.review import Decision, RegionSubject, fold, undo
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks, mask_entries, read_masks
from raterscope.app.study.runs import _renamed, make_renaming, present_names
from tests.app.workspaces.masks.made import SHAPE, SPACING, ball

DRAWN = {"ann": "gtv", "ben": "gtv", "cat": "GTV", "dan": "GTV"}


@pytest.fixture
def study(tmp_path):
    """Four raters' masks of one structure under two names, and the heart of one."""
    with Study.create(tmp_path / "names.rscope") as study:
        case = add_case(study, "case", Grid.plain(SHAPE, SPACING, calibrated=True))
        masks = [
            PlacedMask(case.id, rater, name, (0, 0, 0), ball(7.0 + number))
            for number, (rater, name) in enumerate(DRAWN.items())
        ]
        masks.append(PlacedMask(case.id, "ann", "heart", (0, 0, 0), ball(3.0)))
        add_masks(study, masks, "masks")
        yield study


def fuse(study):
    return keep(fuse_inputs(gather([entry.id for entry in study.images()], study), MaskPlan()), study)


def test_merged_structures_are_fused_as_one_and_undo_separates_them(study):
    fuse(study)
    _, before = study.shown.result(1, "masks")
    assert before.structures() == ("GTV", "gtv", "heart")
    study.record(make_renaming(study, "masks", "gtv", "GTV"))
    assert present_names(study, "masks") == ("GTV", "heart")
    assert list(read_masks(study, 1, "GTV")) == ["ann", "ben", "cat", "dan"]
    assert {entry.structure for entry in mask_entries(study)} == {"GTV", "heart"}
    run, result = study.shown.result(1, "masks")
    assert result.structures() == ("heart",)
    (reason,) = study.shown.outdated(run, [1])
    assert "merged" in reason
    fuse(study)
    run, result = study.shown.result(1, "masks")
    assert result.structures() == ("GTV", "heart")
    assert result.fusions[0].annotators == ("ann", "ben", "cat", "dan")
    assert study.shown.outdated(run, [1]) == []
    study.record(undo(fold(study.decisions())))
    assert present_names(study, "masks") == ("GTV", "gtv", "heart")
    assert list(read_masks(study, 1, "gtv")) == ["ann", "ben"]
    assert study.shown.result(1, "masks")[1].structures() == ("heart",)


def test_a_mask_under_the_other_name_of_a_merged_structure_replaces_with_a_notice(study, tmp_path, capsys):
    study.record(make_renaming(study, "masks", "gtv", "GTV"))
    second = [
        PlacedMask(1, "ann", "GTV", (0, 0, 0), ball(5.0)),
        PlacedMask(1, "eve", "gtv", (0, 0, 0), ball(5.0)),
    ]
    assert "1 replacing an earlier mask" in add_masks(study, second, "second")
    pixels = np.zeros(SHAPE[1:], dtype=np.uint8)
    pixels[4:9, 4:9] = 255
    Image.fromarray(pixels).save(tmp_path / "slide_ann_gtv.png")
    naming = ["--naming", "{item}_{annotator}_{structure}", "--preview"]
    study.close()
    assert main(["import", str(study.path), str(tmp_path / "slide_ann_gtv.png"), *naming]) == 0
    assert "GTV and gtv are one structure in the study: a mask of it replaces" in capsys.readouterr().out


def test_a_renamed_structure_keeps_its_result_and_its_decisions(study):
    fuse(study)
    subject = RegionSubject(structure="heart", origin=(0, 0, 0), shape=(1, 1, 1), number=1)
    study.record(Decision(verb="skip", item=1, run=1, subject=subject))
    study.record(make_renaming(study, "masks", "heart", "Heart"))
    run, result = study.shown.result(1, "masks")
    assert result.structures() == ("GTV", "gtv", "Heart")
    assert study.shown.outdated(run, [1]) == []
    assert [region.subject.structure for region in fold(study.decisions()).regions(1)] == ["Heart"]
    study.record(make_renaming(study, "masks", "Heart", "heart"))
    assert present_names(study, "masks") == ("GTV", "gtv", "heart")


@pytest.mark.parametrize(
    ("name", "new", "words"),
    [
        ("gtv", "heart", "ann has a mask of gtv and one of heart"),
        ("lung", "Lung", "There is no structure lung"),
        ("gtv", " ", "The new name"),
    ],
)
def test_names_that_cannot_be_given_are_refused(study, name, new, words):
    with pytest.raises(ValueError, match=words):
        make_renaming(study, "masks", name, new)


def test_a_former_name_is_not_given_to_another_structure(study):
    study.record(make_renaming(study, "masks", "heart", "Heart"))
    with pytest.raises(ValueError, match="which is Heart now"):
        make_renaming(study, "masks", "gtv", "heart")


def test_command_exports_and_table_of_decisions_have_the_new_names(study, tmp_path, capsys):
    copy = tmp_path / "copy.rscope"
    study.close()
    copy.write_bytes(study.path.read_bytes())
    path = str(study.path)
    assert main(["rename", path, "structure:gtv=GTV", "structure:heart=Heart"]) == 0
    assert "merge structure gtv with GTV" in capsys.readouterr().out
    assert main(["run", path, "majority"]) == 0
    table = tmp_path / "agreement.csv"
    assert main(["export", path, "--what", "agreement", "-o", str(table)]) == 0
    with table.open(encoding="utf-8") as file:
        assert {row["structure"] for row in csv.DictReader(file)} == {"GTV"}
    decisions = tmp_path / "decisions.csv"
    assert main(["export", path, "--what", "decisions", "-o", str(decisions)]) == 0
    with Study.open(copy) as other:
        assert record_decisions(other, decisions) == (2, 0)
        assert present_names(other, "masks") == ("GTV", "Heart")
    assert main(["rename", path, "structure:lung=Lung"]) == 1
    assert "There is no structure lung" in capsys.readouterr().err


def test_a_table_cannot_merge_what_the_command_refuses(study, tmp_path):
    table = tmp_path / "decisions.csv"
    table.write_text("verb,kind,structure,label\nrename,masks,GTV,tumour\nrename,masks,gtv,heart\n")
    with pytest.raises(TableProblems, match="ann has a mask of gtv and one of heart"):
        record_decisions(study, table)
    assert study.decisions() == []
    table.write_text("verb,kind,structure,label\nrename,masks,GTV,tumour\nrename,masks,gtv,tumour\n")
    assert record_decisions(study, table) == (2, 0)
    assert [decision.verb for decision in study.decisions()] == ["rename", "merge"]


def test_probabilities_and_votes_of_merged_classes_add_up():
    classes = SpotClasses(
        ("Ring", "gametocyte", "ring"), np.array([[0.2, 0.3, 0.5]]), np.array([[1, 0, 2]]), np.array([0]),
        np.array([0.9]),
    )  # fmt: skip
    merged = _renamed(classes, {"Ring": "ring"})
    assert merged.names == ("gametocyte", "ring")
    np.testing.assert_allclose(merged.posterior, [[0.3, 0.7]])
    assert merged.votes.tolist() == [[0, 3]]
    assert merged.known.tolist() == [1]
