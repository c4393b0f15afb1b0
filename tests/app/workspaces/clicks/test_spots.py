"""Queue of images: same counts as the spots, and sorted before the results are read."""

import sqlite3
import threading
import weakref
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.progress import silent
from raterscope.app.document import Document
from raterscope.app.kinds.clicks.evaluation import apply_decisions
from raterscope.app.review import Decision, SpotSubject, fold
from raterscope.app.study import Study
from raterscope.app.study.runs import Outline
from raterscope.app.workspaces.clicks.scene import read_scene
from raterscope.app.workspaces.clicks.spots import (
    ImageResult,
    read_outlines,
    read_results,
    spots_of,
    summarize,
)
from raterscope.app.workspaces.clicks.view import status
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.widgets.panels.queue_panel import QueuePanel
from tests.app.driving import LONG
from tests.app.study.made import a_fusion, a_run, a_table


@pytest.mark.parametrize("seed", range(20))
def test_the_line_of_an_image_counts_its_spots(seed, tmp_path):
    rng = np.random.default_rng(seed)
    with Study.create(tmp_path / "s.rscope") as study:
        study.add_clicks(a_table(seed, ("a",)))
        clicks = study.clicks(1)
    fusion = a_fusion(clicks, seed, clusters=int(rng.integers(0, 12)))
    fusion.clustering.mean[:] *= 50
    fusion.detection.posterior[rng.random(len(fusion.clustering)) < 0.1] = np.nan
    created = []
    for number in range(int(rng.integers(0, 9))):
        there = len(fusion.clustering) and rng.random() < 0.8
        x, y = rng.choice(fusion.clustering.mean) + rng.normal(0, 1, 2) if there else rng.uniform(0, 99, 2)
        verb = str(rng.choice(["accept", "reject", "skip", "add", "reopen"]))
        subject = SpotSubject(x=float(x), y=float(y), number=number)
        created.append(Decision(verb=verb, item=1, subject=subject, id=number + 1, reason="they differ"))
    state = fold(created)
    spots = spots_of(fusion, len(clicks.annotators), state.spots(1))
    for known in (
        ImageResult(fusion, clicks.annotators),
        ImageResult(outline=Outline.of({1: fusion}).answers()[1]),
    ):
        line = summarize(1, known, state)
        assert line.fused
        assert line.looked
        assert line.detections == sum(spot.present for spot in spots)
        assert line.detections == apply_decisions(fusion, state.spots(1)).present.sum()  # as in files
        assert line.disputed == sum(spot.state == "disputed" for spot in spots)
        assert line.decided == sum(spot.decided for spot in spots)
        waiting = [spot for spot in spots if spot.state == "disputed"]
        assert line.doubt == pytest.approx(sum(spot.doubt for spot in waiting))
        assert line.matter == sum(bool(spot.contested) or 0.25 <= spot.posterior <= 0.75 for spot in waiting)


def test_images_summarized_at_once_have_the_summaries_of_their_results(tmp_path):
    with Study.create(tmp_path / "s.rscope") as study:
        study.add_clicks(a_table(1, tuple("abcdefghijkl")))
        images = [entry.id for entry in study.images()]
        fusions = {image: a_fusion(study.clicks(image), image, clusters=image - 1) for image in images[:-1]}
        study.runs.add(a_run(), fusions)
        outlined, read = read_outlines(images, study, silent), read_results(images, study, silent)
    state = fold([])
    assert {image: summarize(image, outlined[image], state) for image in images} == {
        image: summarize(image, read[image], state) for image in images
    }


