"""Blind mode of masks: H hides other masks until the expert has settled the structure."""

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.app.window.main_window import MainWindow
from raterscope.widgets.volume.scene import Stroke
from tests.app.driving import LONG, idle, open_study
from tests.app.workspaces.masks.driving import consensus, go_to, key, states
from tests.app.workspaces.masks.made import READERS, SHAPE, SPACING, ball, drawn

MINE = ball(6.0, (16.0, 20.0, 24.0))
"""Mask of the expert: neither that of a reader nor that of the model."""


def draw(window, qtbot, mask, at=None):
    """Draw a mask slice by slice, or one slice of it."""
    for z in np.flatnonzero(mask.any(axis=(1, 2))) if at is None else (at,):
        values = np.where(mask[z : z + 1], 1, OPEN).astype(np.int8)
        window.workspace.volume.painted.emit(Stroke((int(z), 0, 0), values, "axial", int(z)))
    idle(window, qtbot)


def seen(window) -> set[str]:
    return {outline.name for outline in window.workspace.volume._scene.outlines}


def queue_words(window) -> list[str]:
    """Return what a screen reader announces of each case in the queue, without its name."""
    model = window.workspace.queue.view.model()
    rows = [model.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(model.rowCount())]
    return [words.partition(", ")[2] for words in rows]


@pytest.fixture
def blind(fused_masks, qtbot):
    key(fused_masks, qtbot, Qt.Key.Key_H)
    return fused_masks


def test_blind_mode_hides_masks_and_results(fused_masks, qtbot):
    workspace = fused_masks.workspace
    key(fused_masks, qtbot, Qt.Key.Key_D)
    workspace.maps.band.setChecked(True)
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    assert seen(fused_masks) == {*READERS, "the consensus"}
    key(fused_masks, qtbot, Qt.Key.Key_H)
    shown = workspace.volume._scene
    assert seen(fused_masks) == set()
    assert shown.heat is None
    assert shown.band is None
    assert [box.line for box in shown.boxes] == [""]
    assert not workspace.volume._strip.isVisible()
    assert not workspace.table.model.rows
    assert not workspace.matrix.filled
    assert workspace.raters.current is None
    assert queue_words(fused_masks) == ["results hidden", "results hidden"]
    assert workspace.queue.progress == (0.0, ("Case 1 of 2: 0 decided",))
    assert "disputed" not in fused_masks.status.text.text()
    assert not workspace.region_panel._sentence.isVisible()
    assert workspace.region_panel._header.text()[0] == "Region 1"
    key(fused_masks, qtbot, Qt.Key.Key_D)
    assert shown.heat is None
    key(fused_masks, qtbot, Qt.Key.Key_T)
    key(fused_masks, qtbot, Qt.Key.Key_2)
    assert states(fused_masks) == ["undecided"]
    assert workspace.volume._scene.solo is None
    key(fused_masks, qtbot, Qt.Key.Key_H)
    assert seen(fused_masks) == {*READERS, "the consensus"}
    assert shown.heat is not None
    assert not any("hidden" in words for words in queue_words(fused_masks))
    assert "1 of 1 region disputed" in fused_masks.status.text.text()
    assert [row.name for row in workspace.table.model.rows] == list(READERS)


def test_blind_mode_shows_regions_on_request_interpolates_the_drawing_alone_and_is_left_by_the_menu(
    blind, qtbot
):
    assert blind.workspace.volume._scene.boxes == ()
    key(blind, qtbot, Qt.Key.Key_Tab)
    assert len(blind.workspace.volume._scene.boxes) == 1

    first, last = 5, 11
    for at in (first, last):
        draw(blind, qtbot, MINE, at=at)
    key(blind, qtbot, Qt.Key.Key_I)
    (mine,) = blind.workspace.volume._scene.outlines
    between = mine.values[first + 1 - mine.origin[0] : last - mine.origin[0]]
    assert between.any(axis=(1, 2)).all()
    assert between.sum(axis=(1, 2)).max() <= max(MINE[first].sum(), MINE[last].sum())

    (hide,) = [action for action in blind.workspace.actions_made if action.text().startswith("Blind mode")]
    assert hide.isChecked()
    hide.trigger()
    assert not hide.isChecked()
    assert seen(blind) == {*READERS, "the consensus"}


def test_regions_are_settled_as_drawn_and_then_uncovered(blind, qtbot):
    before = consensus(blind)
    key(blind, qtbot, Qt.Key.Key_Tab)
    region = blind.workspace.reviewing.region.dispute
    draw(blind, qtbot, MINE, at=8)
    assert states(blind) == ["undecided"]
    assert seen(blind) == {"what you drew"}
    key(blind, qtbot, Qt.Key.Key_A)
    assert states(blind) == ["mended"]
    assert seen(blind) == {*READERS, "the consensus"}
    assert "visible now" in blind.status.message
    assert blind.menus.undo_action.text() == "Undo paint in region 1, blind"
    mine = np.zeros(SHAPE, dtype=bool)
    mine[8] = MINE[8]
    there = np.zeros(SHAPE, dtype=bool)
    there[tuple(slice(a, a + n) for a, n in zip(region.origin, region.shape, strict=True))] = region.voxels()
    np.testing.assert_array_equal(consensus(blind), np.where(there, mine, before | mine))
    go_to(blind, qtbot, "second")
    key(blind, qtbot, Qt.Key.Key_Z)
    idle(blind, qtbot)
    assert states(blind) == ["undecided"]
    assert seen(blind) == {"what you drew"}


