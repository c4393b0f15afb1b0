"""The runs made: show one, compare several, delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from raterscope.widgets import theme
from raterscope.widgets.parts import ElidedLabel, Header, plain_label

__all__ = ["RunLine", "RunList"]


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run.

    Attributes
    ----------
    key : object
    title : str
        "OEM + DEM".
    words : str
        "12:01, 340 images, 4.2 s".
    shown : bool
        True for the run on screen.
    stale : bool
        True where decisions or exclusions came after it.
    """

    key: object
    title: str
    words: str
    shown: bool = False
    stale: bool = False


class RunList(QWidget):
    """Runs, the latest first.

    Parameters
    ----------
    all_compared : bool
        All runs are compared, always, and none has to be ticked for it.

    Signals
    -------
    chosen : object
    delete_requested : object
    compare_requested : object
        Tuple of the keys ticked, two or more; of all where all are compared.
    """

    chosen = Signal(object)
    delete_requested = Signal(object)
    compare_requested = Signal(object)

    def __init__(self, *, all_compared: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._all_compared = all_compared
        header = Header("Runs")
        self.compare = QPushButton("Compare")
        theme.set_role(self.compare, "link")
        which = "" if all_compared else " that are ticked (two or more)"
        self.compare.setToolTip(f"Compare the runs{which}")
        self.compare.clicked.connect(self._on_compare)
        header.row.addWidget(self.compare)
        self._nothing = plain_label("No runs yet. Press Run to fuse.", "second")
        self._rows: list[_RunRow] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addWidget(header)
        self._column.addWidget(self._nothing)
        self.set_runs(())

    def set_runs(self, runs: Sequence[RunLine]) -> None:
        """Show other runs; ticks stay."""
        if runs and [row.line for row in self._rows] == list(runs):
            return
        ticked = set(self.ticked())
        for row in self._rows:
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = [_RunRow(line, line.key in ticked, self) for line in runs]
        for row in self._rows:
            row.chosen.connect(self.chosen)
            row.delete_requested.connect(self.delete_requested)
            row.ticked.connect(self._settle)
            row.tick.setHidden(self._all_compared)
            self._column.addWidget(row)
        self._nothing.setVisible(not runs)
        self._settle()

    def ticked(self) -> tuple[object, ...]:
        """Give the keys of the runs that are ticked."""
        return tuple(row.line.key for row in self._rows if row.tick.isChecked() or self._all_compared)

    def _settle(self) -> None:
        self.compare.setVisible(len(self._rows) > 1)
        self.compare.setEnabled(len(self.ticked()) > 1)

    def _on_compare(self) -> None:
        self.compare_requested.emit(self.ticked())


class _RunRow(QWidget):
    chosen = Signal(object)
    delete_requested = Signal(object)
    ticked = Signal()

    def __init__(self, line: RunLine, ticked: bool, parent: QWidget) -> None:
        super().__init__(parent)
        self.line = line
        self.tick = QCheckBox()
        self.tick.setChecked(ticked)
        self.tick.setToolTip("Tick two or more runs to compare them")
        self.tick.setAccessibleName(f"Compare {line.title}, {line.words}")
        self.tick.toggled.connect(self.ticked)
        title = ElidedLabel(line.title, "accent" if line.shown else "")
        words = ElidedLabel(line.words + (", older than your last decision" if line.stale else ""), "small")
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(title)
        texts.addWidget(words)
        show = QPushButton("Shown" if line.shown else "Show")
        show.setEnabled(not line.shown)
        show.clicked.connect(self._on_show)
        delete = QPushButton("Delete")
        delete.clicked.connect(self._on_delete)
        for button, verb in ((show, "Show"), (delete, "Delete")):
            theme.set_role(button, "link")
            button.setAccessibleName(f"{verb} {line.title}, {line.words}")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 2)
        row.setSpacing(8)
        row.addWidget(self.tick)
        row.addLayout(texts, 1)
        row.addWidget(show)
        row.addWidget(delete)

    def _on_show(self) -> None:
        self.chosen.emit(self.line.key)

    def _on_delete(self) -> None:
        self.delete_requested.emit(self.line.key)
