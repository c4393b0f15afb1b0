"""The masks workspace: fuse, review disputed regions, settle them, judge raters."""

import threading
import time

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QKeySequence
from PySide6.QtTest import QTest

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.app.kinds.masks import runs
from raterscope.app.review import Decision
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.app.workspaces.masks.scene import CaseSummary
from raterscope.widgets import theme
from raterscope.widgets.dialogs.review_dialogs import ExclusionDialog
from raterscope.widgets.panels.fuse_panel import RunRequest
from tests.app.driving import LONG, idle, open_study, press
from tests.app.workspaces.masks.driving import consensus, go_to, key, states
from tests.app.workspaces.masks.made import READERS, SHAPE, SPACING, ball, drawn
from tests.reading import visible_words


def test_a_study_of_masks_opens_with_its_volume_and_excludes_without_a_preview(opened_masks, qtbot):
    workspace = opened_masks.workspace
    assert opened_masks.bar._tabs["masks"].isChecked()
    assert [row.name for row in workspace.table.model.rows] == list(READERS)
    assert "not fused yet" in opened_masks.status.text.text()
    assert {item.detail for item in workspace.queue.shown()} == {"4 raters, not fused yet"}
    assert workspace.region_panel._nothing.text().startswith("Press Fuse (F5)")
    text = workspace.queue._progress.accessibleName()
    assert "not fused yet" in text
    assert "no disputed" not in text

    opened_masks.workspace.table.exclude_requested.emit("dan")
    idle(opened_masks, qtbot)
    panel = opened_masks.findChild(ExclusionDialog).panel
    assert panel.state == "unknown"
    assert panel._error.text() == "Press Fuse (F5) first to preview what would change."
    panel.reason.edit.setText("unfinished")
    panel.exclude.click()
    idle(opened_masks, qtbot)
    assert opened_masks.document.contents.review.excluded == {"dan": "unfinished"}


