"""Programs among raters of masks: marked, fused, listed as programs and never counted as a person."""

import json

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import raterscope as rs
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import silent
from raterscope.app.kinds.masks.annotators import agreement, evidence, preview
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.kinds.masks.variability import measure_differences, measure_variability
from raterscope.app.review import Decision, fold
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.app.workspaces.masks.scene import read_scene, read_summaries, summarize
from raterscope.app.workspaces.masks.view import outlines, rater_rows
from tests.app.commands import run as command
from tests.app.kinds.masks.made import write
from tests.app.tables import rows_of

SHAPE = (3, 40, 40)
RATERS = ("ann", "ben", "cat")
CASES = 4


def bumps(rng):
    values = gaussian_filter(rng.standard_normal(SHAPE), (1, 4, 4), mode="wrap")
    return values / values.std()


def drawn(seed):
    """Three raters of a ragged disc, and the probability map of a good program."""
    rng = np.random.default_rng(seed)
    _, y, x = np.indices(SHAPE) - 20.0
    height = rng.uniform(8, 11) - np.hypot(y, x) + 1.5 * bumps(rng)
    masks = {name: height + 1.6 * bumps(rng) > 0 for name in RATERS}
    chance = 1 / (1 + np.exp(-(height + 0.4 * bumps(rng)) / 0.7))
    return masks, np.where(chance < 0.01, 0, chance).astype(np.float32)


def fused(study):
    inputs = gather([entry.id for entry in study.images()], study)
    return keep(fuse_inputs(inputs, MaskPlan()), study)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "s.rscope"
    with Study.create(path) as study:
        for seed in range(4, 4 + CASES):
            grid = Grid.plain(SHAPE, (1.0, 1.0, 1.0), calibrated=True)
            case = add_case(study, f"case {seed - 4}", grid)
            masks, chance = drawn(seed)
            placed = [PlacedMask(case.id, name, "organ", (0, 0, 0), mask) for name, mask in masks.items()]
            if seed > 4:
                placed.append(PlacedMask(case.id, "unet", "organ", (0, 0, 0), chance))
            add_masks(study, placed, "made")
        study.record(Decision(verb="program", annotators=("unet",)))
        fused(study)
    return path


@pytest.fixture
def study(original, tmp_path):
    path = tmp_path / "s.rscope"
    path.write_bytes(original.read_bytes())
    with Study.open(path) as opened:
        yield opened


def results(study, run=None):
    return [study.shown.run_and_result(entry.id, "masks", run)[1] for entry in study.images()]


def test_the_raters_are_fused_alone_and_combined_with_the_program(study):
    with_program = results(study)
    study.record(Decision(verb="exclude", annotators=("unet",)))
    alone = results(study, fused(study))
    for case, (one, two) in enumerate(zip(with_program, alone, strict=True)):
        (fusion,), (report,), (other,), (other_report,) = one.fusions, one.reports, two.fusions, two.reports
        assert fusion.annotators == other.annotators == RATERS
        for name in ("weight", "bias", "tau", "distance"):
            np.testing.assert_array_equal(getattr(fusion, name), getattr(other, name))
        for name in ("ratio", "scale", "multipliers"):
            calibrations = report.calibration, other_report.calibration
            np.testing.assert_array_equal(*(getattr(each, name) for each in calibrations))
        np.testing.assert_array_equal(report.pair_dice, other_report.pair_dice)
        assert other_report.programs is None
        if case == 0:  # which the program did not see
            np.testing.assert_array_equal(fusion.probability, other.probability)
            assert report.programs is None
        else:
            assert report.programs.used
            assert (fusion.probability != other.probability).any()
            assert any("unet counts as" in notice for notice in fusion.notices)


def test_without_programs_no_bit_changes(study):
    study.record(Decision(verb="person", annotators=("unet",)))
    study.record(Decision(verb="exclude", annotators=("unet",)))
    excluded = results(study, fused(study))
    study.record(Decision(verb="program", annotators=("unet",)))
    marked = results(study, fused(study))
    for one, two in zip(excluded, marked, strict=True):
        np.testing.assert_array_equal(one.fusions[0].probability, two.fusions[0].probability)
        assert one.fusions[0].notices == two.fusions[0].notices


def test_a_program_is_no_person_in_agreement_and_variability(study):
    assert tuple(measure_variability(study)[0].measurements) == RATERS
    assert measure_differences(study)[0].readers() == list(RATERS)
    with_program = agreement(study, (), silent)[0].alpha
    study.record(Decision(verb="exclude", annotators=("unet",)))
    assert agreement(study, (), silent)[0].alpha == with_program


def test_the_queue_counts_no_program_as_a_rater(study):
    image = study.images()[1].id
    summaries = read_summaries([image], study, silent)
    assert summarize(image, summaries[image], fold(study.decisions())).raters == 3


def test_undo_makes_it_a_rater_again(study):
    study.record(Decision(verb="person", annotators=("unet",)))
    fused(study)
    assert results(study)[1].fusions[0].annotators == (*RATERS, "unet")
    assert results(study)[1].reports[0].programs is None
    assert "unet" in measure_variability(study)[0].measurements


def test_tables_name_the_program_as_one(study, tmp_path):
    path = study.path
    study.close()
    for what in ("annotators", "agreement"):
        assert command("export", path, "--what", what, "-o", tmp_path / f"{what}.csv") == 0
    rows = rows_of(tmp_path / "annotators.csv")
    (row,) = [row for row in rows if row["image"] == "case 1" and row["program"] == "1"]
    assert row["annotator"] == "unet"
    assert float(row["counts_as"]) > 0.2
    assert float(row["dice"]) > 0.8
    assert row["bias_mm"] == row["tau"] == ""
    assert {row["counts_as"] for row in rows if row["annotator"] in RATERS} == {""}
    assert not any("unet" in row.values() for row in rows_of(tmp_path / "agreement.csv"))
    assert command("export", path, "--what", "annotators", "--deidentify", "-o", tmp_path / "d.csv") == 0
    assert "unet" not in (tmp_path / "d.csv").read_text()


