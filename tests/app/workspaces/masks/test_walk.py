"""One queue through regions, structures and cases: Tab and A reach everything and overwrite nothing."""

import re
from collections import Counter

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import silent
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from tests.app.driving import LONG, idle, open_study, press
from tests.app.workspaces.masks.driving import go_to, key, states
from tests.app.workspaces.masks.made import READERS, SHAPE, SPACING, ball
from tests.app.workspaces.walking import decisions, left, nothing_left, walk

BUMPS = {
    ("first", "liver"): 2, ("first", "spleen"): 1,
    ("second", "liver"): 1, ("second", "spleen"): 2,
    ("third", "liver"): 0, ("third", "spleen"): 1,
}  # fmt: skip
PLACES = ((16.0, 20.0, 31.0), (16.0, 20.0, 9.0))
"""Region in which one reader goes beyond the others."""


def drawn(bumps: int) -> dict[str, np.ndarray]:
    masks = {name: ball(8.0 + 0.25 * number) for number, name in enumerate(READERS)}
    for centre in PLACES[:bumps]:
        masks["dan"] = masks["dan"] | ball(5.0, centre)
    return masks


@pytest.fixture(scope="session")
def several(tmp_path_factory):
    """Three cases of two structures each, fused."""
    path = tmp_path_factory.mktemp("several") / "several.rscope"
    with Study.create(path) as study:
        cases = {name: add_case(study, name, Grid.plain(SHAPE, SPACING, calibrated=True)).id
                 for name in ("first", "second", "third")}  # fmt: skip
        masks = [
            PlacedMask(cases[case], reader, structure, (0, 0, 0), mask)
            for (case, structure), bumps in BUMPS.items()
            for reader, mask in drawn(bumps).items()
        ]
        add_masks(study, masks, "masks")
        inputs = gather(list(cases.values()), study, silent)
        keep(fuse_inputs(inputs, MaskPlan.make("laplace"), silent), study)
    return path


@pytest.fixture
def walked(window, qtbot, several, tmp_path):
    path = tmp_path / several.name
    path.write_bytes(several.read_bytes())
    open_study(window, qtbot, path)
    return window, path


def total() -> int:
    return sum(BUMPS.values())


def check_counts(window):
    """The line of the structure, the lines of the queue and the line at the bottom say the same."""
    workspace = window.workspace
    lines = [re.match(r"(\d+) disputed", item.detail) for item in workspace.queue.shown()]
    assert sum(int(result[1]) for result in lines if result) == left(window)
    regions = workspace.reviewing.regions
    open_here = sum(region.unsettled for region in regions)
    text = workspace.queue._progress.accessibleName()
    name, structure = workspace.session.scene.image.name, workspace.session.part
    number = [item.key for item in sorted(workspace.queue.shown(), key=lambda item: item.key)]
    assert len(number) == 3
    assert re.search(rf"Case \d of 3 - {structure}: ", text)
    words = f"{len(regions) - open_here} of {len(regions)} decided" if regions else "nothing disputed"
    assert f"{structure}: {words}" in text
    status = window.status.text.text()
    assert name in status
    assert (f"{open_here} of {len(regions)} region" in status) or not regions
    if nothing_left(window):
        assert left(window) == 0


def test_accept_alone_reaches_every_region_once_and_changes_no_settled_one_until_it_is_chosen(walked, qtbot):
    window, path = walked
    assert left(window) == total()
    visited = walk(window, qtbot, [Qt.Key.Key_A], window.workspace.volume, lambda: check_counts(window))
    assert visited[-1] == 0
    assert sorted(visited, reverse=True) == visited
    for index in (*[Qt.Key.Key_A] * 6, Qt.Key.Key_S):
        key(window, qtbot, index)
        assert "settled already" in window.status.message
    workspace = window.workspace
    workspace.region_panel.take_requested.emit("dan")
    idle(window, qtbot)
    assert len(window.document.contents.decisions) == total()
    number = workspace.reviewing.region.number
    workspace.volume.box_clicked.emit(number)
    workspace.region_panel.take_requested.emit("dan")
    idle(window, qtbot)
    assert states(window)[number - 1] == "taken"
    workspace.region_panel.take_requested.emit("ann")
    idle(window, qtbot)
    *recorded, taken = decisions(window, path)
    assert taken.verb == "take"
    assert [decision.verb for decision in recorded] == ["accept"] * total()
    text = Counter(
        (decision.item, decision.subject.structure, decision.subject.number) for decision in recorded
    )
    assert len(text) == total()


