"""Which image of a workspace is on screen: the most disputed at first, then what is chosen or left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from raterscope.app.document import Document
from raterscope.app.workspaces.loading import SceneLoader
from raterscope.app.workspaces.queueing import Queueing
from raterscope.app.workspaces.runs import Runs

__all__ = ["Walk"]


_MODIFIERS = (Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_Alt, Qt.Key.Key_AltGr, Qt.Key.Key_Meta)
_LOOKING = (QEvent.Type.Wheel, QEvent.Type.MouseButtonPress, QEvent.Type.KeyPress)


class Walk(QObject):
    """Joins queue, runs and loader: asks for the scene of the image that is wanted, and for what follows.

    Before anything is fused the first image is on screen. Once it is known which is the most disputed, that
    one takes its place, unless somebody has begun to look at the first.

    Parameters
    ----------
    document : Document
    queueing : Queueing
    loader : SceneLoader
    runs : Runs
    kind : str
        Of annotation.
    canvas : QWidget
        Whoever uses wheel, mouse or keys on it looks at what is there.

    Signals
    -------
    arrived(scene)
        The scene to be shown.
    """

    arrived = Signal(object)

    def __init__(
        self,
        document: Document,
        queueing: Queueing,
        loader: SceneLoader,
        runs: Runs,
        kind: str,
        canvas: QWidget,
    ) -> None:
        super().__init__(runs)
        self._document = document
        self._queueing = queueing
        self._loader = loader
        self._runs = runs
        self._kind = kind
        self._on_screen: int | None = None
        self._then: Callable[[], object] | None = None
        """What is to be done once the image that is wanted is on screen."""
        self._for_now = False
        """Whether the image on screen is there for want of a better one."""
        self._canvas = canvas
        queueing.ordered.connect(self._on_queue_ordered)
        loader.loaded.connect(self._on_loaded)
        runs.chosen.connect(self.again)
        runs.chosen.connect(self._on_results)
        runs.changed.connect(self._on_results)

    def reset(self) -> None:
        """Begin anew: another study."""
        self._loader.forget()
        self._on_screen = None
        self._then = None
        self._keep()
        self._queueing.reset()

    def refresh(self) -> None:
        """Read what has come since, and show the image on screen anew; without any run yet, the first."""
        self._queueing.reread(())
        images = self._images()
        if self._queueing.current in images:
            self.again()
        elif images and not self._has_runs():
            self.show(images[0])
            if not self._for_now:
                self._for_now = True
                for place in (self._canvas, *self._canvas.findChildren(QWidget)):
                    place.installEventFilter(self)

    def eventFilter(self, _place: QObject, event: QEvent) -> bool:
        """Notice that somebody looks at the image on screen."""
        if event.type() in _LOOKING and not (isinstance(event, QKeyEvent) and event.key() in _MODIFIERS):
            self._keep()
        return False

    def _keep(self) -> None:
        """Leave the image on screen there, whatever comes."""
        if self._for_now:
            self._for_now = False
            for place in (self._canvas, *self._canvas.findChildren(QWidget)):
                place.removeEventFilter(self)

    def show(self, image: int | None) -> None:
        """Ask for an image's scene."""
        self._then = None
        if image is not None:
            self._queueing.select(image)
            self._loader.show(image, self._runs.run_of(image))

    def again(self) -> None:
        """Ask for the scene of the present image once more."""
        self.show(self._queueing.current)

    def choose(self, image: int) -> None:
        """Go to an image of the queue, unless it is on screen."""
        self._keep()
        if image != self._on_screen:
            self.show(image)

    def visit(self, image: int, then: Callable[[], object]) -> None:
        """Go to an image, and do something there unless another one is wanted meanwhile."""
        self._keep()
        self.show(image)
        self._then = then

    def _images(self) -> list[int]:
        contents = self._document.contents
        return [entry.id for entry in contents.of(self._kind)] if contents else []

    def _has_runs(self) -> bool:
        contents = self._document.contents
        return contents is not None and bool(contents.runs_of(self._kind))

    def _on_queue_ordered(self) -> None:
        """Begin with the most disputed image, now that it is known."""
        images, disputed = self._images(), self._queueing.most_disputed()
        if images and self._queueing.current is None:
            self.show(disputed or images[0])
        elif self._for_now and disputed is not None and self._has_runs():
            self._keep()
            self.show(disputed)

    def _on_loaded(self, scene: Any) -> None:
        self._on_screen = scene.image.id
        then, self._then = self._then, None
        self.arrived.emit(scene)
        self._runs.list_runs(scene.image, scene.run)
        contents, following = self._document.contents, self._queueing.after(scene.image.id)
        entry = contents.image(following) if contents and following is not None else None
        if entry is not None:
            self._loader.prefetch(entry)
        if then is not None:
            then()

    def _on_results(self) -> None:
        self._queueing.reread(self._images())
