"""Raters clustered by shared consensus: on the command line, in the study's log and in the report."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage

from raterscope.algorithms.annotators.similarity import cluster_raters
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.kinds.masks.annotators import (
    CONSENSUS,
    DICE,
    agreements_of_results,
    agreements_of_runs,
    clusters_in_words,
    follow_consensuses,
)
from raterscope.app.kinds.masks.runs import fuse_inputs, fuse_together, gather, keep
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from tests.app.commands import run as command
from tests.app.kinds.masks.made import write
from tests.app.tables import rows_of

RATERS = ("ann", "ben", "cat", "dan", "eve")
SCHOOLS = ({"ann", "ben", "cat"}, {"dan", "eve"})


def field(rng, length):
    values = ndimage.gaussian_filter(rng.standard_normal((32, 32, 32)), length, mode="wrap")
    return values / values.std()


def drawn(seed):
    """Five raters of a ragged ball; the last two follow another outline, 4 mm away."""
    rng = np.random.default_rng(seed)
    z, y, x = np.mgrid[:32, :32, :32] - 16.0
    first = 9.0 - np.sqrt(z**2 + y**2 + x**2) + 1.5 * field(rng, 5)
    second = first + 4.0 * field(rng, 6)
    return {
        name: (first if name in SCHOOLS[0] else second) + rng.uniform(0.4, 1.0) * field(rng, 3.5) > 0
        for name in RATERS
    }


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("schools") / "schools.rscope"
    with Study.create(path) as opened:
        for seed in range(2):
            case = add_case(
                opened, f"case {seed}", Grid.plain((32, 32, 32), (1.0, 1.0, 1.0), calibrated=True)
            )
            masks = [
                PlacedMask(case.id, name, "organ", (0, 0, 0), mask) for name, mask in drawn(seed).items()
            ]
            add_masks(opened, masks, "made")
        inputs = gather([entry.id for entry in opened.images()], opened)
        keep(fuse_inputs(inputs, MaskPlan.make("majority")), opened)
        keep(fuse_inputs(inputs, MaskPlan.make("mixture")), opened)
        yield opened


def test_raters_who_always_share_a_consensus_are_at_no_distance(study):
    tables = agreements_of_runs(study.runs.all(), CONSENSUS)
    assert len(tables) == 2
    tree = cluster_raters(tables)
    assert {frozenset(group) for group in tree.cut(0.0)} == {frozenset(school) for school in SCHOOLS}
    assert tree.linkage[-1, 2] == 1.0
    words = clusters_in_words(tree)
    assert (
        words == "always the same consensus: ann, ben, cat; dan, eve; joined last: dan, eve (100 % of cases)"
    )


def test_only_the_mixture_shows_of_consensuses_and_every_run_of_overlap(study):
    vote = [run for run in study.runs.all() if run.algorithm == "majority"]
    assert agreements_of_runs(vote, CONSENSUS) == []
    assert len(agreements_of_runs(vote, DICE)) == 2
    inputs = gather([entry.id for entry in study.images()], study)
    results = [outcome.fusion for outcome in fuse_inputs(inputs, MaskPlan.make("majority")).outcomes.values()]
    assert agreements_of_results(results, CONSENSUS) == []
    followed = follow_consensuses(inputs)
    for first, second in zip(followed, agreements_of_runs(study.runs.all(), CONSENSUS), strict=True):
        np.testing.assert_array_equal(first.similarity, second.similarity)


def test_a_structure_that_was_renamed_counts_once(study):
    (*_, latest) = study.runs.all()
    images = [
        case | {"structures": [entry | {"structure": "organ before"} for entry in case["structures"]]}
        for case in latest.log["images"]
    ]
    earlier = replace(latest, log=latest.log | {"images": images})
    assert len(agreements_of_runs([earlier, latest], DICE)) == 2


def test_the_report_draws_both_trees_and_lists_the_distances(study, tmp_path):
    page = write_report(study, tmp_path / "report.html").read_text(encoding="utf-8")
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert "Raters over the cases" in page
    assert "Shared consensus" in page
    assert "Consensus distance" in page
    assert "joined last: dan, eve (100 % of cases)" in page


def test_fuse_masks_writes_distances_and_tree(tmp_path, capsys):
    for seed in range(2):
        for name, mask in drawn(seed).items():
            write(tmp_path / f"case{seed}_{name}.nii.gz", mask.astype(np.uint8))
    files = sorted(tmp_path.glob("case*.nii.gz"))
    naming = ("--naming", "{item}_{annotator}")
    out = tmp_path / "out"
    assert command("fuse", "masks", *files, *naming, "--algorithm", "majority", "-o", out) == 0
    assert not (out / "rater_tree.csv").exists()
    options = ("--algorithm", "majority", "--cluster-raters")
    assert command("fuse", "masks", *files, *naming, *options, "-o", out) == 0
    assert "raters over cases: always the same consensus" in capsys.readouterr().out
    pairs = {
        (row["basis"], row["annotator"], row["other"]): float(row["distance"])
        for row in rows_of(out / "rater_distances.csv")
    }
    assert len(pairs) == 20
    assert pairs[CONSENSUS, "ann", "ben"] == 0.0
    assert pairs[CONSENSUS, "ann", "eve"] == 1.0
    assert 0 < pairs[DICE, "ann", "ben"] < pairs[DICE, "ann", "eve"]
    joins = [row for row in rows_of(out / "rater_tree.csv") if row["basis"] == CONSENSUS]
    assert joins[-1]["annotators"] == "; ".join(RATERS)


def test_raters_of_several_structures_fused_together_keep_their_consensuses(tmp_path):
    with Study.create(tmp_path / "two.rscope") as opened:
        case = add_case(opened, "case", Grid.plain((32, 32, 32), (1.0, 1.0, 1.0), calibrated=True))
        masks = []
        for name, mask in drawn(0).items():
            rim = mask & ~ndimage.binary_erosion(mask, iterations=3)
            for structure, inside in (("rim", rim), ("core", mask & ~rim)):
                masks.append(PlacedMask(case.id, name, structure, (0, 0, 0), inside))
        add_masks(opened, masks, "made")
        inputs = gather([entry.id for entry in opened.images()], opened)
        answer = fuse_inputs(inputs, MaskPlan.make("mixture"), fuse_each=fuse_together)
    (result,) = [outcome.fusion for outcome in answer.outcomes.values()]
    assert [fusion.structures for fusion in result.fusions] == [("core",), ("rim",)]
    agreements = agreements_of_results([result], CONSENSUS)
    assert len(agreements) == 2
    assert min(agreement.similarity[0, 4] for agreement in agreements) == 0.0