def test_a_fusion_shows_the_disputed_region_estimates_maps_and_how_far_to_trust_it(fused_masks, qtbot):
    workspace = fused_masks.workspace
    assert states(fused_masks) == ["undecided"]
    (region,) = workspace.reviewing.regions
    assert READERS[region.dispute.leader] == "dan"
    assert not (consensus(fused_masks) & ball(3.0, (16.0, 20.0, 32.0))).any()
    dan = next(row for row in workspace.table.model.rows if row.name == "dan")
    assert dan.bias_mm > 0.3
    assert dan.dice < 0.96
    assert dan.weight < 1
    assert next(item.title for item in workspace.queue.shown()).startswith("first")
    assert "nothing disputed" in [item.detail for item in workspace.queue.shown()]
    first = workspace.queue.shown()[0]
    assert float(first.amount.removesuffix(" ml")) < 1
    assert workspace.queue._kind.most == first.score  # the bar is full

    workspace.tabs.setCurrentWidget(workspace.trust)
    idle(fused_masks, qtbot)
    assert "each rater left out in turn included" in workspace.trust.text
    assert "of the outlines of raters left out in turn" in workspace.trust.text
    assert workspace.queue.doubt.text() == ""
    text = workspace.queue._progress.accessibleName()
    assert "1 disputed region" in text or "1 left in the study" in text

    scene = workspace.session.scene
    fusion, report = scene.fusion("nodule"), scene.report("nodule")
    table = workspace.model_table
    workspace.tabs.setCurrentWidget(table)
    rows = {row.name: row for row in table.model.rows}
    dan = fusion.annotators.index("dan")
    assert rows["dan"].bias_mm == fusion.bias[0, dan]
    assert rows["dan"].sigma_mm == pytest.approx(np.sqrt(fusion.sigma[0, dan]))
    assert rows["dan"].tau == report.tau[dan] == min(row.tau for row in rows.values())
    at = np.unravel_index(fusion.tau[0, dan].argmin(), fusion.shape)
    workspace.volume.go_to(tuple(int(a + b) for a, b in zip(at, fusion.origin, strict=True)))
    here = next(row.tau_here for row in table.model.rows if row.name == "dan")
    assert here == fusion.tau[0, dan].min() < rows["dan"].tau
    table.select(None)
    table.view.selectRow(next(i for i in range(4) if table.model.at(i).name == "dan"))
    assert workspace.raters.current == "dan"
    workspace.local_weight.measures.set_mode("tau")
    assert workspace.local_weight.header.text()[0] == "Local tau, dan"

    workspace.matrix.figure.chosen.emit("dan", "ann")
    idle(fused_masks, qtbot)
    heat = workspace.volume._scene.heat
    assert heat.colours == "difference"
    assert heat.values.max() == 1.0
    assert heat.values.min() == 0.0
    workspace.raters.choose("dan")
    visited = set()
    for _ in range(workspace.maps.map.count()):
        key(fused_masks, qtbot, Qt.Key.Key_D)
        heat = workspace.volume._scene.heat
        visited.add(None if heat is None else heat.label)
    assert None in visited
    assert {
        "doubt of the model",
        "weight of dan",
        "tau of dan",
        "probability of the model, not calibrated",
    } <= visited
    assert {
        "probability that another rater includes it",
        "probability that the true outline includes it",
    } <= visited
    assert "half-width of another rater's 95 % band, mm" in visited
    workspace.maps.band.setChecked(True)
    band = workspace.volume._scene.band
    assert (band.high - band.low) / 2 > 2
    assert band.low > 0  # beyond the map, where outlines take 0, there is no band


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_a_region_is_accepted_and_undone_from_anywhere_hidden_by_space_and_taken_by_a_digit(
    fused_masks, qtbot
):
    before = consensus(fused_masks)
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    workspace = fused_masks.workspace
    assert workspace.reviewing.current == 0
    assert "dan" in workspace.region_panel._sentence.text()
    assert workspace.raters.current == "dan"
    region = workspace.reviewing.region.dispute
    at = workspace.volume.crosshair
    assert all(a <= b < a + n for a, b, n in zip(region.origin, at, region.shape, strict=True))
    piece = workspace.reviewing.consensus
    key(fused_masks, qtbot, Qt.Key.Key_A)
    assert states(fused_masks) == ["accepted"]
    assert workspace.reviewing.consensus is piece  # no slice is outlined again
    np.testing.assert_array_equal(consensus(fused_masks), before)
    assert fused_masks.bar.fuse.text() == "Fuse again"
    (box,) = fused_masks.workspace.volume._scene.boxes
    assert box.settled  # and still there to be clicked
    fused_masks.document.undo()
    idle(fused_masks, qtbot)
    assert states(fused_masks) == ["undecided"]
    assert fused_masks.bar.fuse.text() == "Fuse"

    key(fused_masks, qtbot, Qt.Key.Key_A)
    go_to(fused_masks, qtbot, "second")
    go_to(fused_masks, qtbot, "first")
    assert fused_masks.workspace.reviewing.region is None
    key(fused_masks, qtbot, Qt.Key.Key_Z)
    assert fused_masks.workspace.reviewing.region.state == "undecided"
    assert "undecided" in fused_masks.workspace.region_panel._figures.accessibleName()

    axial = fused_masks.workspace.volume.view("axial")

    def yellow():
        """Return whether the box about the region is seen."""
        hue = QColor(theme.DARK.disputed)
        image = axial.grab().toImage()
        positions = ((x, y) for x in range(0, image.width(), 1) for y in range(0, image.height(), 7))
        return any(image.pixelColor(x, y) == hue for x, y in positions)

    assert yellow()
    axial.setFocus()
    qtbot.keyPress(axial, Qt.Key.Key_Space)
    assert not yellow()
    qtbot.keyRelease(axial, Qt.Key.Key_Space)
    assert yellow()

    key(fused_masks, qtbot, Qt.Key.Key_T)
    qtbot.waitUntil(workspace.region_panel._menu.isVisible)
    QTest.keyClick(fused_masks.windowHandle(), Qt.Key.Key_2)  # as the window system brings it
    idle(fused_masks, qtbot)
    assert states(fused_masks) == ["taken"]
    assert workspace.reviewing.regions[0].rater == "ben"
    assert workspace.volume._scene.solo is None