def test_the_panel_shows_one_region_after_a_decision(walked, qtbot, monkeypatch):
    window, _ = walked
    key(window, qtbot, Qt.Key.Key_Tab)
    review, panel = window.workspace.reviewing, window.workspace.region_panel
    shown, show = [], panel.show_region
    monkeypatch.setattr(panel, "show_region", lambda *evidence: (shown.append(evidence[0]), show(*evidence)))
    key(window, qtbot, Qt.Key.Key_A)
    assert [(evidence.title, evidence.state) for evidence in shown] == [("Region 2", "undecided")]
    review.accept()
    review.select(0)  # before the decision is stored
    idle(window, qtbot)
    assert states(window) == ["accepted", "accepted"]
    assert (shown[-1].title, shown[-1].state) == ("Region 1", "accepted")
    window.document.undo()
    idle(window, qtbot)
    assert (shown[-1].title, shown[-1].state) == ("Region 2", "undecided")


def test_tab_visits_every_region_comes_round_again_and_goes_on_from_every_list(walked, qtbot):
    window, _ = walked
    review = window.workspace.reviewing
    calls = []
    for _ in range(2 * total()):
        key(window, qtbot, Qt.Key.Key_Tab)
        calls.append((review.session.scene.image.name, review.session.part, review.region.number))
    assert len(set(calls)) == total()
    assert calls[: total()] == calls[total() :]
    back = []
    for _ in range(total()):
        key(window, qtbot, Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
        back.append((review.session.scene.image.name, review.session.part, review.region.number))
    assert back == [*calls[: total() - 1][::-1], calls[total() - 1]]

    workspace = window.workspace
    visited = set()
    for view in (workspace.table.view, workspace.queue.view, workspace.history.view):
        press(window, qtbot, Qt.Key.Key_Tab, on=view)
        review = workspace.reviewing
        visited.add((review.session.scene.image.name, review.session.part, review.region.number))
    assert len(visited) == 3
    press(window, qtbot, Qt.Key.Key_F6, Qt.KeyboardModifier.ControlModifier, on=workspace.queue.view)
    assert window.focusWidget() is not workspace.queue.view
    before = workspace.reviewing.region
    press(window, qtbot, Qt.Key.Key_Tab, on=workspace.queue.filter)  # in a form it moves the focus
    assert workspace.reviewing.region is before


def test_the_outlines_of_the_next_region_are_found_before_the_decision_that_leads_there(walked, qtbot):
    window, _ = walked
    go_to(window, qtbot, "first")
    reviewing, volume = window.workspace.reviewing, window.workspace.volume
    reviewing.select(0)
    following = reviewing.following
    middle = [
        start + size // 2
        for start, size in zip(following.dispute.origin, following.dispute.shape, strict=True)
    ]
    keys = set(volume._scene.shape_keys())
    places = {(name, middle[plane.normal], key) for name, plane in volume.planes.items() for key in keys}
    qtbot.waitUntil(lambda: places <= volume._outliner._paths.keys())
    key(window, qtbot, "A")
    idle(window, qtbot)
    assert reviewing.region.number == following.number
    assert volume.crosshair == tuple(middle)
    assert reviewing.following is None


def test_skipped_regions_come_last(walked, qtbot):
    window, path = walked
    key(window, qtbot, Qt.Key.Key_Tab)
    review = window.workspace.reviewing
    skipped = (review.session.scene.image.id, review.session.part, review.region.number)
    key(window, qtbot, Qt.Key.Key_S)
    assert "1 skipped" in window.workspace.queue._progress.accessibleName()
    assert left(window) == total()
    walk(window, qtbot, [Qt.Key.Key_A], window.workspace.volume)
    recorded = decisions(window, path)
    assert [decision.verb for decision in recorded] == ["skip", *["accept"] * total()]
    last = recorded[-1]
    assert (last.item, last.subject.structure, last.subject.number) == skipped


def test_undo_leads_back_to_the_structure_and_case_of_the_region(walked, qtbot):
    window, _ = walked
    review = window.workspace.reviewing
    calls = []
    key(window, qtbot, Qt.Key.Key_A)
    for _ in range(total()):
        calls.append((review.session.scene.image.name, review.session.part, review.region.number))
        key(window, qtbot, Qt.Key.Key_A)
    for item in reversed(calls):
        key(window, qtbot, Qt.Key.Key_Z)
        assert (review.session.scene.image.name, review.session.part, review.region.number) == item
        assert review.region.state == "undecided"
    assert left(window) == total()


def test_a_case_that_is_not_fused_yet_is_named_when_nothing_else_is_left(window, qtbot, several, tmp_path):
    path = tmp_path / several.name
    path.write_bytes(several.read_bytes())
    with Study.open(path) as study:
        case = add_case(study, "fourth", Grid.plain(SHAPE, SPACING, calibrated=True))
        masks = [PlacedMask(case.id, name, "liver", (0, 0, 0), ball(8.0)) for name in READERS]
        add_masks(study, masks, "masks")
    open_study(window, qtbot, path)
    for _ in range(total() + 1):
        key(window, qtbot, Qt.Key.Key_A)
    key(window, qtbot, Qt.Key.Key_Tab)
    assert "1 case is not fused yet" in window.status.message
    assert not nothing_left(window)
    go_to(window, qtbot, "fourth")
    assert "not fused yet" in window.workspace.queue._progress.accessibleName()


def test_raters_with_an_empty_structure_are_listed(window, qtbot, tmp_path):
    path = tmp_path / "nothing.rscope"
    with Study.create(path) as study:
        case = add_case(study, "first", Grid.plain(SHAPE, SPACING, calibrated=True)).id
        masks = [PlacedMask(case, name, "liver", (0, 0, 0), ball(8.0)) for name in READERS]
        far = ball(8.0) | ball(
            5.0, PLACES[0]
        )  # a disputed region, from which who drew nothing has no distance
        masks += [PlacedMask(case, name, "spleen", (0, 0, 0), ball(8.0)) for name in (*READERS[:2], "eve")]
        masks.append(PlacedMask(case, "fay", "spleen", (0, 0, 0), far))
        masks.append(PlacedMask(case, READERS[2], "spleen", (0, 0, 0), np.zeros(SHAPE, dtype=bool)))
        add_masks(study, masks, "masks")
    open_study(window, qtbot, path)
    table, maps = window.workspace.table, window.workspace.maps
    assert {row.name for row in table.model.rows if row.note} == {"eve", "fay"}
    maps.structure.setCurrentIndex(maps.structure.findText("spleen"))
    idle(window, qtbot)
    for fused in (False, True):
        if fused:
            key(window, qtbot, Qt.Key.Key_F5)
            qtbot.waitUntil(lambda: bool(window.document.contents.runs), timeout=LONG)
            idle(window, qtbot)
        notes = {row.name: row.note for row in table.model.rows}
        empty = dict.fromkeys(("cat", "dan"), "drew nothing")
        assert notes == dict.fromkeys(("ann", "ben", "eve", "fay"), "") | empty
        texts = [table.model.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(6)]
        assert sum("drew nothing" in words for words in texts) == 2
    assert window.workspace.reviewing.regions
    assert not window.notice.isVisible()


def test_tab_leads_from_the_width_of_a_typed_window_to_its_level(fused_masks, qtbot):
    key(fused_masks, qtbot, Qt.Key.Key_Tab)
    region = fused_masks.workspace.reviewing.current
    key(fused_masks, qtbot, Qt.Key.Key_W)
    entry = fused_masks.workspace.volume.windows.entry
    for text, then in (("80", Qt.Key.Key_Tab), ("40", Qt.Key.Key_Return)):
        box = QApplication.focusWidget()
        qtbot.keyClick(box, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        qtbot.keyClicks(box, text)
        qtbot.keyClick(box, then)
    assert (entry.level_box.value(), entry.width_box.value()) == (40, 80)
    assert fused_masks.workspace.reviewing.current == region
