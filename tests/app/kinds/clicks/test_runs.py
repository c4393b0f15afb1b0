"""Many images at once: in this process or in several, cancelled, failing, dying."""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.clicks import Clicks, FusionPlan, fuse
from raterscope.algorithms.clicks.result import Clustering
from raterscope.algorithms.clicks.robustness import grouping_notice
from raterscope.algorithms.clicks.stopping import count_changes
from raterscope.algorithms.progress import Cancelled
from raterscope.app.formats.records import ClickTable
from raterscope.app.kinds.clicks import image_fusion
from raterscope.app.kinds.clicks.evaluation import EarlierRuns
from raterscope.app.kinds.clicks.image_fusion import fuse_images, start_processes
from raterscope.app.kinds.clicks.report.sections import clicks_section
from raterscope.app.kinds.clicks.report.tables import read_counted_image
from raterscope.app.kinds.clicks.runs import Answer, fuse_inputs, gather, image_record, keep, others_in_words
from raterscope.app.outcome import Outcome, versions
from raterscope.app.page.contents import Notices
from raterscope.app.report import methods_section
from raterscope.app.review import Decision, SpotSubject, fold, read_measures
from raterscope.app.study import Study
from raterscope.app.workers import Workers
from tests.algorithms.clicks.test_settling import IMAGES, smears


def crowd(seed, objects=6, annotators=15):
    rng = np.random.default_rng(seed)
    centres = rng.uniform(20, 280, (objects, 2))
    positions = np.repeat(centres, annotators, axis=0) + rng.normal(0, 2, (objects * annotators, 2))
    return Clicks(
        x=positions[:, 0],
        y=positions[:, 1],
        annotator=np.tile(np.arange(annotators), objects),
        annotators=tuple(f"w{n}" for n in range(annotators)),
        extent=(0, 0, 300, 300),
    )


@pytest.fixture
def images():
    return {f"image {seed}": crowd(seed) for seed in range(5)}


@pytest.fixture
def strays(images):
    """The images with clicks that hit nothing: without outliers there is nothing to learn from."""
    return {name: with_strays(clicks, seed) for seed, (name, clicks) in enumerate(images.items())}


def with_strays(clicks, seed, number=12):
    rng = np.random.default_rng([seed, 1])
    x, y = rng.uniform(0, 300, (2, number))
    return replace(
        clicks,
        x=np.append(clicks.x, x),
        y=np.append(clicks.y, y),
        annotator=np.append(clicks.annotator, rng.integers(0, len(clicks.annotators), number)),
    )


@pytest.fixture
def many_processes(monkeypatch):
    """Let processes be worth it at once."""
    monkeypatch.setattr(image_fusion, "_WORTH_PROCESSES", 0.0)


@pytest.fixture
def workers_alone(monkeypatch):
    """Leave all work to the workers, even while they start."""
    monkeypatch.setattr(image_fusion, "_WORTH_PROCESSES", 0.0)
    answer = Workers.answer
    monkeypatch.setattr(Workers, "answer", lambda *arguments, **more: answer(*arguments[:4], **more))


def same(first, second):
    return all(
        np.array_equal(getattr(first.fusion.clustering, name), getattr(second.fusion.clustering, name))
        for name in ("mean", "covariance", "weight", "inlier", "nearest")
    ) and np.array_equal(first.fusion.detection.posterior, second.fusion.detection.posterior)


@pytest.mark.usefixtures("many_processes")
def test_processes_give_the_same_bits_in_the_order_of_the_images_which_changes_no_result(strays):
    first = fuse_images(strays, FusionPlan(), jobs=1)
    backwards = fuse_images(dict(reversed(strays.items())), FusionPlan(), jobs=2)
    assert list(backwards) == list(reversed(first)) == list(reversed(strays))
    assert all(same(first[name], backwards[name]) for name in strays)
    separate = fuse_images(strays, FusionPlan.make("oem", {"learn_across_images": "no"}))
    assert not any(same(first[name], separate[name]) for name in strays)


