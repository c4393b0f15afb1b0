"""Work off the GUI thread: what the window may count on."""

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QTimer

from raterscope import __version__
from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.labels.data import LabelsError
from raterscope.algorithms.masks.data import MasksError
from raterscope.algorithms.pairs.data import PairsError
from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import InputError
from raterscope.app.importing import read_files
from raterscope.app.jobs import Lane, Pace
from raterscope.app.kinds.masks.attribution import MaskOptions
from tests.waiting import LONG


def test_the_answer_arrives_in_the_gui_thread(jobs, qtbot):
    threads = []
    job = jobs.start("Adding", lambda watch: (threading.current_thread(), 2 + 2))
    answers = []
    job.finished.connect(answers.append)
    job.finished.connect(lambda: threads.append(threading.current_thread()))
    with qtbot.waitSignal(job.ended):
        pass
    worker, answer = answers[0]
    assert answer == 4
    assert worker is not threading.main_thread()
    assert threads == [threading.main_thread()]


def test_progress_is_reported_in_words_and_never_falls(jobs, qtbot):
    def work(watch):
        for fraction in (0.1, 0.5, 0.3, 0.9):
            watch(fraction, f"at {fraction}")
            time.sleep(0.06)

    job = jobs.start("Walking", work)
    calls = []
    job.progressed.connect(lambda: calls.append((job.fraction, job.text)))
    with qtbot.waitSignal(job.ended):
        pass
    assert [words for _, words in calls] == ["at 0.1", "at 0.5", "at 0.3", "at 0.9"]
    fractions = [fraction for fraction, _ in calls]
    assert fractions == sorted(fractions)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_long_work_and_its_threads_leave_the_processor_to_the_window(jobs, qtbot, monkeypatch):
    monkeypatch.setattr("raterscope.app.jobs.NICE_INCREMENT", 1)

    def priority(_watch=None):
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def with_threads(watch):
        with ThreadPoolExecutor(1) as pool:
            return priority(), pool.submit(priority).result()

    lane = Lane("study")
    long = jobs.start("Fusing", with_threads)
    others = [jobs.start("Ranking", priority, quiet=True), jobs.start("Importing", priority, lane=lane)]
    answers = {}
    for job in (long, *others):
        job.finished.connect(partial(answers.__setitem__, job.title))
    qtbot.waitUntil(lambda: len(answers) == 3)
    lane.close()
    assert answers["Ranking"] == answers["Importing"] == priority()
    fusing, within = answers["Fusing"]
    assert fusing == within > priority()


def test_cancel_is_acknowledged_at_once_and_the_work_stops(jobs, qtbot):
    stopped = threading.Event()

    def work(watch):
        try:
            while True:
                watch(0.5, "turning")
                time.sleep(0.005)
        finally:
            stopped.set()

    job = jobs.start("Turning", work)
    finished = []
    job.finished.connect(finished.append)
    qtbot.waitUntil(lambda: job.fraction > 0)
    with qtbot.waitSignal(job.ended):
        job.cancel()
        assert job.state == "cancelling"
    assert job.state == "cancelled"
    assert stopped.wait(LONG / 1000)
    assert finished == []


def test_work_that_does_not_notice_is_abandoned_and_its_late_answer_dropped(jobs, qtbot):
    release = threading.Event()
    job = jobs.start("Deaf", lambda watch: release.wait(LONG / 1000))
    finished = []
    job.finished.connect(finished.append)
    with qtbot.waitSignal(job.ended):
        job.cancel()
    release.set()
    qtbot.wait(100)
    assert finished == []


def test_what_was_written_before_the_cancelling_was_noticed_counts_as_done(jobs, qtbot):
    lane = Lane("writer")
    written = threading.Event()
    go_on = threading.Event()

    def work(watch):
        written.set()
        go_on.wait(LONG / 1000)
        return "on disk"

    job = jobs.start("Writing", work, lane=lane)
    answers = []
    job.finished.connect(answers.append)
    assert written.wait(LONG / 1000)
    with qtbot.waitSignal(job.ended):
        job.cancel()
        go_on.set()
    assert answers == ["on disk"]
    lane.close()


def test_a_lane_keeps_the_order(jobs, qtbot):
    lane = Lane("orderly")
    order = []
    last = [jobs.start(str(i), lambda watch, i=i: order.append(i), lane=lane) for i in range(20)][-1]
    with qtbot.waitSignal(last.ended):
        pass
    assert order == list(range(20))
    lane.close()


@pytest.mark.parametrize(
    "kind", [InputError, SettingsError, ClicksError, MasksError, LabelsError, PairsError]
)
def test_a_foreseen_failure_is_its_own_sentence(jobs, qtbot, kind):
    def work(watch):
        raise kind("scatter is 0; expected at least 0.1 px.")

    messages = []
    jobs.updated.connect(lambda job: messages.append((job.state, job.error)))
    job = jobs.start("Failing", work)
    with qtbot.waitSignal(job.failed) as caught:
        pass
    sentence = "scatter is 0; expected at least 0.1 px."
    assert caught.args == [sentence]
    assert messages == [("running", ""), ("failed", sentence)]


