"""Session of a workspace, and background tasks that keep the newest answer."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError
from raterscope.app.jobs import Job, Jobs, Lane
from raterscope.app.session import LatestTask, Session, while_shown
from tests.waiting import LONG


@pytest.fixture
def session(qtbot: Any) -> Session[str, int]:
    return Session()


def heard(session: Session[str, int]) -> list[object]:
    """List what observers hear."""
    messages: list[object] = []
    session.scene_changed.connect(lambda scene: messages.append(("scene", scene)))
    session.cleared.connect(lambda: messages.append("cleared"))
    session.selection_changed.connect(lambda selection: messages.append(("selection", selection)))
    session.blind_changed.connect(lambda blind: messages.append(("blind", blind)))
    return messages


def test_observers_are_notified_of_a_scene_and_of_its_removal(session):
    messages = heard(session)
    session.show("first", 1)
    session.clear()
    assert messages == [("scene", "first"), "cleared"]
    assert not session.shown


def test_without_a_scene_access_raises(session):
    with pytest.raises(LookupError):
        _ = session.scene
    with pytest.raises(LookupError):
        _ = session.analysis


def test_grouped_changes_are_reported_once_with_one_state(session):
    messages = heard(session)
    calls = []
    session.scene_changed.connect(lambda scene: calls.append((scene, session.selection, session.blind)))
    with session.change():
        session.select((1,))
        session.show("first", 1)
        session.set_blind(True)
        session.show("second", 2)
        session.select((2, 3))
        assert messages == []
    assert messages == [("scene", "second"), ("blind", True), ("selection", (2, 3))]
    assert calls == [("second", (2, 3), True)]


def test_nested_groups_report_at_the_end_of_the_outermost(session):
    messages = heard(session)
    with session.change():
        with session.change():
            session.show("first")
        assert messages == []
    assert messages == [("scene", "first")]


def test_the_last_of_showing_and_clearing_counts(session):
    messages = heard(session)
    with session.change():
        session.show("first")
        session.clear()
    assert messages == ["cleared"]
    with session.change():
        session.clear()
        session.show("second")
    assert messages == ["cleared", ("scene", "second")]


def test_the_scene_before_is_known_while_observers_are_called(session):
    before = []
    session.scene_changed.connect(lambda _scene: before.append(session.previous))
    session.show("first")
    session.show("second")
    assert before == [None, "first"]
    assert session.previous is None


def test_changes_by_an_observer_are_reported_after_it(session):
    messages = heard(session)
    session.scene_changed.connect(lambda _scene: session.select((7,)))
    with session.change():
        session.show("first")
        session.set_blind(True)
    assert messages == [("scene", "first"), ("blind", True), ("selection", (7,))]


def test_an_unchanged_blind_mode_is_not_reported(session):
    messages = heard(session)
    session.set_blind(False)
    assert messages == []


def test_an_amended_scene_differs_from_a_new_one(session):
    session.show("first", 1)
    messages = heard(session)
    session.scene_amended.connect(lambda scene: messages.append(("amended", scene)))
    session.amend("first, settled")
    assert messages == [("amended", "first, settled")]
    assert session.scene == "first, settled"
    assert session.analysis == 1


def test_views_are_called_once_for_scene_part_and_cover(session):
    messages = heard(session)
    session.part_changed.connect(lambda part: messages.append(("part", part)))
    session.view_changed.connect(
        lambda scene: messages.append(("view", scene, session.part, session.covered))
    )
    session.scene_changed.connect(lambda _scene: session.set_covered(True))
    session.show("first", part="GTV")
    assert messages == [("scene", "first"), ("view", "first", "GTV", True)]
    messages.clear()
    session.set_part("CTV")
    assert messages == [("part", "CTV"), ("view", "first", "CTV", True)]
    messages.clear()
    session.set_covered(False)
    assert messages == [("view", "first", "CTV", False)]


def test_only_the_scene_that_stays_is_settled(session, qtbot):
    settled = []
    session.scene_settled.connect(settled.append)
    session.show("first")
    session.show("second")
    qtbot.waitUntil(lambda: bool(settled))
    assert settled == ["second"]
    session.show("third")
    session.clear()
    qtbot.wait(20)
    assert settled == ["second"]


class Part(QObject):
    """Something with a slot that needs a scene."""

    pressed = Signal(int)

    def __init__(self, session: Session[str, int]) -> None:
        super().__init__()
        self._session = session
        self.done: list[str] = []
        self.pressed.connect(self.act)

    @while_shown
    def act(self) -> None:
        """Note the scene."""
        self.done.append(self._session.scene)


def test_a_slot_waits_for_a_scene_and_takes_no_more_than_it_wants(session):
    part = Part(session)
    part.pressed.emit(1)
    assert part.done == []
    session.show("first")
    part.pressed.emit(1)
    part.act()
    assert part.done == ["first", "first"]


@pytest.fixture
def jobs(qtbot: Any) -> Any:
    instance = Jobs()
    yield instance
    instance.close()


def held(release: threading.Event, answer: object) -> Callable[[Watch], object]:
    """Make work that does not notice a cancellation before it is released."""

    def work(watch: Watch) -> object:
        watch(0.0, "working")
        release.wait(LONG / 1000)
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


def test_a_replaced_job_is_cancelled(jobs, qtbot):
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
        release.wait(LONG / 1000)
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
        heard.append(job.text)

    task.follow(jobs.start("work", held(release, None)), lambda _answer: None, progressed=progressed)
    qtbot.waitUntil(lambda: heard == ["working"])
    release.set()
    qtbot.waitUntil(lambda: not task.busy)


def test_jobs_side_by_side_deliver_every_answer_until_it_is_cancelled(jobs, qtbot):
    release, answers, group = threading.Event(), [], LatestTask()
    for number in range(3):
        group.follow(jobs.start("work", quick(number)), answers.append, beside=True)
    qtbot.waitUntil(lambda: sorted(answers) == [0, 1, 2])
    last = jobs.start("work", held(release, 3))
    group.follow(last, answers.append)
    assert group.busy
    group.cancel()
    assert not group.busy
    release.set()
    qtbot.waitUntil(lambda: last.over)
    assert sorted(answers) == [0, 1, 2]
