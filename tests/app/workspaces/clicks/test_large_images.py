"""A large image is prepared in the background, shown by tiles, and reviewed like small ones."""

import threading

import numpy as np
import pytest

from raterscope.app import importing
from raterscope.app.formats import pyramids
from raterscope.app.formats.images import load_image
from raterscope.app.study import Study
from raterscope.widgets.panels.evidence_panel import EvidencePanel
from tests.app.driving import LONG, idle
from tests.app.formats.test_images import png


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch, tmp_path):
    monkeypatch.setattr(pyramids, "WHOLE_UP_TO", 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


@pytest.fixture
def shown(monkeypatch):
    """Return the last contents of the evidence panel."""
    values = []
    show = EvidencePanel.show_spot

    def noted(panel, evidence, *empty):
        values.append(evidence)
        show(panel, evidence, *empty)

    monkeypatch.setattr(EvidencePanel, "show_spot", noted)
    return values


def kept(tmp_path):
    return list((tmp_path / "caches").rglob("*.pyramid"))


def visible_items(window) -> bool:
    return window.workspace.canvas.layers.image.by_tiles and window.workspace.canvas._minimap.has_picture


def test_a_large_image_is_shown_by_tiles_and_its_spots_with_their_surroundings(shown, fused, qtbot, tmp_path):
    workspace = fused.workspace
    qtbot.waitUntil(lambda: visible_items(fused), timeout=LONG)
    assert kept(tmp_path)
    workspace.reviewing.select(0)
    qtbot.waitUntil(lambda: shown[-1] is not None and shown[-1].crop is not None, timeout=LONG)
    spot, scene = workspace.reviewing.spot, workspace.reviewing.session.scene
    pixels, half = load_image(scene.path), shown[-1].crop.shape[0] // 2
    x, y = round(spot.x), round(spot.y)
    middle = shown[-1].crop[half - 5 : half + 5, half - 5 : half + 5]
    np.testing.assert_array_equal(middle, pixels[y - 5 : y + 5, x - 5 : x + 5])


def test_a_damaged_copy_is_reported_and_made_again(fused, qtbot, tmp_path):
    workspace = fused.workspace
    qtbot.waitUntil(lambda: visible_items(fused), timeout=LONG)
    messages = []
    workspace.refused.connect(messages.append)
    for file in kept(tmp_path):
        data = bytearray(file.read_bytes())
        data[100] ^= 255
        file.write_bytes(data)
    scene = workspace.reviewing.session.scene
    image = workspace.loader._cache[scene.image.id].image
    workspace.canvas.set_image(image, scene.image.extent)
    qtbot.waitUntil(lambda: messages != [], timeout=LONG)
    assert "was damaged; it is built again" in messages[0]
    qtbot.waitUntil(lambda: visible_items(fused), timeout=LONG)
    assert len(messages) == 1


def test_making_an_image_ready_can_be_cancelled_and_begun_again(
    window, qtbot, monkeypatch, study_file, tmp_path
):
    go_on = threading.Event()
    write = pyramids.write_pyramid

    def slowly(file, pyramid, band, text):
        while not go_on.wait(0.02):
            text(0.0)
        write(file, pyramid, band, text)

    monkeypatch.setattr(pyramids, "write_pyramid", slowly)
    jobs = {}
    window.jobs.updated.connect(lambda job: jobs.setdefault(job.title, job))
    window.open_paths([study_file])
    qtbot.waitUntil(lambda: "Loading one.png" in jobs, timeout=LONG)
    qtbot.waitUntil(lambda: "smaller copies" in window.workspace.canvas._waiting, timeout=LONG)
    jobs["Loading one.png"].cancel()
    qtbot.waitUntil(lambda: jobs["Loading one.png"].over, timeout=LONG)
    assert not visible_items(window)
    assert not window.workspace.canvas._waiting
    go_on.set()
    idle(window, qtbot)
    window.workspace.navigation.show(window.workspace.reviewing.session.scene.image.id)
    qtbot.waitUntil(lambda: visible_items(window), timeout=LONG)
    assert not list((tmp_path / "caches").rglob("*.part"))


def test_an_image_too_large_to_be_decoded_is_added_by_its_head_alone(tmp_path):
    (tmp_path / "mosaic.png").write_bytes(png(20_000, 20_000, b""))
    (tmp_path / "clicks.csv").write_text("annotator,image,x,y\nann,mosaic.png,15000,18000\n")
    with Study.create(tmp_path / "large.rscope") as study:
        importing.store(importing.read_files([tmp_path / "mosaic.png", tmp_path / "clicks.csv"]), study)
        (entry,) = study.images()
        assert entry.extent == (0, 0, 20_000, 20_000)
        assert not study.clicks(entry.id).outside.any()