def test_a_raters_mask_is_taken_in_the_region_restored_and_held_in_the_next_fusion(
    fused_masks, qtbot, masks_study
):
    before = consensus(fused_masks)
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    region = fused_masks.workspace.reviewing.region.dispute
    fused_masks.workspace.region_panel.take_requested.emit("dan")
    idle(fused_masks, qtbot)
    assert states(fused_masks) == ["taken"]
    there = np.zeros(SHAPE, dtype=bool)
    there[tuple(slice(a, a + n) for a, n in zip(region.origin, region.shape, strict=True))] = region.voxels()
    np.testing.assert_array_equal(consensus(fused_masks), np.where(there, drawn()["dan"], before))
    assert "take dan in region 1" in fused_masks.menus.undo_action.text()
    settled = consensus(fused_masks)
    fused_masks.document.close()
    idle(fused_masks, qtbot)
    open_study(fused_masks, qtbot, masks_study)
    go_to(fused_masks, qtbot, "first")
    np.testing.assert_array_equal(consensus(fused_masks), settled)
    assert states(fused_masks) == ["taken"]

    key(fused_masks, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused_masks.document.contents.runs) == 2, timeout=LONG)
    idle(fused_masks, qtbot)
    go_to(fused_masks, qtbot, "first")
    fusion = fused_masks.workspace.session.scene.fusion("nodule")
    held = drawn()["dan"] & ~ball(10.0)
    part = tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))
    assert fusion.mask[0][held[part]].all()
    assert (consensus(fused_masks) & held).sum() == (settled & held).sum() == held.sum()
    assert fused_masks.bar.fuse.text() == "Fuse"


def test_deciding_goes_on_after_the_study_was_closed_with_a_decision_on_its_way(
    fused_masks, qtbot, masks_study
):
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    fused_masks.workspace.reviewing.accept()
    fused_masks.document.close()
    idle(fused_masks, qtbot)
    open_study(fused_masks, qtbot, masks_study)
    go_to(fused_masks, qtbot, "first")
    assert states(fused_masks) == ["accepted"]
    fused_masks.document.undo()
    idle(fused_masks, qtbot)
    assert states(fused_masks) == ["undecided"]
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    key(fused_masks, qtbot, Qt.Key.Key_A)
    assert states(fused_masks) == ["accepted"]


