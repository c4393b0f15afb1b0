"""The top bar in windows of several sizes."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from raterscope.app.window.bars import TopBar
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.widgets import theme


@pytest.mark.parametrize("width", [1024, 1100, 1200, 1440, 1920])
def test_the_progress_of_a_fusion_has_words_at_every_width(width, qtbot, qapp):
    theme.apply_theme(qapp, theme.DARK)
    bar = TopBar([(kind, workspace.title) for kind, workspace in WORKSPACES.items()])
    qtbot.addWidget(bar)
    bar.resize(width, bar.height())
    bar.set_study(Path("readers.rscope"))
    bar.set_fusing_possible(True)
    job = SimpleNamespace(fraction=0.4, seconds_left=130.0, text="fusing case 3", state="running")
    bar.set_fusing(job)
    with qtbot.waitExposed(bar):
        bar.show()
    words, progress = bar._progress_label, bar._progress
    assert words.text() == "2 min 10 s left, fusing case 3"
    assert words.width() >= words.fontMetrics().horizontalAdvance("2 min 10 s left,")
    assert not words.geometry().intersects(progress.geometry())
    assert words.geometry().right() < bar.cancel.geometry().left()
    bar.set_fusing(None)
    qtbot.wait(0)
    assert bar.fuse.width() == bar.cancel.minimumWidth()
    bar.set_fusing(job)
    qtbot.wait(0)
    assert 0 <= words.geometry().top() <= progress.geometry().bottom() < bar.height()
    assert words.height() >= words.fontMetrics().height()
