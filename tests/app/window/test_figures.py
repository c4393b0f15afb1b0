"""Export of figures, and plots of clicks linked with canvas and queue."""

import csv
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget

from raterscope.algorithms.evaluation import calibration, curves, true_detections
from raterscope.widgets.canvas.image_canvas import ImageCanvas
from raterscope.widgets.figure_menu import HEADING, FigureMenu
from raterscope.widgets.figures.figure_panel import Figure
from tests.app.conftest import DISPUTED, PARASITES
from tests.app.driving import LONG, idle
from tests.reading import visible_words
from tests.widgets.pointing import click_on_value, ringed

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def saved(monkeypatch, tmp_path):
    """Answer the dialog with a file in an own folder, and note what it proposed."""
    folder = tmp_path / "out"
    folder.mkdir()
    requests = []

    def answer(_parent, title, proposed, filters):
        requests.append((title, proposed, filters))
        name = proposed.rsplit("/", 1)[-1].removesuffix(proposed[-4:])
        return str(folder / name), filters

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    return folder, requests


def save(window, qtbot, action):
    messages = []
    window.figure_exporter.message.connect(messages.append)
    action.trigger()
    qtbot.waitUntil(lambda: bool(messages), timeout=LONG)
    window.figure_exporter.message.disconnect(messages.append)
    return messages[0]


def test_figures_are_exported_and_copied_under_the_names_of_study_image_and_run(fused, qtbot, saved):
    folder, requests = saved
    plot = fused.workspace.reliability
    fused.workspace.right_tabs.setCurrentWidget(plot)
    for action in (plot.menu.svg, plot.menu.png, plot.menu.csv):
        save(fused, qtbot, action)
    assert {path.name for path in folder.iterdir()} == {
        "small-reliability-clicks-run-1.svg", "small-reliability-clicks-run-1.png",
        "small-reliability-clicks-run-1.csv",
    }  # fmt: skip
    assert requests[0][0] == "Save Reliability / clicks"
    assert ElementTree.parse(folder / "small-reliability-clicks-run-1.svg").getroot().tag.endswith("svg")
    with Image.open(folder / "small-reliability-clicks-run-1.png") as picture:
        assert picture.width >= 2 * plot.figure.width()
        assert picture.text["Description"].startswith("run 1 (OEM + DEM")
    with (folder / "small-reliability-clicks-run-1.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["annotator", "clicks", "reliability", "excluded"]
    marks = plot.figure.chart.marks
    drawn = {point for mark in marks for point in zip(mark.across.tolist(), mark.up.tolist(), strict=True)}
    assert {(float(row[1]), float(row[2])) for row in rows} == drawn
    assert "careless" in {row[0] for row in rows}

    name = fused.workspace.reviewing.session.scene.image.name.removesuffix(".png")
    save(fused, qtbot, fused.workspace.canvas.menu.png)
    assert requests[-1][1].endswith(f"/{name}-image-run-1.png")
    canvas = fused.workspace.canvas
    with Image.open(folder / f"{name}-image-run-1.png") as picture:
        assert picture.size == (canvas.width(), canvas.height() + HEADING)  # the run is named below
        assert picture.text["Description"].startswith("run 1 (OEM + DEM")

    received = []
    menu = fused.workspace.reliability.menu
    menu.reported.connect(received.append)
    menu.copy.trigger()
    menu.reported.disconnect(received.append)
    assert received[0].startswith("Copied the image of run 1 (OEM + DEM")
    drawing = save(fused, qtbot, menu.svg)
    assert " of run 1 (OEM + DEM" in drawing
    words = ElementTree.parse(folder / "small-reliability-clicks-run-1.svg").getroot().iter()
    assert any("run 1 (OEM + DEM" in (word.text or "") for word in words if word.tag.endswith("text"))
    # A name that a spreadsheet would run is exported as text.
    plot = fused.workspace.reliability
    plot.set_annotators(np.array([3]), np.array([0.5]), ["=cmd|' /C calc'!A0"])
    save(fused, qtbot, plot.menu.csv)
    assert "'=cmd" in (saved[0] / "small-reliability-clicks-run-1.csv").read_text(encoding="utf-8")


def test_a_cancelled_dialog_writes_nothing_and_a_file_that_cannot_be_written_is_one_sentence(
    fused, qtbot, monkeypatch, tmp_path
):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    fused.workspace.objective.menu.png.trigger()
    idle(fused, qtbot)
    assert not fused.notice.isVisible()
    occupied = tmp_path / "taken.svg"
    occupied.mkdir()
    (occupied / "kept").write_text("kept", encoding="utf-8")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(occupied), ""))
    fused.workspace.objective.menu.svg.trigger()
    qtbot.waitUntil(fused.notice.isVisible, timeout=LONG)
    assert "taken.svg" in fused.notice.text
    assert "is a folder" in fused.notice.text
    assert (occupied / "kept").read_text(encoding="utf-8") == "kept"
    assert not list(tmp_path.glob(".taken*"))