@pytest.mark.parametrize("decided", [False, True])
def test_an_excluded_reader_is_left_out_of_the_next_fusion(fused_masks, qtbot, decided):
    workspace = fused_masks.workspace
    if decided:  # the next fusion holds it
        key(fused_masks, qtbot, Qt.Key.Key_Tab)
        key(fused_masks, qtbot, Qt.Key.Key_A)
        idle(fused_masks, qtbot)
    before = consensus(fused_masks)
    workspace.table.exclude_requested.emit("dan")
    idle(fused_masks, qtbot)
    panel = fused_masks.findChild(ExclusionDialog).panel
    assert panel.state == "shown"
    previewed = panel._summary.text()
    panel.reason.edit.setText("runs into the vessel")
    panel.exclude.click()
    idle(fused_masks, qtbot)
    assert fused_masks.document.contents.review.excluded == {"dan": "runs into the vessel"}
    key(fused_masks, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused_masks.document.contents.runs) == 2, timeout=LONG)
    idle(fused_masks, qtbot)
    go_to(fused_masks, qtbot, "first")
    assert workspace.session.scene.fusion("nodule").annotators == ("ann", "ben", "cat")
    changed = int((consensus(fused_masks) != before).sum())
    assert previewed.startswith(
        f"Would change {f'{changed:,}' if changed else 'none'} of {before.sum():,} voxels"
    )
    assert changed or decided
    row = next(row for row in workspace.table.model.rows if row.name == "dan")
    assert row.excluded
    if not decided:  # the comparison is with the consensus as it was fused
        record, dan = workspace.session.scene.excluded["nodule"]["dan"], np.zeros_like(before)
        dan[tuple(slice(at, at + n) for at, n in zip(record.origin, record.values.shape, strict=True))] = (
            record.values
        )
        others = consensus(fused_masks)
        assert row.dice == pytest.approx(2 * (dan & others).sum() / (dan.sum() + others.sum()))
        assert np.isfinite([row.bias_mm, row.hausdorff95, row.sensitivity]).all()
    outlines = {outline.name: outline for outline in workspace.volume._scene.outlines}
    assert outlines["dan (excluded)"].dashed
    assert not outlines["ann"].dashed
    workspace.raters.choose("dan")
    assert workspace.table.current == "dan"
    assert workspace.local_weight._nothing.text() == "dan is excluded from this run. Press X to restore."


def test_digits_stay_with_their_raters_after_an_exclusion(fused_masks, qtbot):
    fused_masks.document.record(Decision(verb="exclude", annotators=("ann",), reason="asleep"))
    idle(fused_masks, qtbot)
    key(fused_masks, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused_masks.document.contents.runs) == 2, timeout=LONG)
    idle(fused_masks, qtbot)
    go_to(fused_masks, qtbot, "first")
    assert "ann" in fused_masks.workspace.session.scene.run.excluded
    key(fused_masks, qtbot, Qt.Key.Key_2)
    assert fused_masks.workspace.volume._scene.solo == "ben"