def test_one_image_is_as_it_is_by_itself(strays):
    (name, clicks) = next(iter(strays.items()))
    outcome = fuse_images({name: clicks}, FusionPlan())[name]
    assert same(outcome, Outcome(name, fuse(clicks), "", "", 0.0))


def test_an_image_that_failed_keeps_out_of_what_the_others_learn(strays, monkeypatch):
    names = list(strays)
    sound = image_fusion.fuse

    def fragile(clicks, plan, watch, **more):
        if clicks is strays[names[0]]:
            raise KeyError("what")
        return sound(clicks, plan, watch=watch, **more)

    without = fuse_images({name: strays[name] for name in names[1:]}, FusionPlan())
    monkeypatch.setattr(image_fusion, "fuse", fragile)
    outcomes = fuse_images(strays, FusionPlan(), jobs=1)
    assert outcomes[names[0]].fusion is None
    assert all(same(outcomes[name], without[name]) for name in names[1:])


def test_where_learning_fails_no_image_has_an_answer(strays, monkeypatch):
    def broken(*_, **__):
        raise KeyError("what")

    monkeypatch.setattr(image_fusion, "learn_from_each_other", broken)
    outcomes = fuse_images(strays, FusionPlan())
    assert {outcome.problem for outcome in outcomes.values()} == {"internal error (KeyError: 'what')."}
    assert all(outcome.fusion is None and "broken" in outcome.details for outcome in outcomes.values())


def test_progress_never_falls_and_ends_with_all(images):
    fractions = []
    fuse_images(images, FusionPlan(), jobs=1, watch=lambda done, *_, **__: fractions.append(done))
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < 0.2
    assert 0.8 < fractions[-1] <= 1


def test_partial_results_name_their_image(images):
    drafts = []

    def watch(*_, partial=None, **__):
        if partial is not None:
            drafts.append(partial())

    fuse_images(images, FusionPlan(), jobs=1, watch=watch)
    assert {draft.item for draft in drafts} == set(images)
    assert all(isinstance(draft.clustering, Clustering) for draft in drafts)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("many_processes")
def test_cancelling_stops_processes_too(images, jobs):
    calls = []

    def watch(fraction, *_, **__):
        calls.append(fraction)
        if len(calls) > 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        fuse_images(images, FusionPlan(), jobs=jobs, watch=watch)


def test_no_image_gives_no_outcome():
    assert fuse_images({}, FusionPlan()) == {}


def test_an_image_without_clicks_has_an_empty_fusion():
    clicks = Clicks(np.empty(0), np.empty(0), np.empty(0, dtype=int), ("w",), (0, 0, 9, 9))
    outcome = fuse_images({"bare": clicks}, FusionPlan())["bare"]
    assert outcome.problem == ""
    assert len(outcome.fusion.clustering) == 0


def test_the_objective_of_the_kept_iteration_is_recorded_even_if_it_is_the_first():
    for algorithm, iterations, first in (("oem", "1", True), ("oem", "50", False), ("dbscan", "", None)):
        values = {"as_published": "true", "max_iterations": iterations} if iterations else {}
        fusion = fuse(crowd(1), FusionPlan.make(algorithm, values))
        record, objective = (
            image_record(Outcome("a.png", fusion, "", "", 0.0)),
            fusion.clustering.trace.objective,
        )
        assert (record["kept_iteration"] == 0) == bool(first)
        assert record["objective"] == (None if first is None else max(objective))


def test_a_failure_keeps_the_others_and_its_own_account(images, monkeypatch):
    sound = image_fusion.fuse

    def fragile(clicks, plan, watch, **more):
        if clicks is images["image 2"]:
            raise KeyError("what")
        return sound(clicks, plan, watch=watch, **more)

    monkeypatch.setattr(image_fusion, "fuse", fragile)
    outcomes = fuse_images(images, FusionPlan(), jobs=1)
    assert [name for name, outcome in outcomes.items() if outcome.fusion is None] == ["image 2"]
    assert outcomes["image 2"].problem == "internal error (KeyError: 'what')."
    assert "fragile" in outcomes["image 2"].details


def die_of_it(names, *_):
    """Fail on one image, as a worker of the test below."""
    if "image 3" in names:
        os._exit(9)
    threads = " ".join(
        os.environ.get(variable, "none") for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    )
    return [Outcome(name, None, threads, "", 0.0) for name in names]


