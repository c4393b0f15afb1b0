"""Classes of clicks in the window: bars in the evidence, digits that decide, lists by class, undo."""

import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.simulation.click_crowds import separated_crowd
from raterscope.app.cli import main
from raterscope.app.study import Study
from tests.algorithms.clicks.crowds import name_clicks
from tests.app.driving import idle, open_study, press

CLASSES = ("ring", "schizont", "white blood cell")
CONTROL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def named(window, qtbot, tmp_path):
    """The window with a fused study of clicks of three classes on two images."""
    lines = ["annotator,image,x,y,width,height,class"]
    for image in range(2):
        crowd = separated_crowd(8, seed=5 + image)
        clicks, _ = name_clicks(crowd.clicks, crowd.mean, CLASSES, seed=2, image=image, accuracy=(0.4, 0.9))
        lines += [
            f"w{annotator},{image}.png,{x:.2f},{y:.2f},1000,1000,{CLASSES[label]}"
            for x, y, annotator, label in zip(clicks.x, clicks.y, clicks.annotator, clicks.label, strict=True)
        ]
    (tmp_path / "clicks.csv").write_text("\n".join(lines) + "\n")
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), str(tmp_path / "clicks.csv")]) == 0
    assert main(["run", str(path), "oem"]) == 0
    opened = open_study(window, qtbot, path)
    opened.workspace.canvas.setFocus()
    return opened


def last(window):
    return window.document.contents.decisions[-1]


def test_spots_are_decided_by_class_alone_together_and_blind(named, qtbot):
    workspace = named.workspace
    workspace.reviewing.select(0)
    bars = workspace.evidence.classes.lines
    assert [(bar.name, bar.digit) for bar in bars] == [(name, str(at)) for at, name in enumerate(CLASSES, 1)]
    assert sum(bar.share for bar in bars) == pytest.approx(1)
    press(named, qtbot, Qt.Key.Key_3)
    assert (last(named).verb, last(named).subject.label) == ("accept", "white blood cell")
    workspace.reviewing.select(0)
    assert [bar.note for bar in workspace.evidence.classes.lines] == ["", "", "decided"]
    press(named, qtbot, Qt.Key.Key_Z, CONTROL)
    assert workspace.reviewing.spots[0].label == ""

    workspace.reviewing.select(0)
    press(named, qtbot, Qt.Key.Key_A)
    workspace.reviewing.go_to(0)
    press(named, qtbot, Qt.Key.Key_1)
    assert (workspace.reviewing.spots[0].state, workspace.reviewing.spots[0].label) == ("accepted", "ring")
    count = len(named.document.contents.decisions)
    workspace.reviewing.go_to(0)
    press(named, qtbot, Qt.Key.Key_2)
    assert len(named.document.contents.decisions) == count

    workspace, grid = named.workspace, named.workspace.grid
    press(named, qtbot, Qt.Key.Key_G)
    grid.where_choice.setCurrentIndex(grid.where_choice.findData("study"))
    grid.kind_choice.setCurrentIndex(grid.kind_choice.findText("class in doubt"))
    idle(named, qtbot)
    doubtful = [item.spot for item in workspace.batch_review._listed.values()]
    assert doubtful
    assert all(spot.present and spot.class_share < 0.9 for spot in doubtful)
    shares = [spot.class_share for spot in doubtful]
    assert shares == sorted(shares)
    grid.view.selectAll()
    press(named, qtbot, Qt.Key.Key_2)
    subject = last(named).subject
    assert subject.label == "schizont"
    assert len(subject.spots) == len(doubtful)
    idle(named, qtbot)
    assert not workspace.batch_review._listed
    grid.kind_choice.setCurrentIndex(grid.kind_choice.findText("schizont"))
    idle(named, qtbot)
    listed = list(workspace.batch_review._listed.values())
    assert {item.spot.class_name for item in listed} == {"schizont"}
    assert len(listed) >= len(doubtful)


def test_blind_mode_shows_the_classes_without_votes(named, qtbot):
    workspace = named.workspace
    press(named, qtbot, Qt.Key.Key_H)
    workspace.reviewing.select(1)
    bars = workspace.evidence.classes.lines
    assert [bar.name for bar in bars] == list(CLASSES)
    assert all(bar.share != bar.share and bar.votes < 0 for bar in bars)
    press(named, qtbot, Qt.Key.Key_1)
    assert last(named).subject.blind
    with Study.open(named.document.contents.path, to_read=True, lock=False) as study:
        assert study.decisions()[-1].subject.label == "ring"
