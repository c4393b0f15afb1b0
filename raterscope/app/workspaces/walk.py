"""Which image of a workspace is on screen: the most disputed at first, then what is chosen or left."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from raterscope.app.document import Document
from raterscope.app.workspaces.loading import SceneLoader
from raterscope.app.workspaces.queueing import Queueing
from raterscope.app.workspaces.runs import Runs

__all__ = ["Walk"]


class Walk(QObject):
    """Joins queue, runs and loader: asks for the scene of the image that is wanted, and for what follows.

    Signals
    -------
    arrived(scene)
        The scene to be shown.
    disputed_wanted
        It was gone to for what is disputed in it.
    """

    arrived = Signal(object)
    disputed_wanted = Signal()

    def __init__(
        self, document: Document, queueing: Queueing, loader: SceneLoader, runs: Runs, kind: str
    ) -> None:
        super().__init__(runs)
        self._document = document
        self._queueing = queueing
        self._loader = loader
        self._runs = runs
        self._kind = kind
        self._on_screen: int | None = None
        self._for_disputed = False
        queueing.ordered.connect(self._on_queue_ordered)
        loader.loaded.connect(self._on_loaded)
        runs.chosen.connect(self.again)
        runs.changed.connect(self._on_results)

    def reset(self) -> None:
        """Begin anew: another study."""
        self._loader.forget()
        self._on_screen = None
        self._for_disputed = False
        self._queueing.reset()

    def refresh(self) -> None:
        """Read what has come since, and show the image on screen anew; without any run yet, the first."""
        self._queueing.reread(())
        images = self._images()
        if self._queueing.current in images:
            self.again()
        elif images and not self._has_runs():
            self.show(images[0])

    def show(self, image: int | None) -> None:
        """Ask for an image's scene."""
        if image is not None:
            self._queueing.select(image)
            self._loader.show(image, self._runs.run_of(image))

    def again(self) -> None:
        """Ask for the scene of the present image once more."""
        self.show(self._queueing.current)

    def choose(self, image: int) -> None:
        """Go to an image of the queue, unless it is on screen."""
        if image != self._on_screen:
            self.show(image)

    def go_on(self) -> bool:
        """Go to the next image with something disputed; tells whether there is one."""
        image = self._queueing.most_disputed()
        if image is None or image == self._queueing.current:
            return False
        self._for_disputed = True
        self.show(image)
        return True

    def _images(self) -> list[int]:
        contents = self._document.contents
        return [entry.id for entry in contents.of(self._kind)] if contents else []

    def _has_runs(self) -> bool:
        contents = self._document.contents
        return contents is not None and bool(contents.runs_of(self._kind))

    def _on_queue_ordered(self) -> None:
        """Begin with the most disputed image, now that it is known."""
        images = self._images()
        if images and self._queueing.current is None:
            self.show(self._queueing.most_disputed() or images[0])

    def _on_loaded(self, scene: Any) -> None:
        self._on_screen = scene.image.id
        self.arrived.emit(scene)
        self._runs.list_runs(scene.image.name, scene.run)
        contents, following = self._document.contents, self._queueing.after(scene.image.id)
        entry = contents.image(following) if contents and following is not None else None
        if entry is not None:
            self._loader.prefetch(entry)
        if self._for_disputed:
            self._for_disputed = False
            self.disputed_wanted.emit()

    def _on_results(self) -> None:
        self._queueing.reread(self._images())
