"""Case on screen after the first fusion: the most disputed, or the one that is viewed."""

import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.widgets.panels.region_panel import NOT_DISPUTED, ONE_RATER
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.masks.driving import go_to, key
from tests.app.workspaces.masks.made import READERS, SHAPE, SPACING, ball, drawn
from tests.reading import visible_words


@pytest.fixture
def unfused(window, qtbot, tmp_path):
    """Two cases: on the one that came first all agree, on the other one reader does not."""
    path = tmp_path / "two.rscope"
    with Study.create(path) as study:
        for name, masks in (("agreed", dict.fromkeys(READERS, ball(8.0))), ("disputed", drawn())):
            case = add_case(study, name, Grid.plain(SHAPE, SPACING, calibrated=True))
            placed = [
                PlacedMask(case.id, annotator, "n", (0, 0, 0), mask) for annotator, mask in masks.items()
            ]
            add_masks(study, placed, "masks")
    return open_study(window, qtbot, path)


def fuse(window, qtbot):
    key(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(window.document.contents.runs), timeout=LONG)
    idle(window, qtbot)


def on_screen(window) -> str:
    return window.workspace.session.scene.image.name


def test_the_most_disputed_case_replaces_an_unviewed_one_and_begins_on_its_disputed_slice(unfused, qtbot):
    assert on_screen(unfused) == "agreed"
    fuse(unfused, qtbot)
    assert on_screen(unfused) == "disputed"
    assert NOT_DISPUTED not in visible_words(unfused.workspace.region_panel)
    go_to(unfused, qtbot, "agreed")
    assert NOT_DISPUTED in visible_words(unfused.workspace.region_panel)
    fuse(unfused, qtbot)
    qtbot.waitUntil(lambda: len(unfused.document.contents.runs) == 2, timeout=LONG)
    idle(unfused, qtbot)
    assert on_screen(unfused) == "agreed"

    workspace = unfused.workspace
    go_to(unfused, qtbot, "disputed")
    doubt = workspace.session.scene.report("n").by_slice
    assert doubt[workspace.volume.crosshair[0]] == doubt.max() > 0
    key(unfused, qtbot, Qt.Key.Key_H)
    go_to(unfused, qtbot, "agreed")
    go_to(unfused, qtbot, "disputed")
    low, high = workspace.reviewing.consensus.origin[0], workspace.reviewing.consensus.values.shape[0]
    assert workspace.volume.crosshair[0] == low + high // 2


@pytest.mark.parametrize("look", ["key", "mouse", "queue"])
def test_a_viewed_case_stays(unfused, qtbot, look):
    if look == "key":
        key(unfused, qtbot, Qt.Key.Key_Up)
    elif look == "mouse":
        qtbot.mouseClick(unfused.workspace.volume._views["axial"], Qt.MouseButton.LeftButton)
    else:
        go_to(unfused, qtbot, "agreed")
    fuse(unfused, qtbot)
    assert on_screen(unfused) == "agreed"


def test_keys_reach_the_masks_after_a_study_of_clicks(window, qtbot, study_file, masks_study):
    clicks = open_study(window, qtbot, study_file).workspace
    clicks.canvas.setFocus()
    open_study(window, qtbot, masks_study)
    assert window.workspace is not clicks
    assert window.workspace.isAncestorOf(window.focusWidget())


def test_a_case_of_one_rater_names_why_nothing_is_disputed(window, qtbot, tmp_path):
    with Study.create(tmp_path / "one.rscope") as study:
        case = add_case(study, "case", Grid.plain(SHAPE, SPACING, calibrated=True))
        add_masks(study, [PlacedMask(case.id, "ann", "n", (0, 0, 0), ball(8.0))], "masks")
    fuse(open_study(window, qtbot, tmp_path / "one.rscope"), qtbot)
    assert ONE_RATER in visible_words(window.workspace.region_panel)
    assert not any("Press Fuse" in words for words in visible_words(window.workspace.matrix))