def test_readers_are_shown_alone_by_digits_and_hidden_in_the_table(fused_masks, qtbot):
    scene = fused_masks.workspace.volume._scene
    key(fused_masks, qtbot, Qt.Key.Key_2)
    assert scene.solo == "ben"
    key(fused_masks, qtbot, Qt.Key.Key_2)
    assert scene.solo is None
    fused_masks.bar._tabs["clicks"].click()
    assert fused_masks.workspace is None
    assert not fused_masks.bar.fuse.isVisible()
    qtbot.keyClick(fused_masks, Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert fused_masks.workspace is not None
    assert fused_masks.bar._tabs["masks"].isChecked()
    words = [action.text() for action in fused_masks.menus.review_menu.actions()]
    assert "Next disputed region" in words
    assert QKeySequence("B") in [action.shortcut() for action in fused_masks.menus.review_menu.actions()]

    table = fused_masks.workspace.table
    table.select("ben")
    press(fused_masks, qtbot, Qt.Key.Key_Space, on=table.view)
    assert visible_items(fused_masks) == {"ann", "cat", "dan", "the consensus"}
    assert table.header.text()[1] == "1 hidden"
    go_to(fused_masks, qtbot, "second")
    assert "ben" not in visible_items(fused_masks)
    table.select("ben")
    press(fused_masks, qtbot, Qt.Key.Key_Return, on=table.view)
    assert visible_items(fused_masks) == {"ben", "the consensus"}
    press(fused_masks, qtbot, Qt.Key.Key_Return, on=table.view)
    press(fused_masks, qtbot, Qt.Key.Key_Space, on=table.view)
    assert visible_items(fused_masks) == {*READERS, "the consensus"}


def test_a_chosen_run_that_leaves_a_case_out_does_not_hide_its_own(fused_masks, qtbot):
    workspace = fused_masks.workspace
    plan = MaskPlan.make("laplace")
    workspace.fuse_panel.run_requested.emit(RunRequest(plan.algorithm, plan.settings, all_items=False))
    qtbot.waitUntil(lambda: len(fused_masks.document.contents.runs) == 2, timeout=LONG)
    idle(fused_masks, qtbot)
    alone = fused_masks.document.contents.runs[-1]
    workspace.fuse_panel.runs.chosen.emit(alone.id)
    idle(fused_masks, qtbot)
    assert workspace.session.scene.run.id == alone.id
    go_to(fused_masks, qtbot, "second")
    assert workspace.session.scene.run.id == fused_masks.document.contents.runs[0].id
    assert "does not include second" in fused_masks.status.message
    go_to(fused_masks, qtbot, "first")
    assert workspace.session.scene.run.id == alone.id


def test_a_cancelled_fusion_leaves_the_study_as_it_was_and_two_at_once_make_one_run(opened_masks, qtbot):
    with pytest.MonkeyPatch.context() as patch:
        cancel_a_fusion(opened_masks, qtbot, patch)
    assert opened_masks.document.contents.runs == ()
    assert "cancelled" in opened_masks.status.message
    opened_masks.workspace.fuse_again()
    opened_masks.workspace.fuse_again()
    qtbot.waitUntil(lambda: bool(opened_masks.document.contents.runs), timeout=LONG)
    idle(opened_masks, qtbot)
    assert len(opened_masks.document.contents.runs) == 1


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_digits_and_the_menu_count_the_raters_of_the_case_on_screen(window, qtbot, tmp_path):
    path = tmp_path / "apart.rscope"
    with Study.create(path) as study:
        for case, names in (("first", READERS), ("second", ("eve", "fay", "gil"))):
            entry = add_case(study, case, Grid.plain(SHAPE, SPACING, calibrated=True))
            masks = [
                PlacedMask(entry.id, name, "n", (0, 0, 0), ball(4.0 if name == "gil" else 8.0))
                for name in names
            ]
            add_masks(study, masks, "masks")
    open_study(window, qtbot, path)
    go_to(window, qtbot, "second")
    for digit in (Qt.Key.Key_2, Qt.Key.Key_4):  # the case has no fourth rater
        key(window, qtbot, digit)
        assert window.workspace.volume._scene.solo == "fay"
    key(window, qtbot, Qt.Key.Key_2)
    press(window, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: bool(window.document.contents.runs))
    idle(window, qtbot)
    go_to(window, qtbot, "second")
    key(window, qtbot, Qt.Key.Key_Tab)
    key(window, qtbot, Qt.Key.Key_T)
    qtbot.waitUntil(window.workspace.region_panel._menu.isVisible)
    QTest.keyClick(window.windowHandle(), Qt.Key.Key_2)
    idle(window, qtbot)
    assert window.workspace.reviewing.regions[0].rater == "fay"


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_x_excludes_the_selected_rater(fused_masks, qtbot):
    key(fused_masks, qtbot, Qt.Key.Key_X)
    assert "Select a rater" in fused_masks.status.message
    key(fused_masks, qtbot, Qt.Key.Key_2)
    key(fused_masks, qtbot, Qt.Key.Key_X)
    qtbot.waitUntil(lambda: fused_masks.findChild(ExclusionDialog) is not None)


def cancel_a_fusion(window, qtbot, monkeypatch):
    started = threading.Event()

    def endless(fusion, masks, watch, outlines):
        while True:
            started.set()
            watch(0.1, "at work")
            time.sleep(0.01)

    monkeypatch.setattr(runs, "report_on", endless)
    window.workspace.volume.setFocus()
    qtbot.keyClick(window.workspace.volume, Qt.Key.Key_F5)
    qtbot.waitUntil(started.is_set, timeout=LONG)
    window.bar.cancel.click()
    qtbot.waitUntil(lambda: window.workspace.fusing.job is None)
    idle(window, qtbot)


def test_after_cancelling_the_convergence_of_the_run_on_screen_is_plotted(fused_masks, qtbot, monkeypatch):
    trace = fused_masks.workspace.session.scene.fusion(fused_masks.workspace.session.part).traces[0]
    fused_masks.workspace.bound.set_trace(trace.objective[:1])
    cancel_a_fusion(fused_masks, qtbot, monkeypatch)
    assert np.array_equal(fused_masks.workspace.bound._trace.objective, trace.objective)


def visible_items(window) -> set[str]:
    return {outline.name for outline in window.workspace.volume._scene.visible_items()}


def test_the_truth_is_shown_only_on_request(window, qtbot, tmp_path):
    path = tmp_path / "true.rscope"
    with Study.create(path) as study:
        case = add_case(study, "first", Grid.plain(SHAPE, SPACING, calibrated=True))
        masks = [PlacedMask(case.id, name, "n", (0, 0, 0), ball(8.0)) for name in READERS]
        add_masks(study, [*masks, PlacedMask(case.id, None, "n", (0, 0, 0), ball(7.0))], "masks")
    open_study(window, qtbot, path)
    assert visible_items(window) == set(READERS)
    window.workspace.maps.truth.click()
    assert visible_items(window) == {*READERS, "the truth"}
    key(window, qtbot, Qt.Key.Key_H)
    assert visible_items(window) == set()
    assert not window.workspace.maps.truth.isVisible()


def test_raters_are_joined_by_overlap_or_by_shared_consensus(fused_masks, qtbot):
    workspace = fused_masks.workspace
    panel, tree = workspace.tree_panel, workspace.tree
    workspace.tabs.setCurrentWidget(panel)
    qtbot.waitUntil(lambda: tree.filled, timeout=LONG)
    panel.choice.setCurrentIndex(panel.choice.findData("consensus"))
    idle(fused_masks, qtbot)
    assert not tree.filled
    assert "mixture of consensuses" in visible_words(tree)
    workspace.fuse_panel.algorithm.choose("mixture")
    key(fused_masks, qtbot, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: len(fused_masks.document.contents.runs) == 2, timeout=LONG)
    idle(fused_masks, qtbot)
    qtbot.waitUntil(lambda: tree.filled, timeout=LONG)
    assert "% of cases apart" in tree.figure.text_of(len(tree.figure._members) - 1)


def test_the_fuse_panel_grows_with_its_settings(fused_masks, qtbot):
    panel = fused_masks.workspace.fuse_panel
    fused_masks.workspace.toggle_fuse_panel()
    idle(fused_masks, qtbot)
    before = panel.height()
    panel.algorithm.form._fold.click()
    qtbot.waitUntil(lambda: panel.height() > before + 50)
    assert panel.height() == min(panel.sizeHint().height(), fused_masks.workspace.height() - 16)
    panel.algorithm.form._fold.click()
    qtbot.waitUntil(lambda: panel.height() == before)


def test_a_volume_that_is_missing_or_damaged_is_named_in_the_view(window, qtbot, masks_study):
    volume = masks_study.with_name("first.nii.gz")
    whole = volume.read_bytes()
    volume.unlink()
    open_study(window, qtbot, masks_study)
    scene = window.workspace.volume._scene
    assert "Image file missing" in scene.problem
    for content, problem in ((whole[:100] + bytes(len(whole) - 100), "cannot be read"), (whole, "")):
        volume.write_bytes(content)
        go_to(window, qtbot, "second")
        go_to(window, qtbot, "first")
        assert (problem in scene.problem) if problem else not scene.problem
        assert (scene.values is None) == bool(problem)


@pytest.mark.parametrize(
    ("doubt", "unit", "text"),
    [
        (0.0476, "px", "48 px"),
        (0.00064, "px", "0.6 px"),
        (24.528, "px", "24,528 px"),
        (3.834, "ml", "3.83 ml"),
    ],
)
def test_disputed_pixels_are_counted_whole(doubt, unit, text):
    assert CaseSummary(3, True, 2, 2, 1000 * doubt, unit).amount == text