@pytest.mark.usefixtures("workers_alone")
def test_a_worker_has_one_thread_and_one_that_dies_takes_one_image_with_it(images, monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(image_fusion, "_fuse_all", die_of_it)
    outcomes = fuse_images(images, FusionPlan(), jobs=2)
    assert outcomes["image 3"].problem == "the process that fused it died."
    other_outcomes = [outcomes[name] for name in ("image 2", "image 4")]
    assert [outcome.problem for outcome in other_outcomes] == ["1 1"] * 2
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.parametrize(
    ("jobs", "carry", "images", "starts"),
    [(2, False, 10_000, True), (2, False, 10, False), (1, False, 10_000, False), (2, True, 10_000, False)],
)
def test_processes_start_early_only_for_many_images_that_are_independent(
    monkeypatch, jobs, carry, images, starts
):
    started = []
    monkeypatch.setattr(Workers, "start", lambda _self, load: started.append(load))
    plan = FusionPlan.make("oem", {"carry_reliability": "yes"} if carry else {})
    start_processes(Workers(jobs), plan, images)
    assert bool(started) == starts


def test_versions_name_what_results_depend_on():
    found_versions = versions()
    assert found_versions["numpy"] == np.__version__
    assert set(found_versions) == {"raterscope", "python", "numpy", "scipy", "numba", "scikit-learn"}


@pytest.mark.parametrize("algorithm", ["hac", "hdbscan"])
def test_a_library_call_that_lets_nothing_run_is_made_in_a_process_that_cancelling_ends(algorithm):
    large_crowd = crowd(1, objects=10, annotators=1000)
    own_process = os.getpid()
    processes, before = set(), set(multiprocessing.active_children())  # decoders of other tests

    def watch(*_, **__):
        children = set(multiprocessing.active_children()) - before
        processes.update(child.pid for child in children)
        if children:
            raise Cancelled

    with pytest.raises(Cancelled):
        fuse_images({"one": large_crowd}, FusionPlan.make(algorithm), jobs=1, watch=watch)
    assert processes
    assert own_process not in processes
    assert set(multiprocessing.active_children()) <= before


def test_reliabilities_start_the_clustering_of_the_next_image(strays):
    """OEM-DEM paper, section 4: the second image is fused as with the p0 that the first one gave."""
    texts = {"as_published": "yes", "prior": "none", "max_iterations": "3", "carry_reliability": "yes"}
    plan = FusionPlan.make("oem", texts)
    names = list(strays)[:2]
    carried = fuse_images({name: strays[name] for name in names}, plan)
    first, second = (carried[name].fusion.clustering for name in names)
    reliability = dict(zip(strays[names[0]].annotators, first.reliability.tolist(), strict=True))
    repeated = fuse(strays[names[1]], plan, reliability=reliability).clustering
    separate = fuse(strays[names[1]], plan).clustering
    np.testing.assert_array_equal(second.inlier, repeated.inlier)
    assert not np.allclose(second.inlier, separate.inlier)
    reverse = fuse_images({name: strays[name] for name in names[::-1]}, plan)
    np.testing.assert_array_equal(reverse[names[1]].fusion.clustering.inlier, separate.inlier)


PLAN = FusionPlan.make("oem", {"interval_draws": "20"})


def as_table(smear_images: tuple[Clicks, ...]) -> ClickTable:
    """Put the clicks on several images into one table."""
    names = tuple(sorted({name for clicks in smear_images for name in clicks.annotators}))
    rows = {name: row for row, name in enumerate(names)}
    indices = [
        np.array([rows[clicks.annotators[a]] for a in clicks.annotator], dtype=np.int64)
        for clicks in smear_images
    ]
    positions = np.concatenate([np.column_stack([clicks.x, clicks.y]) for clicks in smear_images])
    return ClickTable(
        path=Path("clicks.csv"),
        annotators=names,
        images=tuple(f"{number}.png" for number in range(len(smear_images))),
        annotator=np.concatenate(indices),
        image=np.repeat(np.arange(len(smear_images)), [len(clicks) for clicks in smear_images]),
        x=positions[:, 0],
        y=positions[:, 1],
        time=None,
        looked=frozenset(
            (rows[name], n) for n, clicks in enumerate(smear_images) for name in clicks.annotators
        ),
        extents={number: clicks.extent[2:] for number, clicks in enumerate(smear_images)},
    )


@pytest.fixture(scope="module")
def filled_original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of fused smears, for tests to copy."""
    path = tmp_path_factory.mktemp("filled") / "smears.rscope"
    with Study.create(path) as study:
        study.add_clicks(as_table(smears(6)))
        keep(fused(study, list(range(1, IMAGES + 1))), study)
    return path


@pytest.fixture
def filled(tmp_path: Path, filled_original: Path) -> Iterator[Study]:
    with Study.open(Path(shutil.copy(filled_original, tmp_path))) as study:
        yield study


def fused(study: Study, numbers: list[int], plan: FusionPlan = PLAN) -> Answer:
    return fuse_inputs(gather(numbers, study, plan=plan), plan, jobs=1)


def test_an_image_fused_alone_comes_out_as_with_all_the_others(filled: Study) -> None:
    separate = without = detections = 0
    for number in range(1, IMAGES + 1):
        together, answer = filled.runs.result(1, number), fused(filled, [number])
        assert len(answer.inputs.others.images) == IMAGES - 1
        (by_itself,) = fuse_inputs(gather([number], filled), PLAN, jobs=1).kept.values()
        separate += count_changes(together, next(iter(answer.kept.values())))
        without += count_changes(together, by_itself)
        detections += int(together.detection.detected.sum())
    assert separate <= 0.02 * detections
    assert without > 0.3 * detections  # nothing else tells their artefacts
    answer = fused(filled, [2])
    run = keep(answer, filled)
    entry = filled.runs.get(run)
    assert (entry.log["others"], entry.log["other_runs"]) == (IMAGES - 1, [1])
    assert others_in_words(entry.log).startswith(f"Results of run 1 on {IMAGES - 1} other images were used")
    assert others_in_words(filled.runs.get(1).log) == ""
    (prose,) = methods_section([entry], (), filled, {}).blocks
    text = " ".join(words for _, words in prose.paragraphs)  # type: ignore[union-attr]
    assert f"{IMAGES - 1} other images, as fused in earlier runs" in text


def test_what_depends_on_the_grouping_is_kept_with_the_run(filled: Study) -> None:
    stored = [filled.runs.result(1, number) for number in range(1, IMAGES + 1)]
    assert all(fusion is not None and fusion.halves.shape == (2, len(fusion.clustering)) for fusion in stored)
    notice = grouping_notice([fusion for fusion in stored if fusion is not None])
    assert notice is not None
    assert "if only half of the images are fused at a time" in notice
    counted_images = [
        image
        for entry in filled.images()
        if (image := read_counted_image(filled, entry, fold([]), EarlierRuns(filled))) is not None
    ]
    blocks = clicks_section(filled, counted_images, read_measures([], fold([])), {}).blocks
    assert any(isinstance(block, Notices) and notice in block.sentences for block in blocks)


def test_a_decision_on_another_image_teaches_since_it_was_made(filled: Study) -> None:
    spot = filled.runs.result(1, 1).clustering.mean[0]
    subject = SpotSubject(x=float(spot[0]), y=float(spot[1]), number=1)
    filled.record(Decision(verb="reject", item=1, subject=subject))
    smear_images = gather([2], filled, plan=PLAN).others.images
    assert [len(clicks.known) for clicks, _ in smear_images] == [1, 0, 0, 0, 0]
    assert fused(filled, [2]).kept


def test_runs_that_cluster_otherwise_or_are_outdated_teach_nothing(filled: Study) -> None:
    other_plan = FusionPlan.make("oem", {"vote_coverage": "0.9"})
    assert gather([2], filled, plan=other_plan).others.images == ()
    name = filled.annotators()[0]
    filled.record(Decision(verb="exclude", annotators=(name,), reason="careless"))
    assert gather([2], filled, plan=PLAN).others.images == ()