def test_an_unforeseen_failure_is_one_sentence_with_a_file_for_its_report(jobs, qtbot, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def work(_watch):
        raise ZeroDivisionError("secret detail")

    job = jobs.start("Breaking", work)
    qtbot.waitUntil(lambda: job.over)
    assert job.error.startswith("Internal error (ZeroDivisionError). Report it with the file ")
    report = Path(job.error.removesuffix(".").rpartition("file ")[2])
    assert __version__ in report.read_text()
    for written in (report.read_text(), job.details):
        assert "secret detail" in written
        assert "in work" in written


def test_an_unforeseen_failure_refers_to_the_jobs_where_no_file_can_be_written(
    jobs, qtbot, monkeypatch, tmp_path
):
    (tmp_path / "full").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "full"))
    job = jobs.start("Breaking", lambda _watch: 1 // 0)
    qtbot.waitUntil(lambda: job.over)
    assert job.error == "Internal error (ZeroDivisionError). See the details under Jobs, and report it."
    assert "ZeroDivisionError" in job.details


def test_partial_results_wait_until_the_last_one_was_drawn(jobs, qtbot, monkeypatch):
    monkeypatch.setattr("raterscope.app.jobs.PARTIAL_SECONDS", 0.01)
    created, drawn = [], []

    def work(watch):
        while len(created) < 5:
            watch(0.5, "drawing", partial=lambda: created.append((len(created), len(drawn))) or created[-1])

    job = jobs.start("Drawing", work)
    job.partial.connect(drawn.append)
    with qtbot.waitSignal(job.ended):
        pass
    assert drawn == created
    assert all(number == before for number, before in created)


def test_partial_results_are_not_made_more_often_than_they_can_be_seen(jobs, qtbot, monkeypatch):
    now, created, drawn = [0.0], [], []
    window = threading.get_ident()

    def later():
        now[0] += 0.01 * (threading.get_ident() != window)  # only the job's thread moves the clock
        return now[0]

    clock = SimpleNamespace(perf_counter=later, monotonic=time.monotonic)
    monkeypatch.setattr("raterscope.app.jobs.time", clock)

    def work(watch):
        while now[0] < 2:
            watch(0.5, "drawing", partial=lambda: created.append(now[0]))
            while len(drawn) < len(created):
                time.sleep(0.001)

    job = jobs.start("Drawing", work)
    # The next partial result is requested after the signal: the work goes on in a later turn.
    job.partial.connect(lambda value: QTimer.singleShot(0, partial(drawn.append, value)))
    with qtbot.waitSignal(job.ended):
        pass
    assert len(created) > 1
    assert np.diff(created).min() > 0.15 - 0.005


def test_closing_ends_jobs_and_leaves_no_thread(jobs, qtbot):
    def work(watch):
        while True:
            watch(0.5, "turning")
            time.sleep(0.005)

    for _ in range(3):
        jobs.start("Turning", work)
    jobs.close()
    assert not jobs.busy
    qtbot.waitUntil(lambda: "Turning" not in {thread.name for thread in threading.enumerate()})


def test_a_job_stays_until_its_thread_has_left_it(jobs, qtbot):
    """The thread may still be inside the signal that it sent last."""
    release, go_on = threading.Event(), threading.Event()

    def work(watch):
        release.set()
        go_on.wait(LONG / 1000)
        watch(0.5, "too late")

    job = jobs.start("deaf", work)
    gone = []
    job.destroyed.connect(lambda: gone.append(True))
    assert release.wait(LONG / 1000)
    job.abandon()
    qtbot.wait(100)
    assert not gone
    go_on.set()
    qtbot.waitUntil(lambda: bool(gone))


def test_the_time_left_follows_the_present_step_where_steps_differ_in_speed():
    pace, wrong = Pace(), []
    ends = [(0.0, 0.0), (8.0, 0.7), (40.0, 1.0)]  # seconds, fraction
    for elapsed in np.arange(0.1, 40.0, 0.1):
        left = pace.seconds_left(elapsed, float(np.interp(elapsed, *zip(*ends, strict=True))))
        if left is not None and elapsed > 16.0:
            wrong.append(left / (40.0 - elapsed))
    np.testing.assert_allclose(wrong, 1.0)


def test_the_time_left_of_a_folder_is_known_while_its_masks_are_read(tmp_path):
    shapes = [{"label": "cell", "points": [[2, 2], [9, 2], [9, 9]], "shape_type": "polygon"}]
    for number in range(40):
        made = {"shapes": shapes, "imagePath": f"{number}.png", "imageHeight": 20, "imageWidth": 20}
        (tmp_path / f"{number}.json").write_text(json.dumps({"version": "5.0", "flags": {}, **made}))
    seen = {}
    reading = MaskOptions(annotator="Ann")

    def watch(fraction, words, **_):
        seen.setdefault(words, fraction)

    read_files([tmp_path], reading=reading, watch=watch)
    assert seen["looking at 20.json"] == pytest.approx(0.5 * seen["reading 0.json"], abs=0.03)
    assert seen["reading 0.json"] + 1.0 == pytest.approx(2 * seen["reading 20.json"], abs=0.01)