def test_a_contour_drawn_before_a_fusion_is_settled_and_held_fixed(opened_masks, qtbot):
    go_to(opened_masks, qtbot, "first")
    key(opened_masks, qtbot, Qt.Key.Key_H)
    assert seen(opened_masks) == set()
    key(opened_masks, qtbot, Qt.Key.Key_A)
    assert "Draw it first" in opened_masks.status.message
    key(opened_masks, qtbot, Qt.Key.Key_B)
    draw(opened_masks, qtbot, MINE)
    key(opened_masks, qtbot, Qt.Key.Key_A)
    assert opened_masks.menus.undo_action.text() == "Undo paint all of nodule, blind"
    assert "visible now" in opened_masks.status.message
    assert seen(opened_masks) == {*READERS, "the consensus"}
    key(opened_masks, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened_masks.document.contents.runs), timeout=LONG)
    idle(opened_masks, qtbot)
    go_to(opened_masks, qtbot, "first")
    np.testing.assert_array_equal(consensus(opened_masks), MINE)
    assert set(states(opened_masks)) <= {"mended"}
    details = {item.title: item.detail for item in opened_masks.workspace.queue.shown()}
    assert not details["first.nii.gz"].endswith("ml")
    key(opened_masks, qtbot, Qt.Key.Key_Z)
    assert seen(opened_masks) == {"what you drew"}


def test_the_drawing_is_shown_after_a_single_rater_was_shown(fused_masks, qtbot):
    key(fused_masks, qtbot, Qt.Key.Key_2)
    key(fused_masks, qtbot, Qt.Key.Key_H)
    draw(fused_masks, qtbot, MINE, at=8)
    assert [outline.name for outline in fused_masks.workspace.volume._scene.visible_items()] == [
        "what you drew"
    ]


def test_a_fusion_under_way_shows_nothing_either(opened_masks, qtbot):
    go_to(opened_masks, qtbot, "first")
    key(opened_masks, qtbot, Qt.Key.Key_H)
    drawn = []
    opened_masks.workspace.fusing.partial.connect(lambda *_: drawn.append(seen(opened_masks)))
    key(opened_masks, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(opened_masks.document.contents.runs), timeout=LONG)
    idle(opened_masks, qtbot)
    assert drawn
    assert set().union(*drawn, seen(opened_masks)) == set()


def test_a_settled_region_names_no_rater_while_another_is_covered(window, qtbot, tmp_path):
    path = tmp_path / "two.rscope"
    with Study.create(path) as study:
        case = add_case(study, "case", Grid.plain(SHAPE, SPACING, calibrated=True))
        masks = drawn() | {"ben": drawn()["ben"] | ball(5.0, (16.0, 20.0, 9.0))}
        add_masks(
            study, [PlacedMask(case.id, name, "nodule", (0, 0, 0), masks[name]) for name in READERS], ""
        )
        keep(fuse_inputs(gather([case.id], study), MaskPlan()), study)
    reviewing = open_study(window, qtbot, path).workspace.reviewing
    panel = window.workspace.region_panel
    key(window, qtbot, Qt.Key.Key_Tab)
    reviewing.take("ann")
    idle(window, qtbot)
    key(window, qtbot, Qt.Key.Key_H)
    reviewing.select(0)
    assert states(window) == ["taken", "undecided"]
    assert not panel.votes.isVisible()
    assert panel._header.text() == ("Region 1", "version of a rater used")
    assert not panel.take.isEnabled()
    assert not panel.accept.isEnabled()
    key(window, qtbot, Qt.Key.Key_H)
    assert panel.votes.isVisible()
    assert panel._header.text() == ("Region 1", "version of ann used")


def test_it_is_remembered_and_holds_from_the_first_look(blind, qtbot, masks_study):
    blind.close()
    second = MainWindow()
    qtbot.addWidget(second)
    second.show()
    outlines = []
    open_study(second, qtbot, masks_study)
    go_to(second, qtbot, "first")
    outlines.append(seen(second))
    key(second, qtbot, Qt.Key.Key_H)
    assert outlines == [set()]
    assert seen(second) == {*READERS, "the consensus"}
    (hide,) = [action for action in second.workspace.actions_made if action.text().startswith("Blind mode")]
    assert not hide.isChecked()
    second.close()
    third = MainWindow()
    qtbot.addWidget(third)
    third.show()
    open_study(third, qtbot, masks_study)
    go_to(third, qtbot, "first")
    assert seen(third) == {*READERS, "the consensus"}
    third.close()