@pytest.mark.parametrize("outlined", [True, False])
def test_images_are_in_order_before_their_results_are_read(jobs, qtbot, tmp_path, outlined):
    path = tmp_path / "s.rscope"
    with Study.create(path) as study:
        study.add_clicks(a_table(1, tuple("abcdefghijkl")))
        clicks = {entry.id: study.clicks(entry.id) for entry in study.images()}
        fusions = {image: a_fusion(clicks_of_image, image) for image, clicks_of_image in clicks.items()}
        study.runs.add(a_run(), fusions)
    doubt = {}
    for image, fusion in fusions.items():
        wrong = np.minimum(fusion.detection.posterior, 1 - fusion.detection.posterior)
        doubt[image] = wrong[wrong > 0.1].sum()  # of the disputed, on which decisions are asked for
    expected = sorted(doubt, key=doubt.__getitem__, reverse=True)
    if not outlined:  # as an older program kept it
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM outlines")
        connection.close()
    may_read = threading.Event()

    def slowly(images, study, watch):
        may_read.wait(300)
        return read_results(images, study, watch)

    document, panel = Document(jobs, jobs), QueuePanel()
    qtbot.addWidget(panel)
    review_queue = ReviewQueue(
        document, panel, "clicks", slowly, summarize, jobs, outline=read_outlines, nouns=("image", "spot")
    )
    orders = []
    review_queue.ordered.connect(lambda: orders.append([item.key for item in panel.shown()]))
    with qtbot.waitSignal(document.replaced, timeout=LONG):
        document.open(path)
    review_queue.reset()
    review_queue.reread(())
    if outlined:
        qtbot.waitUntil(lambda: orders == [expected], timeout=LONG)
        assert not review_queue.results
    else:
        qtbot.wait(100)
        assert not orders
        assert {item.score for item in panel.shown()} == {None}
    with qtbot.waitSignal(review_queue.all_read, timeout=LONG):
        may_read.set()
    assert orders[-1] == expected
    assert review_queue.results.keys() == fusions.keys()
    document.close()
    qtbot.waitUntil(lambda: not jobs.busy, timeout=LONG)


def test_one_damaged_result_hides_only_the_results_that_are_read_with_it(jobs, qtbot, tmp_path):
    path = tmp_path / "s.rscope"
    with Study.create(path) as study:
        study.add_clicks(a_table(1, tuple(f"{number:03}" for number in range(100))))
        images = [entry.id for entry in study.images()]
        study.runs.add(a_run(), {image: a_fusion(study.clicks(image), 1) for image in images})
    damaged = images[50]

    def read(images, study, watch):
        if damaged in images:
            raise ValueError("damaged")
        return read_results(images, study, watch)

    document, panel = Document(jobs, jobs), QueuePanel()
    qtbot.addWidget(panel)
    review_queue = ReviewQueue(document, panel, "clicks", read, summarize, jobs, nouns=("image", "spot"))
    with qtbot.waitSignal(document.replaced, timeout=LONG):
        document.open(path)
    with qtbot.waitSignal(review_queue.all_read, timeout=LONG):
        review_queue.reread(())
    assert set(images) - review_queue.results.keys() == set(images[48:56])
    gone = weakref.ref(review_queue.results[images[0]])
    review_queue.reset()
    assert not review_queue.results
    qtbot.waitUntil(lambda: gone() is None, timeout=LONG)
    document.close()
    qtbot.waitUntil(lambda: not jobs.busy, timeout=LONG)


def test_an_image_with_one_annotator_is_not_settled(tmp_path):
    lines = {}
    with Study.create(tmp_path / "s.rscope") as study:
        study.add_clicks(a_table(1, ("many",)))
        study.add_clicks(a_table(2, ("alone",), annotators=1))
        for entry in study.images():
            clicks = study.clicks(entry.id)
            known = ImageResult(a_fusion(clicks, 1, clusters=0), clicks.annotators)
            lines[entry.name] = summarize(entry.id, known, fold([]))
    assert (lines["alone"].in_words(), lines["alone"].done) == ("0 detections, 1 annotator", False)
    assert (lines["many"].in_words(), lines["many"].done) == ("0 detections", True)


def test_later_clicks_are_counted_in_the_status_line(tmp_path):
    with Study.create(tmp_path / "s.rscope") as study:
        study.add_clicks(a_table(1, ("a", "b")))
        first, other = (entry.id for entry in study.images())
        fusions = {image: a_fusion(study.clicks(image), 1) for image in (first, other)}
        run = study.runs.add(replace(a_run(), imported=study.last_import()), fusions)
        study.add_clicks(a_table(2, ("a",), clicks=3))
        scenes = [read_scene(image, run, study, silent) for image in (first, other)]
    assert [scene.later for scene in scenes] == [3, 0]
    assert status(scenes[0], ()).endswith("3 clicks imported since: fuse again (F5)")
    assert "since" not in status(scenes[1], ())
