"""The raters as rows: how far each is trusted, how far each draws beyond or short, how well each agrees."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QObject, Qt

from raterscope.widgets.parts import plain_tip
from raterscope.widgets.tables.rows import ROW, Index, RowsModel

__all__ = ["FIGURES", "RaterModel", "RaterRow", "direction"]

HELP = {
    "rater": "The colour is the same in all views",
    "weight": "How closely the consensus follows the rater where raters differ. 1: most closely",
    "bias mm": "How far the rater's outline lies beyond the consensus's (+) or short of it (-), mean, mm",
    "spread": "Standard deviation of that over the consensus's outline, in mm",
    "dof": "Degrees of freedom of the rater's errors: the fewer, the more of them are gross",
    "Dice": "Overlap with the consensus, from 0 to 1",
    "HD95": "95th percentile of the distances between the rater's surface and the consensus's, in mm",
    "HD": "Hausdorff distance: the largest distance between the rater's surface and the consensus's, in mm",
    "sens.": "Sensitivity: share of the structure that the rater marks",
    "spec.": "Specificity: share of the background that the rater leaves unmarked",
}
FIELDS = {
    "weight": "weight", "bias mm": "bias_mm", "spread": "deviation_mm", "dof": "dof", "Dice": "dice",
    "HD95": "hausdorff95", "HD": "hausdorff", "sens.": "sensitivity", "spec.": "specificity",
}  # fmt: skip
FIGURES = tuple(FIELDS)
SPOKEN = {
    "weight": "weight {}", "bias mm": "bias {} mm", "spread": "spread {} mm", "dof": "{} degrees of freedom",
    "Dice": "Dice {}", "HD95": "95th percentile of the distance {} mm",
    "HD": "Hausdorff distance {} mm", "sens.": "sensitivity {}",
    "spec.": "specificity {}",
}  # fmt: skip
DECIMALS = {"bias mm": 1, "spread": 1, "dof": 1, "HD95": 1, "HD": 1}


@dataclass(frozen=True, slots=True)
class RaterRow:
    """One rater of one case, or of all.

    Attributes
    ----------
    number : int
        Gives the colour.
    name : str
    weight : float
        0 to 1.
    bias_mm, deviation_mm : float
        Mean and standard deviation of the distance from the consensus, positive where the rater draws
        beyond it.
    dof : float
        Degrees of freedom; infinite for Gaussian errors.
    dice, sensitivity, specificity : float
        Against the consensus, 0 to 1.
    hausdorff95, hausdorff : float
        In mm.
    excluded : bool
    excluded_reason : str
    note : str
        What stands beside the name: "drew nothing".

    All figures are NaN where not known.
    """

    number: int
    name: str
    weight: float = math.nan
    bias_mm: float = math.nan
    deviation_mm: float = math.nan
    dof: float = math.nan
    dice: float = math.nan
    hausdorff95: float = math.nan
    hausdorff: float = math.nan
    sensitivity: float = math.nan
    specificity: float = math.nan
    excluded: bool = False
    excluded_reason: str = ""
    note: str = ""

    def figure(self, column: str) -> float:
        """Give a figure by the name of its column."""
        return float(getattr(self, FIELDS[column]))


class RaterModel(RowsModel[RaterRow]):
    """Raters in words, with whose outlines are hidden or alone."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(HELP, "rater", parent, falling=False)
        self.unit = "mm"
        """Of lengths: "px" for an image that does not tell a pixel's size."""
        self.hidden: frozenset[str] = frozenset()
        self.solo: str | None = None

    def set_shown(self, hidden: frozenset[str], solo: str | None) -> None:
        """Say who is hidden or alone."""
        self.hidden, self.solo = hidden, solo
        if self.rowCount():
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(HELP) - 1))

    def shown(self, name: str) -> bool:
        """Whether a rater's outline is drawn."""
        return name == self.solo if self.solo is not None else name not in self.hidden

    def sort_key(self, row: RaterRow, column: str) -> float | str:
        """Sort raters by their place, the rest by its figure."""
        return float(row.number) if column == "rater" else row.figure(column)

    def known(self, column: str) -> bool:
        """Whether a column has anything to show."""
        return column == "rater" or not all(math.isnan(row.figure(column)) for row in self.rows)

    def row_of(self, name: str | None) -> int:
        """Give the row of a rater, -1 for none."""
        return next((row for row in range(self.rowCount()) if self.at(row).name == name), -1)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        """Name the columns above their figures."""
        if role == Qt.ItemDataRole.TextAlignmentRole and orientation == Qt.Orientation.Horizontal:
            left = self.columns[section] in ("rater", "weight")
            side = Qt.AlignmentFlag.AlignLeft if left else Qt.AlignmentFlag.AlignRight
            return side | Qt.AlignmentFlag.AlignVCenter
        words = super().headerData(section, orientation, role)
        return words.replace("mm", self.unit) if isinstance(words, str) else words

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Give a cell in words, or its row."""
        row, column = self.at(index.row()), self.columns[index.column()]
        if role == ROW:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return row.name if column == "rater" else _words(row.figure(column), column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(_tip(row, column).replace(" mm", f" {self.unit}"))
        if role == Qt.ItemDataRole.AccessibleTextRole:
            words = _spoken(row, column).replace(" mm", f" {self.unit}")
            return words if column != "rater" or self.shown(row.name) else f"{words}, hidden"
        return None


def direction(bias_mm: float) -> str:
    """Say which way a bias goes: "draws 1.9 mm beyond the consensus: over"."""
    if abs(bias_mm) < 0.05:
        return "no bias against the consensus"
    beyond = bias_mm > 0
    way = "beyond the consensus: over" if beyond else "short of the consensus: under"
    return f"draws {abs(bias_mm):.1f} mm {way}"


def _words(value: float, column: str) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    sign = "+" if column == "bias mm" else ""
    words = f"{value:{sign}.{DECIMALS.get(column, 2)}f}"
    return words[1:] if words[0] in "+-" and not words.strip("+-0.") else words


def _spoken(row: RaterRow, column: str) -> str:
    if column == "rater":
        return ", ".join(part for part in (row.name, "excluded" if row.excluded else "", row.note) if part)
    value = row.figure(column)
    if math.isnan(value):
        return f"{column} unknown"
    return direction(value) if column == "bias mm" else SPOKEN[column].format(_words(value, column))


def _tip(row: RaterRow, column: str) -> str:
    if column != "rater":
        return f"{row.name}: {_spoken(row, column)}"
    known = [_spoken(row, column) for column in FIGURES if not math.isnan(row.figure(column))]
    why = f"excluded: {row.excluded_reason}" if row.excluded_reason else "excluded" if row.excluded else ""
    return f"{row.name}: " + (", ".join(part for part in (why, row.note, *known) if part) or "not fused yet")
