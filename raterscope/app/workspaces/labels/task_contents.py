"""The selected task, large: its picture at full size or its texts, read in the background, and its sounds."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from raterscope.algorithms.progress import Watch
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.sounds import Sound, find_media, media_kind, outline, read_sound
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import Study
from raterscope.app.study.labels import read_contents
from raterscope.app.study.records import ImageEntry
from raterscope.app.workspaces.labels.screen import LabelsCore, LabelsPart
from raterscope.app.workspaces.labels.tasks import TaskReview
from raterscope.app.workspaces.task_pictures import ContentTab, load_picture
from raterscope.widgets.panels.task_content import TaskContent


def open_device(rate: int) -> Any:
    """Open the system's sound device."""
    import miniaudio

    return miniaudio.PlaybackDevice(nchannels=2, sample_rate=rate)


class SoundPlayer:
    """Player of a sound; see `widgets.panels.task_content.Player`."""

    def __init__(self, sound: Sound, device: Callable[[int], Any] = open_device) -> None:
        self._sound, self._open = sound, device
        self._device: Any = None
        self._at = 0
        self.playing = False

    @property
    def position(self) -> float:
        """Seconds that were played."""
        return self._at / self._sound.rate

    def play(self, start: float) -> None:
        """Play from a time on. Raises OSError if there is no sound device."""
        self.pause()
        self._at = int(start * self._sound.rate)
        try:
            self._device = self._open(self._sound.rate)
            stream = self._stream()
            next(stream)
            self.playing = True
            self._device.start(stream)
        except Exception as error:
            self.pause()
            raise OSError(str(error) or "there is no sound device") from error

    def pause(self) -> None:
        """Stop where it is."""
        self.playing = False
        device, self._device = self._device, None
        if device is not None:
            device.close()

    def _stream(self) -> Generator[bytes, int, None]:
        """Yield the next frames that the device requests."""
        needed = yield b""
        while self.playing and self._at < len(self._sound.samples):
            frames = self._sound.samples[self._at : self._at + needed]
            self._at += len(frames)
            needed = yield frames.tobytes()
        self.playing = False


class TaskContents(LabelsPart):
    """The selected task, large, while its tab of the centre is open."""

    def __init__(self, core: LabelsCore, tasks: TaskReview) -> None:
        super().__init__(core)
        self._view = core.screen.content
        self.tab = ContentTab(core.screen.middle_tabs, self._view)
        self._tasks = tasks
        self._content: TaskContent | None = None
        self._reading, self._loading = LatestTask(), LatestTask()
        tasks.selected.connect(self._show)
        core.session.cleared.connect(self._clear)
        core.screen.middle_tabs.currentChanged.connect(self._show)
        self._film: Path | None = None
        self._view.film.clicked.connect(self._open_film)

    def _clear(self) -> None:
        self._reading.cancel()
        self._loading.cancel()
        self._content = None
        self._view.show_content(None)

    @while_shown
    def _show(self, _selected: object = None) -> None:
        task = self._tasks.current
        if task is None:
            self._clear()
        elif self.tab.open:
            scene = self._session.scene
            name = scene.labels.tasks[task]
            if self._content is None or self._content.name != name:
                work = partial(_read, name, scene.question.id, scene.pictures.get(task))
                job = self._document.ask("Reading the task", work)
                self._reading.follow(job, self._on_read)

    def _on_read(self, read: _Read) -> None:
        self._content, self._film = read.content, read.film
        self._loading.cancel()
        self._view.show_content(self._content)
        if read.picture is not None:
            job = self._jobs.start("Reading a picture", partial(load_picture, read.picture), quiet=True)
            self._loading.follow(job, partial(self._on_loaded, read.picture))
        elif read.sound is not None:
            job = self._jobs.start("Reading a sound", partial(_load_sound, read.sound), quiet=True)
            self._loading.follow(job, self._on_sound)

    def _on_loaded(self, path: Path, pixels: NDArray[np.uint8] | None) -> None:
        content = self._content
        if content is not None:
            problem = "" if pixels is not None else f"{plain(path.name)} is damaged, or no picture."
            self._content = replace(
                content, has_picture=pixels is not None, pixels=pixels, problem=problem or content.problem
            )
            self._view.show_content(self._content)

    def _on_sound(self, loaded: tuple[Sound, NDArray[np.float32]] | str) -> None:
        if self._content is None:
            return
        if isinstance(loaded, str):
            self._content = replace(self._content, problem=loaded)
            self._view.show_content(self._content)
        else:
            sound, levels = loaded
            self._view.show_sound(SoundPlayer(sound), levels, sound.seconds)

    def _open_film(self) -> None:
        if self._film is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._film)))


class _Read(NamedTuple):
    """Contents of a task, and the files that show them."""

    content: TaskContent
    picture: Path | None = None
    sound: Path | None = None
    film: Path | None = None


def _read(name: str, question: int, entry: ImageEntry | None, study: Study, watch: Watch) -> _Read:
    watch(0.0, "reading the task")
    picture = None if entry is None else study.locate(entry)
    texts = read_contents(study, question, name)
    files = {kind: text for text in (name, *texts.values()) if (kind := media_kind(text))}
    located = {kind: find_media(text, study.path.parent) for kind, text in files.items()}
    lost = [plain(text, 200) for kind, text in files.items() if located[kind] is None]
    problem = f"{lost[0]} is not in the folder of the study or below it." if lost else ""
    if entry is not None and picture is None:
        problem = (
            f"The picture {plain(entry.name)} is missing; Find missing images in the menu searches for it."
        )
    film = located.get("film")
    content = TaskContent(
        name, picture is not None, None, texts, problem=problem, film="" if film is None else plain(film.name)
    )
    return _Read(content, picture, located.get("sound"), film)


def _load_sound(path: Path, watch: Watch) -> tuple[Sound, NDArray[np.float32]] | str:
    watch(0.0, "reading a sound")
    try:
        sound = read_sound(path)
    except InputError as error:
        return f"{str(error).rstrip('.')}."
    return sound, outline(sound)