@pytest.mark.parametrize("kind", ["clicks", "masks", "labels", "pairs"])
def test_every_figure_of_a_workspace_has_a_connected_menu(window, kind):
    from raterscope.app.workspaces.catalogue import WORKSPACES

    workspace = window._workspace_of(WORKSPACES[kind])
    figures = [
        widget for widget in workspace.findChildren(QWidget) if isinstance(widget, Figure | ImageCanvas)
    ]
    assert figures
    menus = workspace.findChildren(FigureMenu)
    having = {menu._figure for menu in menus}
    assert {figure for figure in figures if figure not in having} == set()
    assert all(menu.receivers("2leaving(PyObject)") == 1 for menu in menus)
    assert sum(menu.csv is not None for menu in menus) >= len(figures) - 4


# The plots of clicks, linked with canvas and queue


@pytest.fixture
def counted(fused, qtbot):
    """The window with the counts on screen."""
    workspace = fused.workspace
    workspace.middle_tabs.setCurrentWidget(workspace.counts)
    qtbot.waitUntil(lambda: workspace.counts.filled, timeout=LONG)
    idle(fused, qtbot)
    return fused


def counts_of(window):
    table = window.workspace.counts.figure.table()
    return {row[0]: row[1:] for row in table.rows()}


def test_counts_follow_queue_decisions_and_blind_mode_and_a_click_shows_the_image(counted, qtbot):
    workspace = counted.workspace
    table = counts_of(counted)
    assert list(table) == [item.title for item in workspace.queue.shown()]
    for name, (expected, low, high, known) in table.items():
        assert low <= expected <= high
        assert known == len(PARASITES), name
        assert abs(expected - len(PARASITES)) < 2
    posterior = sum(spot.posterior for spot in workspace.reviewing.spots)
    assert table[workspace.reviewing.session.scene.image.name][0] == pytest.approx(posterior)

    counts = counted.workspace.counts
    counted.workspace.core.toggle_blind()
    assert not counts.filled
    assert "hidden in blind mode" in visible_words(counts)
    counted.workspace.core.toggle_blind()
    qtbot.waitUntil(lambda: counts.filled, timeout=LONG)

    name = workspace.reviewing.session.scene.image.name
    before = counts_of(counted)[name][0]
    at = next(
        index for index, spot in enumerate(workspace.reviewing.spots)
        if np.hypot(spot.x - DISPUTED[0], spot.y - DISPUTED[1]) < 8
    )  # fmt: skip
    posterior = workspace.reviewing.spots[at].posterior
    workspace.reviewing.select(at)
    workspace.reviewing.decide("accept")
    qtbot.waitUntil(
        lambda: counts_of(counted)[name][0] == pytest.approx(before - posterior + 1), timeout=LONG
    )
    counted.document.undo()
    qtbot.waitUntil(lambda: counts_of(counted)[name][0] == pytest.approx(before), timeout=LONG)
    idle(counted, qtbot)

    figure = workspace.counts.figure
    here = workspace.reviewing.session.scene.image.id
    assert figure._selected == here
    other = next(item.key for item in workspace.queue.shown() if item.key != here)
    row = [item.key for item in workspace.queue.shown()].index(other)
    position = next(
        QPointF(60, y).toPoint() for y in range(figure.height()) if figure.part_at(QPointF(60, y)) == row
    )
    qtbot.mouseClick(figure, LEFT, pos=position)
    qtbot.waitUntil(lambda: workspace.reviewing.session.scene.image.id == other, timeout=LONG)
    assert figure._selected == other
    assert workspace.queue.current == other


