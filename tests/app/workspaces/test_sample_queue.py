"""The queue of an acceptance sample in the window."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton

from tests.app.driving import command, idle, open_study, press


@pytest.fixture
def sampled(window, qtbot, four_study):
    """The window with a sample of labels, drawn in the dialog."""
    open_study(window, qtbot, four_study)
    window.show_workspace("labels")
    idle(window, qtbot)
    assert not can_end(window)
    command(window, "Start an acceptance plan…")
    sample = window.workspace.core.sample
    qtbot.waitUntil(lambda: sample.dialog is not None and sample.dialog.accepting.isEnabled())
    sample.dialog.form.editors()["unacceptable"].setText("0.4")
    sample.dialog.form.changed.emit()
    qtbot.waitUntil(lambda: sample.dialog.accepting.isEnabled())
    idle(window, qtbot)
    sample.dialog.accepting.click()
    idle(window, qtbot)
    return window


def can_end(window) -> bool:
    """Return whether the command palette offers to end the plan."""
    (end,) = (item for item in window.window_actions.commands() if item.text == "End the acceptance plan")
    return end.possible


def decide(window, qtbot, *, right: bool) -> None:
    sample, tasks = window.workspace.core.sample, window.workspace.tasks
    place = sample._panel.current
    answer = sample.progress.subject.items[place].answer
    classes = window.workspace.session.scene.classes
    tasks.decide(classes.index(answer) if right else 1 - classes.index(answer))
    idle(window, qtbot)


def test_the_queue_shows_only_the_sample_and_ends_with_the_verdict(sampled, qtbot):
    workspace = sampled.workspace
    sample = workspace.core.sample
    panel, size = sample._panel, len(sample.progress.subject.items)
    assert panel.isVisible()
    assert can_end(sampled)
    assert not workspace.queue.view.isVisible()
    assert len(panel.shown()) == size
    on_screen = workspace.session.scene.labels.tasks[workspace.tasks.current]
    assert on_screen == sample.progress.subject.items[0].name
    decide(sampled, qtbot, right=False)
    assert sample.progress.count_in_words().startswith(f"1 of {size} re-read, 1 error, at most")
    press(sampled, qtbot, Qt.Key.Key_Z)
    assert sample.progress.errors == 0
    assert panel.current == 0
    while sample.progress.verdict == "continue":
        decide(sampled, qtbot, right=True)
    assert sampled.notice.text.startswith("Accepted: ") or "Accepted" in sample.nothing_left()
    (end,) = (button for button in panel.findChildren(QPushButton) if button.text() == "End the plan")
    end.setFocus()
    qtbot.mouseClick(end, Qt.MouseButton.LeftButton)
    idle(sampled, qtbot)
    assert workspace.queue.view.isVisible()
    assert not can_end(sampled)
    assert workspace.queue.view.hasFocus()  # and not the filter, which would take the next keys as text
    press(sampled, qtbot, Qt.Key.Key_Z)
    assert panel.isVisible()


def test_a_study_that_is_opened_again_goes_on_with_its_sample(sampled, qtbot, four_study):
    decide(sampled, qtbot, right=False)
    words = sampled.workspace.core.sample.progress.count_in_words()
    sampled.document.leave()
    idle(sampled, qtbot)
    open_study(sampled, qtbot, four_study)
    sampled.show_workspace("labels")
    idle(sampled, qtbot)
    sample = sampled.workspace.core.sample
    assert sample.progress.count_in_words() == words
    assert sample._panel.isVisible()


@pytest.mark.parametrize("kind", ["clicks", "masks", "pairs"])
def test_every_kind_goes_to_its_sampled_items(window, qtbot, four_study, kind):
    from raterscope.algorithms.annotators.acceptance import SingleSampling
    from raterscope.app.annotators.acceptance import list_undecided
    from raterscope.app.review import Decision, SampleSubject
    from raterscope.app.study import Study

    with Study.open(four_study) as study:
        items = tuple(list_undecided(kind, study)[-1:])
        subject = SampleSubject(of=kind, items=items, total=9, single=SingleSampling(1, 0, 0.05, 0.95))
        study.record(Decision(verb="sample", subject=subject))
    open_study(window, qtbot, four_study)
    window.show_workspace(kind)
    idle(window, qtbot)
    workspace = window.workspace
    assert workspace.core.sample.go(1)
    idle(window, qtbot)
    assert workspace.current_item() == items[0].item
    if kind == "pairs":
        name = workspace.session.scene.pairs.annotators[workspace.queue.current]
        assert name == items[0].name
        workspace.bias_review.record("flag" if items[0].answer == "clear" else "clear", name, "seen")
    else:
        shown = workspace.reviewing.spot if kind == "clicks" else workspace.reviewing.region
        assert shown.number == items[0].number
        if kind == "clicks":
            workspace.reviewing.decide("reject")
        else:
            workspace.reviewing.take(next(iter(workspace.session.scene.masks[items[0].name])))
    idle(window, qtbot)
    assert workspace.core.sample.progress.verdict == "reject"