def test_evidence_preview_and_scene_show_it_as_a_program(study):
    found = evidence(study, silent)
    values = found.values[found.names.index("unet"), :, 0]
    assert np.isnan(values[[0, 3]]).all()
    assert values[1] > 0.8
    consequences = preview(study, ("unet",), None, silent)
    assert 0 < consequences.changed < consequences.total
    scene = read_scene(study.images()[1].id, None, study, silent)
    numbers = {name: number for number, name in enumerate(study.annotators())}
    (row,) = [row for row in rater_rows(scene, "organ", numbers, {}) if row.name == "unet"]
    assert row.note == "program"
    assert row.counts_as.startswith("counts as")
    (line,) = [line for line in outlines(scene, "organ", None, numbers, None) if line.key == "unet"]
    assert line.name == "unet (program)"
    assert line.dashed


def test_excluding_the_program_previews_the_consensus_of_the_raters(study):
    consequences = preview(study, ("unet",), None, silent)
    shown = {entry.name: int(result.fusions[0].mask.sum())
             for entry, result in zip(study.images(), results(study), strict=True)}  # fmt: skip
    study.record(Decision(verb="exclude", annotators=("unet",)))
    alone = {entry.name: int(result.fusions[0].mask.sum())
             for entry, result in zip(study.images(), results(study, fused(study)), strict=True)}  # fmt: skip
    changes = {change.name.partition(",")[0]: change for change in consequences.changes}
    assert changes
    for name, change in changes.items():
        assert change.before == f"{shown[name]:,}"
        assert change.after == f"{alone[name]:,}"


def test_the_report_names_the_program(study, tmp_path):
    report = tmp_path / "report.html"
    path = study.path
    study.close()
    assert command("report", path, "-o", report) == 0
    text = report.read_text()
    assert "unet (program, counts as" in text
    assert "Programs: unet" in text


def test_fusing_files_takes_programs_by_name(tmp_path, capsys):
    files = []
    for case in range(3):
        masks, chance = drawn(case)
        for name, mask in {**masks, "unet": chance}.items():
            values = mask if mask.dtype == np.float32 else mask.astype(np.uint8)
            files.append(write(tmp_path / f"c{case}_{name}.nii.gz", values))
    fuse = ("fuse", "masks", *files, "--naming", "{item}_{annotator}", "--program")
    assert command(*fuse, "unet", "-o", tmp_path / "out") == 0
    assert "1 program (unet), combined with the consensus" in capsys.readouterr().out
    (record,) = json.loads((tmp_path / "out/c1/run.json").read_text())["images"]
    (structure,) = record["structures"]
    assert structure["raters"] == list(RATERS)
    assert structure["programs"]["counts_as"]["unet"]["near"] > 0.2
    assert json.loads((tmp_path / "out/c1/run.json").read_text())["programs"] == ["unet"]
    assert not (tmp_path / "out/c1/weight_unet.nii.gz").exists()
    rows = rows_of(tmp_path / "out/c1/annotators.csv")
    assert [row["annotator"] for row in rows if row["program"] == "1"] == ["unet"]
    capsys.readouterr()
    assert command(*fuse, "vnet", "-o", tmp_path / "no") != 0
    assert "there is no annotator vnet to use as a program" in capsys.readouterr().err
    assert command(*fuse, *RATERS, "unet", "-o", tmp_path / "no") != 0
    assert "only masks of programs" in capsys.readouterr().err


def test_the_library_takes_programs_by_name():
    masks, chance = drawn(4)
    result = rs.fuse_masks({**masks, "unet": chance}, programs=["unet"])
    frame = result.to_frame("annotators")
    assert frame["annotator"].tolist() == [*RATERS, "unet"]
    assert [int(value) for value in frame["program"]] == [0, 0, 0, 1]
    with pytest.raises(rs.DataError, match="no annotator vnet to use as a program"):
        rs.fuse_masks(masks, programs=["vnet"])


def test_import_marks_a_program(tmp_path, capsys):
    masks, chance = drawn(0)
    files = [write(tmp_path / f"{name}.nii.gz", mask.astype(np.uint8)) for name, mask in masks.items()]
    files.append(write(tmp_path / "unet.nii.gz", chance))
    path = tmp_path / "s.rscope"
    assert command("import", path, *files, "--program", "unet") == 0
    assert "unet" in capsys.readouterr().out
    with Study.open(path) as study:
        (case,) = gather([entry.id for entry in study.images()], study).given.values()
        assert tuple(case.records["structure"]) == RATERS
        assert tuple(case.programs["structure"]) == ("unet",)
        assert case.programs["structure"]["unet"].values.dtype == np.float32


def test_a_file_imported_alone_gets_the_name_of_the_program(tmp_path):
    masks, chance = drawn(0)
    files = [write(tmp_path / f"{name}.nii.gz", mask.astype(np.uint8)) for name, mask in masks.items()]
    path = tmp_path / "s.rscope"
    assert command("import", path, *files) == 0
    assert command("import", path, write(tmp_path / "output.nii.gz", chance), "--program", "unet") == 0
    with Study.open(path) as study:
        (case,) = gather([entry.id for entry in study.images()], study).given.values()
        assert tuple(case.programs["structure"]) == ("unet",)
