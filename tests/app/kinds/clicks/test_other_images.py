"""Images that are fused alone learn from the others, as earlier runs of the study have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.clicks import Clicks, FusionPlan
from raterscope.algorithms.clicks.robustness import grouping_notice
from raterscope.algorithms.clicks.stopping import changed
from raterscope.app.formats.records import ClickTable
from raterscope.app.kinds.clicks.other_images import others_in_words
from raterscope.app.kinds.clicks.report.measures import read_counted
from raterscope.app.kinds.clicks.report.sections import clicks_section
from raterscope.app.kinds.clicks.running import Answer, fuse_inputs, gather, keep
from raterscope.app.page.contents import Notices
from raterscope.app.report.methods import methods_section
from raterscope.app.review import Decision, SpotSubject, fold, read_measures
from raterscope.app.study import Study
from tests.algorithms.clicks.test_settling import smears

PLAN = FusionPlan.make("oem", {"interval_draws": "20"})
IMAGES = 6


def as_table(images: tuple[Clicks, ...]) -> ClickTable:
    """Put the clicks on several images into one table."""
    names = tuple(sorted({name for one in images for name in one.annotators}))
    rows = {name: row for row, name in enumerate(names)}
    who = [np.array([rows[one.annotators[a]] for a in one.annotator], dtype=np.int64) for one in images]
    places = np.concatenate([np.column_stack([one.x, one.y]) for one in images])
    return ClickTable(
        path=Path("clicks.csv"),
        annotators=names,
        images=tuple(f"{number}.png" for number in range(len(images))),
        annotator=np.concatenate(who),
        image=np.repeat(np.arange(len(images)), [len(one) for one in images]),
        x=places[:, 0],
        y=places[:, 1],
        time=None,
        looked=frozenset((rows[name], n) for n, one in enumerate(images) for name in one.annotators),
        extents={number: one.extent[2:] for number, one in enumerate(images)},
    )


@pytest.fixture(scope="module")
def images() -> tuple[Clicks, ...]:
    return smears(6, count=IMAGES)


@pytest.fixture
def filled(tmp_path: Path, images: tuple[Clicks, ...]) -> Iterator[Study]:
    with Study.create(tmp_path / "smears.rscope") as study:
        study.add_clicks(as_table(images))
        keep(fused(study, list(range(1, IMAGES + 1))), study)
        yield study


def fused(study: Study, numbers: list[int], plan: FusionPlan = PLAN) -> Answer:
    return fuse_inputs(gather(numbers, study, plan=plan), plan, jobs=1)


def test_an_image_fused_alone_comes_out_as_with_all_the_others(filled: Study) -> None:
    alone = without = detections = 0
    for number in range(1, IMAGES + 1):
        together, answer = filled.runs.result(1, number), fused(filled, [number])
        assert len(answer.inputs.others.images) == IMAGES - 1
        (by_itself,) = fuse_inputs(gather([number], filled), PLAN, jobs=1).kept.values()
        alone += changed(together, next(iter(answer.kept.values())))
        without += changed(together, by_itself)
        detections += int(together.detection.detected.sum())
    assert alone <= 0.02 * detections
    assert without > 0.3 * detections  # nothing else tells their artefacts
    answer = fused(filled, [2])
    run = keep(answer, filled)
    entry = filled.runs.get(run)
    assert (entry.log["others"], entry.log["other_runs"]) == (IMAGES - 1, [1])
    assert others_in_words(entry.log).startswith(f"What run 1 found on {IMAGES - 1} other images was used")
    assert others_in_words(filled.runs.get(1).log) == ""
    (prose,) = methods_section([entry], (), [], {}).blocks
    told = " ".join(words for _, words in prose.paragraphs)  # type: ignore[union-attr]
    assert f"{IMAGES - 1} other images, as fused in earlier runs" in told


def test_what_depends_on_the_grouping_is_kept_with_the_run(filled: Study) -> None:
    kept = [filled.runs.result(1, number) for number in range(1, IMAGES + 1)]
    assert all(one is not None and one.halves.shape == (2, len(one.clustering)) for one in kept)
    notice = grouping_notice([one for one in kept if one is not None])
    assert notice is not None
    assert "where half of the images are fused at a time" in notice
    found = [one for entry in filled.images() if (one := read_counted(filled, entry, ())) is not None]
    blocks = clicks_section(filled, found, read_measures([], fold([])), {}).blocks
    assert any(isinstance(one, Notices) and notice in one.sentences for one in blocks)


def test_a_decision_on_another_image_teaches_since_it_was_made(filled: Study) -> None:
    spot = filled.runs.result(1, 1).clustering.mean[0]
    subject = SpotSubject(x=float(spot[0]), y=float(spot[1]), number=1)
    filled.record(Decision(verb="reject", item=1, subject=subject))
    images = gather([2], filled, plan=PLAN).others.images
    assert [len(clicks.known) for clicks, _ in images] == [1, 0, 0, 0, 0]
    assert fused(filled, [2]).kept


def test_runs_that_cluster_otherwise_or_are_outdated_teach_nothing(filled: Study) -> None:
    other = FusionPlan.make("oem", {"vote_coverage": "0.9"})
    assert gather([2], filled, plan=other).others.images == ()
    name = filled.annotators()[0]
    filled.record(Decision(verb="exclude", annotators=(name,), reason="careless"))
    assert gather([2], filled, plan=PLAN).others.images == ()