@pytest.fixture
def against_truth(fused, qtbot):
    """The window with the curves of the image on screen."""
    workspace = fused.workspace
    workspace.right_tabs.setCurrentWidget(workspace.run_comparison)
    workspace.run_comparison.pages.buttons["roc"].click()
    qtbot.waitUntil(lambda: workspace.run_comparison.plot.filled, timeout=LONG)
    idle(fused, qtbot)
    return fused


def test_curve_and_calibration_select_spots_and_are_those_of_known_positions(against_truth, qtbot):
    workspace = against_truth.workspace
    plot, scene = workspace.run_comparison.plot, workspace.reviewing.session.scene
    posterior = scene.fusion.detection.posterior
    drawn = curves(scene.fusion.clustering.mean, posterior, scene.truth, 10.0)
    at = int(posterior.argmin())
    workspace.reviewing.select(at)
    first = int(np.flatnonzero(drawn.threshold <= posterior[at])[0])
    assert ringed(plot.figure) == [(drawn.false_positive_rate[first], drawn.sensitivity[first])]
    workspace.reviewing.select(None)
    assert not ringed(plot.figure)
    click_on_value(qtbot, plot.figure, float(drawn.false_positive_rate[1]), float(drawn.sensitivity[1]))
    assert workspace.reviewing.spot.posterior == pytest.approx(float(drawn.threshold[1]))
    assert workspace.canvas._selected == workspace.reviewing.current
    workspace.run_comparison.pages.buttons["precision-recall"].click()
    assert workspace.run_comparison.plot.table().columns == ("curve", "sensitivity", "precision")

    qtbot.waitUntil(lambda: workspace.trust.plot.filled, timeout=LONG)
    posteriors, right = [], []
    truth = np.array(PARASITES, dtype=float)
    for known in workspace.review_queue.results.values():
        posterior = known.fusion.detection.posterior
        posteriors.append(posterior)
        right.append(true_detections(known.fusion.clustering.mean, posterior, truth, 10.0))
    expected = calibration(np.concatenate(posteriors), np.concatenate(right))
    rows = list(workspace.trust.plot.table().rows())
    there = expected.count > 0
    assert [row[3] for row in rows] == expected.count[there].tolist()
    assert [row[2] for row in rows] == expected.share[there].tolist()
    assert f"error {expected.error:.2f}" in workspace.trust.text

    workspace.reviewing.select(None)
    spots = workspace.reviewing.spots
    inside = [index for index, spot in enumerate(spots) if spot.posterior >= 0.9]
    assert len(inside) > 1
    calls = []
    for _ in range(len(inside) + 1):
        workspace.trust.plot.bin_chosen.emit(0.9, 1.0)
        calls.append(workspace.reviewing.current)
    assert calls == [*inside, inside[0]]
    ((x, _),) = ringed(workspace.trust.plot.figure)
    assert x >= 0.9


def test_an_annotator_chosen_in_the_plot_is_marked_everywhere(fused, qtbot):
    workspace = fused.workspace
    workspace.right_tabs.setCurrentWidget(workspace.reliability)
    workspace.reviewing.select(0)
    idle(fused, qtbot)
    plot = workspace.reliability
    number = fused.document.contents.annotators.index("volunteer 3")
    row = plot._annotators.tolist().index(number)
    before = workspace.canvas.grab().toImage()
    click_on_value(qtbot, plot.figure, float(plot._clicks[row]), float(plot._reliability[row]))
    chosen = workspace.table.current
    assert plot._selected == chosen
    voters = workspace.evidence.about.voters
    assert voters.lines[voters.currentIndex().row()].annotator == chosen
    assert workspace.canvas.grab().toImage() != before
    workspace.reviewing.select(1)
    assert voters.lines[voters.currentIndex().row()].annotator == chosen


def test_empty_pages_name_the_missing_input(opened, qtbot):
    comparing = opened.workspace.run_comparison
    opened.workspace.right_tabs.setCurrentWidget(comparing)
    idle(opened, qtbot)

    def visible_text(page: str) -> str:
        comparing.pages.buttons[page].click()
        idle(opened, qtbot)
        return " ".join(label.text() for label in comparing.findChildren(QLabel) if label.isVisible())

    for page in ("runs", "roc"):
        assert "mport ground truth" not in visible_text(page)
    assert "Fuse (F5)" in visible_text("runs")
    assert "Fuse (F5)" in visible_text("roc")
