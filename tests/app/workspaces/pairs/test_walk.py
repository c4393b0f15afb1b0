"""Annotators of pairs are reviewed one by one; a decided one is not changed by accident."""

from PySide6.QtCore import Qt

from raterscope.app.review import BiasSubject, Decision
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog
from tests.app.driving import idle
from tests.app.workspaces.pairs.driving import key
from tests.app.workspaces.pairs.made import PEOPLE
from tests.app.workspaces.walking import left, nothing_left

FEW = 5


def leave(window, qtbot, few):
    """Clear all annotators but a few, as another expert did before."""
    question = window.workspace.session.scene.question.id
    for name in window.workspace.session.scene.pairs.annotators[few:]:
        subject = BiasSubject(annotator=name)
        window.document.record(Decision(verb="clear", item=question, subject=subject))
    idle(window, qtbot)
    window.workspace.choose(window.workspace.queue.first)
    assert left(window) == few


def judge(window, qtbot, name) -> bool:
    key(window, qtbot, name)
    dialogs = [dialog for dialog in window.workspace.findChildren(ReasonDialog) if dialog.isVisible()]
    for dialog in dialogs:
        dialog.accept()
    idle(window, qtbot)
    return bool(dialogs)


def test_flagging_and_clearing_alone_reach_all_annotators_once(fused, qtbot):
    workspace = fused.workspace
    assert left(fused) == PEOPLE
    leave(fused, qtbot, FEW)
    keys = [Qt.Key.Key_F, Qt.Key.Key_C]
    for step in range(FEW):
        assert not nothing_left(fused)
        assert judge(fused, qtbot, keys[step % 2])
        assert left(fused) == FEW - step - 1
    assert nothing_left(fused)
    assert not judge(fused, qtbot, Qt.Key.Key_F)
    assert "by you already" in fused.status.message
    recorded = fused.document.contents.decisions
    assert len({decision.subject.annotator for decision in recorded}) == len(recorded) == PEOPLE
    last = workspace.queue.current
    workspace.queue.chosen.emit(last)
    assert judge(fused, qtbot, Qt.Key.Key_F)


def test_tab_wraps_round_undecided_annotators(fused, qtbot):
    leave(fused, qtbot, 2)
    calls = []
    for _ in range(4):
        key(fused, qtbot, Qt.Key.Key_Tab)
        calls.append(fused.workspace.queue.current)
    assert len(set(calls)) == 2
    assert calls[:2] == calls[2:]


def test_the_bottom_grows_with_the_window_until_its_edge_is_moved(fused, qtbot):
    middle = fused.workspace.middle
    for height, bottom in ((720, range(150, 185)), (1000, range(220, 240)), (720, range(150, 185))):
        fused.resize(1280, height)
        qtbot.waitUntil(lambda bottom=bottom: middle.sizes()[1] in bottom)
    fused.resize(1280, 1000)
    middle.setSizes([sum(middle.sizes()) - 240, 240])
    middle.splitterMoved.emit(240, 1)
    fused.resize(1280, 720)
    idle(fused, qtbot)
    assert middle.sizes()[1] == 240
