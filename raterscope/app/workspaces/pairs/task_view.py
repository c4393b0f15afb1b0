"""The selected comparison as annotators saw it, large: the prompt and both answers, or both pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch
from raterscope.app.session import LatestTask, while_shown
from raterscope.app.study import Study
from raterscope.app.study.labels import read_contents, split_comparison
from raterscope.app.workspaces.pairs.scene import Scene
from raterscope.app.workspaces.pairs.screen import PairsCore, PairsPart
from raterscope.app.workspaces.task_pictures import ContentTab, load_picture
from raterscope.widgets.panels.task_content import TaskContent

GAP = 0.05
"""Between two pictures, as a share of their width."""


@dataclass(frozen=True)
class _Read:
    content: TaskContent
    paths: tuple[Path, ...]


class ComparisonContents(PairsPart):
    """The selected comparison, large, while its tab of the centre is open."""

    def __init__(self, core: PairsCore) -> None:
        super().__init__(core)
        self._view = core.screen.content
        self.tab = ContentTab(core.screen.middle_tabs, self._view)
        self._comparison: int | None = None
        self._drawn: int | None = None
        self._content: TaskContent | None = None
        self._reading, self._loading = LatestTask(), LatestTask()
        for grid in (core.screen.evidence.pairs, core.screen.comparisons):
            grid.chosen.connect(self.show)
            grid.listed.connect(self.show)
        core.session.scene_changed.connect(self._clear)
        core.session.cleared.connect(self._clear)
        core.session.scene_amended.connect(self._draw_again)
        core.screen.middle_tabs.currentChanged.connect(self._draw)

    def show(self, comparison: int) -> None:
        """Show a comparison."""
        self._comparison = comparison
        self._draw()

    def _clear(self) -> None:
        self._reading.cancel()
        self._loading.cancel()
        self._comparison = self._drawn = self._content = None
        self._view.show_content(None)

    def _draw_again(self) -> None:
        self._drawn = None
        self._draw()

    @while_shown
    def _draw(self, _tab: int = 0) -> None:
        if not self.tab.open or self._comparison in (None, self._drawn):
            return
        assert self._comparison is not None
        self._drawn = self._comparison
        work = partial(_read, self._session.scene, self._comparison)
        self._reading.follow(self._document.ask("Reading the comparison", work), self._on_read)

    def _on_read(self, read: _Read) -> None:
        self._content = read.content
        self._loading.cancel()
        self._view.show_content(read.content)
        if read.paths:
            job = self._jobs.start("Reading pictures", partial(_load, read.paths), quiet=True)
            self._loading.follow(job, self._on_loaded)

    def _on_loaded(self, pixels: NDArray[np.uint8] | None) -> None:
        if self._content is not None:
            self._content = replace(self._content, has_picture=pixels is not None, pixels=pixels)
            self._view.show_content(self._content)


def _read(scene: Scene, comparison: int, study: Study, watch: Watch) -> _Read:
    watch(0.0, "reading the comparison")
    pairs = scene.pairs
    sides = int(pairs.left[comparison]), int(pairs.right[comparison])
    names = [pairs.items[item] for item in sides]
    choice = float(pairs.choice[comparison])
    chosen = f"preferred {names[choice < 0]}" if choice else "had no preference"
    annotator = scene.names[int(pairs.annotator[comparison])]
    number = -1 if pairs.task is None else int(pairs.task[comparison])
    task = "" if number < 0 else scene.tasks[number]
    stored = read_contents(study, scene.question.id, task) if task else {}
    texts, *answers = split_comparison(stored, names[0], names[1], set(pairs.items))
    if not any(answers):
        answers = ["\n\n".join(read_contents(study, scene.question.id, name).values()) for name in names]
    heads = tuple(
        f"{letter}: {name}{', preferred' if choice * sign > 0 else ''}"
        for letter, name, sign in zip("AB", names, (1, -1), strict=True)
    )
    if any(answers):
        texts |= dict(zip(heads, answers, strict=True))
    paths = tuple(study.locate(scene.pictures[item]) for item in sides if item in scene.pictures)
    located = tuple(path for path in paths if path is not None)
    both = located if len(located) == 2 and not texts else ()
    shown = f"A: {names[0]}, B: {names[1]}" if both else ""
    title = " | ".join(filter(None, (task, shown, f"{annotator} {chosen}")))
    if not texts and not both:
        texts = dict(zip(heads, names, strict=True))
    return _Read(TaskContent(title, bool(both), None, texts, (heads[0], heads[1])), both)


def _load(paths: tuple[Path, ...], watch: Watch) -> NDArray[np.uint8] | None:
    """Read two pictures, and put them side by side; None if one cannot be read."""
    pictures = [load_picture(path, watch) for path in paths]
    if any(picture is None for picture in pictures):
        return None
    coloured = [
        np.repeat(picture[..., None], 3, axis=2) if picture.ndim == 2 else picture[..., :3]
        for picture in pictures
        if picture is not None
    ]
    height = max(len(picture) for picture in coloured)
    width = sum(picture.shape[1] for picture in coloured)
    gap = max(round(GAP * width), 1)
    pixels = np.zeros((height, width + gap, 3), dtype=np.uint8)
    left = 0
    for picture in coloured:
        top = (height - len(picture)) // 2
        pixels[top : top + len(picture), left : left + picture.shape[1]] = picture
        left += picture.shape[1] + gap
    return pixels
