"""Annotators on which two experts differ head the queue, and are settled by key."""

import shutil

from PySide6.QtCore import Qt

from raterscope.app.review import BiasSubject, Decision
from tests.app.driving import LONG, open_study
from tests.app.workspaces.merged import header, merge
from tests.app.workspaces.pairs.test_walk import judge


def on(verb: str, name: str) -> Decision:
    return Decision(verb=verb, item=1, subject=BiasSubject(annotator=name), reason="seen")


def test_contested_annotators_come_first_and_leave_once_settled(
    window, qtbot, pairs_study, pairs_original_fused
):
    shutil.copy(pairs_original_fused, pairs_study)
    open_study(window, qtbot, pairs_study)
    last = [window.workspace.session.scene.pairs.annotators[n] for n in window.workspace.queue.order[-2:]]
    window.document.leave()
    path = merge(pairs_study, [on("flag", name) for name in last], [on("clear", name) for name in last])
    open_study(window, qtbot, path)
    workspace = window.workspace
    qtbot.waitUntil(lambda: workspace.rate_cut.ranking is not None, timeout=LONG)
    names = workspace.session.scene.pairs.annotators
    assert {names[number] for number in workspace.queue.order[:2]} == set(last)
    assert "2 contested" in header(window)
    assert "Experts differ: anna: flag; ben: clear." in workspace.evidence._sentence.text()
    assert workspace.queue._shown.item(workspace.queue.current).detail.startswith("contested: ")
    assert judge(window, qtbot, Qt.Key.Key_C)
    assert "1 contested" in header(window)
    assert names[workspace.queue.current] in last
    assert judge(window, qtbot, Qt.Key.Key_F)
    assert "contested" not in header(window)
    assert names[workspace.queue.current] not in last
