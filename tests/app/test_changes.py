"""Changes from one run to the next, of all four kinds."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.ndimage

from raterscope.algorithms.progress import silent
from raterscope.app.annotators.table import changes_of_run
from raterscope.app.cli.program import main
from raterscope.app.kinds.pairs.annotators import preview
from raterscope.app.review import BiasSubject, Decision, SpotSubject, TaskSubject
from raterscope.app.study import Study
from tests.app.kinds.labels.made import write_votes
from tests.app.kinds.masks.made import four_raters
from tests.app.kinds.pairs.made import GOOD, HEADER, UGLY, answers
from tests.app.tables import write


@pytest.fixture
def path(tmp_path):
    return tmp_path / "one.rscope"


def run(path, *options):
    assert main(["run", str(path), *options]) == 0


def changes(path, chosen=None):
    with Study.open(path) as study:
        return changes_of_run(study.runs.all()[-1].id, chosen, study)


def test_clicks_that_a_stricter_run_no_longer_detects(path, study_fused):
    path.write_bytes(study_fused.read_bytes())
    with Study.open(path) as study:
        assert changes_of_run(1, None, study) is None  # nothing came before the first run
        x, y = (float(value) for value in study.runs.result(1, 1).clustering.mean[0])
        study.record(Decision(verb="reject", item=1, subject=SpotSubject(x=x, y=y), run=1))
        spots = sum(int(study.runs.result(1, image).detection.detected.sum()) for image in (1, 2))
    run(path, "oem", "--set", "detection_threshold=1.0")
    result = changes(path)
    assert result.count == len(result.listed) == spots - 1  # what was rejected is no news
    assert result.newly_disputed == 0
    assert all("no detection any more" in change.text for change in result.listed)
    assert {change.item for change in result.listed} == {1, 2}
    assert all(
        abs(change.point[0] - x) + abs(change.point[1] - y) > 1
        for change in result.listed
        if change.item == 1
    )
    assert result.in_words().endswith(f"disputed, {spots - 1} detections changed")


def test_changes_are_from_the_run_of_most_items(tmp_path, path):
    rows = [(f"w{k}", f"{name}.png", 20 + k % 3, 30 - k % 2) for name in "abc" for k in range(6)]
    clicks = write(tmp_path / "clicks.csv", ("annotator", "image", "x", "y"), rows)
    assert main(["import", str(path), str(clicks), "--extent", "100", "100"]) == 0
    run(path, "oem")
    run(path, "oem", "--item", "a.png", "--set", "detection_threshold=0.6")
    run(path, "oem")
    assert changes(path).before.id == 1
    assert changes(path, chosen=2).before.id == 2


def test_labels_that_another_method_answers_otherwise(tmp_path, path):
    votes = write_votes(tmp_path / "votes.csv")
    assert main(["import", str(path), str(votes)]) == 0
    run(path, "majority")
    with Study.open(path) as study:
        task = TaskSubject(task="t0", label="dog")
        study.record(Decision(verb="label", item=1, subject=task, run=1))
    run(path, "ibcc")
    result = changes(path)
    with Study.open(path) as study:
        before, after = (study.runs.result(number, 1).fusion for number in (1, 2))
        names = study.vote_set(1).tasks
    differ = {names[task] for task in range(len(names)) if before.label()[task] != after.label()[task]}
    flipped = {change.name for change in result.listed if "disputed now" not in change.text}
    assert "t0" in differ
    assert flipped == differ - {"t0"}
    assert changes(path, chosen=2) is not None


def test_masks_are_compared_region_by_region(tmp_path, path):
    files = [str(file_path) for file_path in four_raters(tmp_path, "case_")]
    assert main(["import", str(path), *files, "--structure", "nodule"]) == 0
    run(path, "majority", "--kind", "masks")
    run(path, "staple")
    result = changes(path)
    with Study.open(path) as study:
        case = study.items()["masks"][0].id
        fusions = [study.runs.result(number, case).fusions[0] for number in (1, 2)]
        shape = study.image(case).lattice.shape
    wholes = np.zeros((2, *shape), dtype=bool)
    for whole, fusion in zip(wholes, fusions, strict=True):
        (mask,) = fusion.mask
        region = [slice(low, low + n) for low, n in zip(fusion.origin, mask.shape, strict=True)]
        whole[tuple(region)] = mask
    volumes = wholes.sum(axis=(1, 2, 3)).tolist()
    assert volumes[0] != volumes[1]
    assert sum(file_path.size for file_path in result.listed) == abs(volumes[0] - volumes[1])
    assert all(file_path.box is not None and file_path.name == "nodule" for file_path in result.listed)
    small = [file_path for file_path in result.listed if "small region" in file_path.text]
    assert len(small) == 1  # what is too small to be disputed is one line
    assert result.count == scipy.ndimage.label(wholes[0] != wholes[1], np.ones((3, 3, 3)))[1] > 1
    several = f"{result.count} regions changed ({small[0].count} of them small, listed together)"
    assert result.in_words().endswith(several)
    only_small = replace(result, listed=tuple(small), count=small[0].count)
    assert only_small.in_words().endswith("regions changed (all small, listed together)")
    assert all(file_path.size > 0.02 * volumes[1] for file_path in result.listed if file_path not in small)


def test_pairs_whose_flags_change(tmp_path, path):
    table = write(tmp_path / "pairs.csv", HEADER, answers())
    assert main(["import", str(path), str(table)]) == 0
    run(path, "lasso")
    run(path, "lasso", "--set", "effect=0.9")
    result = changes(path)
    assert result.disputed_before > result.disputed_after
    assert result.count == result.disputed_before - result.disputed_after
    assert all("not flagged any more" in change.text for change in result.listed)
    assert "flagged" in result.in_words()


def test_an_exclusion_changes_the_ranks_that_its_preview_announced(tmp_path, path):
    rows = [row for row in answers() if row[0] in (*GOOD[:8], *UGLY)]  # few, so that each matters
    rows += [(who, f"other {left}", f"other {right}", side) for who, left, right, side in rows[::3]]
    assert main(["import", str(path), str(write(tmp_path / "pairs.csv", HEADER, rows))]) == 0
    run(path, "iss")
    with Study.open(path) as study:
        flagged = study.runs.result(1, 1).flagged
        ids = study.comparison_set(1, None).annotator_ids
        cleared, out = (study.annotators()[int(ids[at])] for at in np.flatnonzero(flagged)[:2])
        study.record(Decision(verb="clear", item=1, subject=BiasSubject(annotator=cleared), run=1))
        previewed = preview(study, [out], None, silent)
        study.record(Decision(verb="exclude", annotators=(out,), reason="to see"))
    run(path, "iss")
    result = changes(path)
    assert 0 < result.ranks == previewed.changed < previewed.total
    (line,) = (change.text for change in result.listed if change.name == out)
    assert line.startswith(f"excluded, was flagged: {out} (bias ")
    assert "nan" not in line


def test_annotators_cleared_by_the_expert_are_no_longer_flagged(tmp_path, path):
    table = write(tmp_path / "pairs.csv", HEADER, answers())
    assert main(["import", str(path), str(table)]) == 0
    run(path, "lasso")
    with Study.open(path) as study:
        fusion = study.runs.result(1, 1)
        names = study.annotators()
        first = int(np.flatnonzero(fusion.flagged)[0])
        cleared = names[int(study.comparison_set(1, None).annotator_ids[first])]
        study.record(Decision(verb="clear", item=1, subject=BiasSubject(annotator=cleared), run=1))
    run(path, "lasso")
    result = changes(path)
    assert result.disputed_before == result.disputed_after + 1
    assert (result.count, result.listed, result.decided) == (0, (), 1)
    assert "flagged (1 decided), no annotator changed" in result.in_words()


def test_the_run_before_is_that_which_was_chosen(tmp_path, path):
    votes = write_votes(tmp_path / "votes.csv")
    assert main(["import", str(path), str(votes)]) == 0
    for method in ("ibcc", "majority", "ibcc"):
        run(path, method)
    assert changes(path).before.id == 2
    same = changes(path, chosen=1)
    assert (same.before.id, same.count) == (1, 0)
    assert same.in_words().endswith("no task changed")


def test_what_the_expert_decided_is_counted_apart_from_what_the_fusion_settled(tmp_path, path):
    votes = write_votes(tmp_path / "votes.csv")
    assert main(["import", str(path), str(votes)]) == 0
    run(path, "majority")
    with Study.open(path) as study:
        fusion, names = study.runs.result(1, 1).fusion, study.vote_set(1).tasks
        disputed = [names[task] for task in np.flatnonzero(fusion.posterior.max(axis=1) < 0.9)]
        for name in disputed[:2]:
            task = TaskSubject(task=name, label=fusion.classes[0])
            study.record(Decision(verb="label", item=1, subject=task, run=1))
    run(path, "majority")
    result = changes(path)
    assert (result.disputed_before, result.disputed_after) == (len(disputed), len(disputed) - 2)
    assert (result.decided, result.count) == (2, 0)
    assert "disputed (2 decided), no task changed" in result.in_words()
