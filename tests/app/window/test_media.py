"""Sounds and films of tasks in the window, played on a dummy device."""

from contextlib import suppress

import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices

from raterscope.app.workspaces.labels import workspace
from raterscope.app.workspaces.labels.workspace import SoundPlayer
from tests.app.driving import idle, press
from tests.app.formats.test_sounds import write_tone
from tests.waiting import LONG

pytest.importorskip("miniaudio")


class Device:
    """Plays nothing; a test requests frames as a device does."""

    def __init__(self, rate):
        self.rate, self.stream, self.closed = rate, None, False

    def start(self, stream):
        self.stream = stream

    def close(self):
        self.closed = True


@pytest.fixture
def devices(monkeypatch):
    made = []

    def player(sound):
        return SoundPlayer(sound, lambda rate: made.append(Device(rate)) or made[-1])

    monkeypatch.setattr(workspace, "SoundPlayer", player)
    return made


@pytest.fixture
def shown(window, qtbot, folder):
    """Import a table of these tasks, and show the first one large."""

    def show(*names):
        rows = "".join(f"{name},{worker},{label}\n" for name in names for worker, label in ("ab", "bc", "cb"))
        (folder / "votes.csv").write_text("audio,worker,label\n" + rows, encoding="utf-8")
        window.open_paths([folder / "votes.csv"])
        qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
        idle(window, qtbot)
        window.workspace.tasks.select(0)
        window.workspace.task_contents.tab.toggle()
        idle(window, qtbot)
        return window.workspace.content

    return show


def test_space_plays_and_pauses_the_sound_of_a_task(window, qtbot, folder, shown, devices):
    write_tone(folder / "clips" / "a.wav")
    view = shown("clips/a.wav")
    qtbot.waitUntil(view.sound.isVisible, timeout=LONG)
    assert view.sound.seconds == pytest.approx(0.5, abs=0.01)
    press(window, qtbot, Qt.Key.Key_Space, on=view.texts)
    (device,) = devices
    assert len(device.stream.send(1000)) == 4000
    press(window, qtbot, Qt.Key.Key_Space, on=view.texts)
    assert device.closed
    view.sound.toggle()
    assert devices[-1].stream is not None
    assert view.sound._player.position == pytest.approx(1000 / device.rate)
    with suppress(StopIteration):
        while True:
            devices[-1].stream.send(10_000)
    qtbot.waitUntil(lambda: view.sound.button.text() == "play", timeout=LONG)


@pytest.mark.parametrize(("content", "words"), [(b"nonsense" * 9, "damaged"), (None, "not in the folder")])
def test_a_broken_or_missing_sound_is_one_sentence(folder, shown, content, words):
    if content is not None:
        (folder / "a.wav").write_bytes(content)
    view = shown("a.wav")
    assert view.problem.isVisible()
    assert words in view.problem.text()
    assert not view.sound.isVisible()


def test_without_a_device_the_sound_shows_an_error(qtbot, folder, shown, monkeypatch):
    def refuse(_rate):
        raise RuntimeError("no device")

    monkeypatch.setattr(workspace, "SoundPlayer", lambda sound: SoundPlayer(sound, refuse))
    write_tone(folder / "a.wav")
    view = shown("a.wav")
    qtbot.waitUntil(view.sound.isVisible, timeout=LONG)
    view.sound.toggle()
    assert view.sound.problem.text() == "The sound cannot be played: no device"


def test_a_film_opens_in_the_systems_player_on_request(folder, shown, monkeypatch):
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    (folder / "film.mp4").write_bytes(b"film")
    view = shown("film.mp4")
    assert opened == []
    view.film.click()
    assert opened == [str(folder / "film.mp4")]


def test_a_picture_that_is_gone_changed_or_damaged_is_one_sentence(window, qtbot, folder):
    path = folder / "a.png"
    Image.new("RGB", (40, 30)).save(path)
    whole = path.read_bytes()
    (folder / "votes.csv").write_text("image,worker,label\na.png,b,ring\na.png,c,none\n", encoding="utf-8")
    window.open_paths([path, folder / "votes.csv"])
    qtbot.waitUntil(lambda: window.workspace is not None, timeout=LONG)
    idle(window, qtbot)
    study = window.document.contents.path
    for content, words in (
        (None, "was not found"), (b"another", "has changed"), (bytes(len(whole)), "damaged"), (whole, ""),
    ):  # fmt: skip
        window.files.close_study()
        idle(window, qtbot)
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        window.files.open_study(study)
        idle(window, qtbot)
        window.workspace.tasks.select(0)
        if not window.workspace.task_contents.tab.open:
            window.workspace.task_contents.tab.toggle()
        idle(window, qtbot)
        problem = window.workspace.content.problem
        assert words in problem.text()
        assert problem.isVisible() == bool(words)
