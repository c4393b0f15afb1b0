"""The queue sorted by focus and saturation, which are measured once and exported."""

import csv

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from scipy.ndimage import gaussian_filter

from raterscope.algorithms.image_display import measure_focus
from raterscope.app.cli import main
from raterscope.app.kinds.clicks import image_tables
from raterscope.app.study import Study
from tests.app.driving import idle, open_study, press

SATURATED = {"a.png": 0.1, "b.png": 0.4, "c.png": 0.0}
BLUR = {"a.png": 1.0, "b.png": 0.5, "c.png": 3.0}


@pytest.fixture
def study(tmp_path):
    for name, share in SATURATED.items():
        noise = np.random.default_rng(1).random((100, 100)) * 254
        pixels = gaussian_filter(noise, BLUR[name]).astype(np.uint8)
        pixels[: round(100 * share)] = 255
        Image.fromarray(pixels).save(tmp_path / name)
    clicks = [f"{who},{name},{x},20" for name in SATURATED for who in "vw" for x in (20, 60)]
    (tmp_path / "clicks.csv").write_text("\n".join(["annotator,image,x,y", *clicks]))
    path = tmp_path / "s.rscope"
    images = [str(tmp_path / name) for name in SATURATED]
    assert main(["import", str(path), *images, str(tmp_path / "clicks.csv")]) == 0
    return path


def titles(window):
    return [item.title for item in window.workspace.queue.shown()]


def test_the_key_sorts_by_focus_then_saturation_then_dispute(window, qtbot, study, monkeypatch):
    queue = open_study(window, qtbot, study).workspace.queue
    by_dispute = titles(window)
    press(window, qtbot, Qt.Key.Key_I)
    assert titles(window) == sorted(SATURATED, key=lambda name: focus(study.parent / name))
    assert "focus" in queue.view.model().index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole)
    measured = []
    monkeypatch.setattr(image_tables, "measure_image", lambda *_: measured.append(1))
    press(window, qtbot, Qt.Key.Key_I)
    assert titles(window) == ["b.png", "a.png", "c.png"]
    press(window, qtbot, Qt.Key.Key_I)
    assert titles(window) == by_dispute
    assert not measured
    with Study.open(study, to_read=True) as stored:
        quality = {entry.name: stored.settings.image_quality[entry.id] for entry in stored.images()}
    assert {name: each.saturation for name, each in quality.items()} == SATURATED


def test_an_unreadable_image_comes_last(window, qtbot, study):
    damaged = study.parent / "c.png"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    open_study(window, qtbot, study)
    window.workspace.queue.order.setCurrentIndex(1)
    idle(window, qtbot)
    assert titles(window)[-1] == "c.png"
    assert "1 image could not be read" in window.status.message


def test_the_table_has_the_quality_of_each_image(study, tmp_path):
    assert main(["export", str(study), "--what", "quality", "-o", str(tmp_path / "q.csv")]) == 0
    with (tmp_path / "q.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["image"]: row for row in csv.DictReader(file)}
    assert {name: float(row["saturated_percent"]) for name, row in rows.items()} == {
        name: 100 * share for name, share in SATURATED.items()
    }
    assert float(rows["a.png"]["focus"]) == pytest.approx(focus(tmp_path / "a.png"), rel=1e-5)


def focus(path):
    return measure_focus(np.asarray(Image.open(path)))
