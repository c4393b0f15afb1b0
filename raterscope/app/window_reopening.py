"""After a crash: the offer to go back to where one was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from raterscope.app.document import Document
from raterscope.app.whereabouts import Place, Whereabouts, forget_crashed, left_by_crash
from raterscope.app.workspaces.catalogue import WORKSPACES
from raterscope.widgets import theme
from raterscope.widgets.parts import plain_label

if TYPE_CHECKING:
    from raterscope.app.main_window import MainWindow

__all__ = ["OfferBar", "Reopening"]


class OfferBar(QWidget):
    """One sentence under the top bar, with a button that does what it offers and one that does not."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("noticeBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.words = plain_label(wrap=True)
        self.accept, self.decline = QPushButton("Reopen"), QPushButton("Not now")
        theme.set_role(self.accept, "primary")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(8)
        row.addWidget(self.words, 1)
        row.addWidget(self.accept)
        row.addWidget(self.decline)
        self.hide()

    def offer(self, sentence: str) -> None:
        """Say what is offered; Return accepts."""
        self.words.setText(sentence)
        self.accept.setAccessibleDescription(sentence)
        self.show()
        self.accept.setFocus()


class Reopening(QObject):
    """Writes down where one is, and after a crash offers to go there.

    Parameters
    ----------
    document : Document
    bar : OfferBar
    folder : Path or None
        Where that is written; None where nothing is to be remembered.
    window : MainWindow
    """

    def __init__(self, document: Document, bar: OfferBar, folder: Path | None, window: MainWindow) -> None:
        super().__init__(window)
        self._document, self._bar, self._folder, self._window = document, bar, folder, window
        self._whereabouts = None if folder is None else Whereabouts(folder)
        self._place: Place | None = None
        bar.accept.clicked.connect(self._on_accepted)
        bar.decline.clicked.connect(self._on_declined)
        document.replaced.connect(self._on_replaced)

    def offer(self) -> None:
        """Offer to go back to where one was, if the last time did not end as it should."""
        self._place = None if self._folder is None else left_by_crash(self._folder)
        if self._place is not None:
            workspace = WORKSPACES.get(self._place.kind)
            where = f", workspace {workspace.title}" if workspace else ""
            self._bar.offer(
                "Raterscope did not end as it should the last time; what was decided is on disk. "
                f"Go back to {self._place.study.name}{where}, where you were?"
            )

    def be_at(self, kind: str, item: int | None) -> None:
        """Write down where one is now."""
        contents = self._document.contents
        if self._whereabouts is not None and contents is not None and kind:
            self._whereabouts.be_at(Place(contents.path, kind, item))

    def end(self) -> None:
        """Leave nothing behind: all ended as it should."""
        if self._whereabouts is not None:
            self._whereabouts.end()

    def _forget(self) -> None:
        self._bar.hide()
        if self._folder is not None:
            forget_crashed(self._folder)

    def _on_accepted(self) -> None:
        self._forget()
        if self._place is not None:
            self._window.files.open_study(self._place.study)

    def _on_declined(self) -> None:
        self._place = None
        self._forget()

    def _on_replaced(self) -> None:
        """Go to where one was, once the study is open; whoever opens another has no use for that."""
        contents, place, self._place = self._document.contents, self._place, None
        if contents is None:
            self.end()
            return
        self._bar.hide()
        if place is None or contents.path != place.study.resolve() or place.kind not in WORKSPACES:
            return
        if WORKSPACES[place.kind].holds(contents):
            self._window.show_workspace(place.kind)
            if place.item in [one.id for one in contents.of(place.kind)] and place.item is not None:
                self._window.workspace.go_to(place.item)
