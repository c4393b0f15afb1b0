"""Background work of which only the newest answer arrives."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.jobs import Job, Jobs, Lane
from raterscope.app.session import LatestTask, TaskGroup


@pytest.fixture
def jobs(qtbot: Any) -> Any:
    made = Jobs()
    yield made
    made.close()


def held(release: threading.Event, answer: object) -> Callable[[Watch], object]:
    """Make work that does not notice a cancellation before it is released."""

    def work(watch: Watch) -> object:
        watch(0.0, "working")
        release.wait(10)
        return answer

    return work


def quick(answer: object) -> Callable[[Watch], object]:
    return lambda _watch: answer


def test_only_the_newest_answer_arrives(jobs, qtbot):
    release, answers, task = threading.Event(), [], LatestTask()
    task.follow(jobs.start("first", held(release, "old")), answers.append)
    task.follow(jobs.start("second", quick("new")), answers.append)
    qtbot.waitUntil(lambda: answers == ["new"])
    release.set()
    qtbot.waitUntil(lambda: not jobs.busy)
    assert answers == ["new"]
    assert not task.busy


def test_an_old_answer_that_comes_last_is_dropped_also_from_the_study_s_thread(jobs, qtbot):
    release, answers, task, lane = threading.Event(), [], LatestTask(), Lane("study")
    first = jobs.start("first", held(release, "old"), lane=lane)
    task.follow(first, answers.append)
    task.follow(jobs.start("second", quick("new")), answers.append)
    qtbot.waitUntil(lambda: answers == ["new"])
    release.set()
    qtbot.waitUntil(lambda: first.over)
    lane.close()
    assert answers == ["new"]


def test_what_is_replaced_is_cancelled(jobs, qtbot):
    release, task = threading.Event(), LatestTask()
    first = jobs.start("first", held(release, None))
    task.follow(first, lambda _answer: None)
    task.follow(jobs.start("second", quick(None)), lambda _answer: None)
    assert first.state == "cancelling"
    release.set()
    qtbot.waitUntil(lambda: first.over)
    assert first.state == "cancelled"


def test_a_cancelled_task_reports_nothing(jobs, qtbot):
    release, heard, task = threading.Event(), [], LatestTask()
    job = jobs.start("work", held(release, "answer"))
    task.follow(
        job,
        heard.append,
        progressed=lambda _job: heard.append("progress"),
        failed=heard.append,
        stopped=lambda: heard.append("stopped"),
    )
    task.cancel()
    release.set()
    qtbot.waitUntil(lambda: job.over)
    assert heard == []
    assert not task.busy


def test_a_job_that_writes_is_not_cancelled(jobs, qtbot):
    release, answers, task = threading.Event(), [], LatestTask()
    job = jobs.start("write", held(release, "written"))
    task.follow(job, answers.append, must_finish=True)
    task.cancel()
    release.set()
    qtbot.waitUntil(lambda: job.over)
    assert job.state == "done"
    assert answers == []


def test_a_stopped_task_reports_that_it_stopped(jobs, qtbot):
    release, heard, task = threading.Event(), [], LatestTask()
    task.follow(
        jobs.start("work", held(release, "answer")), heard.append, stopped=lambda: heard.append("stopped")
    )
    task.stop()
    release.set()
    qtbot.waitUntil(lambda: heard == ["stopped"])
    assert not task.busy


def test_a_failure_is_reported_before_the_stop(jobs, qtbot):
    heard, task = [], LatestTask()

    def work(_watch: Watch) -> None:
        raise InputError("The file is empty.")

    task.follow(
        jobs.start("work", work), heard.append, failed=heard.append, stopped=lambda: heard.append("stopped")
    )
    qtbot.waitUntil(lambda: heard == ["The file is empty.", "stopped"])


def test_the_failure_of_a_replaced_job_is_not_reported(jobs, qtbot):
    release, heard, task = threading.Event(), [], LatestTask()

    def work(_watch: Watch) -> None:
        release.wait(10)
        raise InputError("The file is empty.")

    first = jobs.start("first", work)
    task.follow(first, heard.append, failed=heard.append)
    task.follow(jobs.start("second", quick("new")), heard.append)
    release.set()
    qtbot.waitUntil(lambda: first.over and heard == ["new"])


def test_an_answer_may_start_the_next_job(jobs, qtbot):
    answers, task = [], LatestTask()

    def then(answer: int) -> None:
        assert not task.busy
        answers.append(answer)
        if answer < 3:
            task.follow(jobs.start("next", quick(answer + 1)), then)

    task.follow(jobs.start("first", quick(1)), then)
    qtbot.waitUntil(lambda: answers == [1, 2, 3])


def test_progress_is_reported_while_the_job_runs(jobs, qtbot):
    release, heard, task = threading.Event(), [], LatestTask()

    def progressed(job: Job) -> None:
        heard.append(job.words)

    task.follow(jobs.start("work", held(release, None)), lambda _answer: None, progressed=progressed)
    qtbot.waitUntil(lambda: heard == ["working"])
    release.set()
    qtbot.waitUntil(lambda: not task.busy)


def test_a_group_delivers_every_answer_until_it_is_cancelled(jobs, qtbot):
    release, answers, group = threading.Event(), [], TaskGroup()
    for number in range(3):
        group.follow(jobs.start("work", quick(number)), answers.append)
    qtbot.waitUntil(lambda: sorted(answers) == [0, 1, 2])
    last = jobs.start("work", held(release, 3))
    group.follow(last, answers.append)
    assert group.busy
    group.cancel()
    assert not group.busy
    release.set()
    qtbot.waitUntil(lambda: last.over)
    assert sorted(answers) == [0, 1, 2]
