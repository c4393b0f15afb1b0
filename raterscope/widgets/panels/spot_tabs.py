"""About a spot: who clicked, what lies near, what other runs say, one of them in sight."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QTabWidget, QVBoxLayout, QWidget

from raterscope.widgets.panels.evidence_lines import EvidenceLine, EvidenceLines
from raterscope.widgets.panels.voter_list import VoterLine, VoterList
from raterscope.widgets.parts import plain_label
from raterscope.widgets.text_size import set_lengths

__all__ = ["SpotTabs"]

LEAST_LIST = 48
NEIGHBOURS, RUNS = 1, 2
READING = "Reading the other runs…"
ALONE = "No other spot nearby."


class SpotTabs(QTabWidget):
    """Three lists of a spot.

    Signals
    -------
    voter_chosen : int
        Index of the annotator.
    neighbour_chosen, run_chosen : int
        Key of a line.
    """

    voter_chosen = Signal(int)
    neighbour_chosen = Signal(object)
    run_chosen = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._voter: int | None = None
        self.voters = VoterList()
        self.voters.chosen.connect(self.voter_chosen)
        self.near = EvidenceLines("Spots nearby")
        self.near.chosen.connect(self.neighbour_chosen)
        self.runs = EvidenceLines("The spot in other runs")
        self.runs.chosen.connect(self.run_chosen)
        for view in (self.voters, self.near.view, self.runs.view):
            set_lengths(view, minimumHeight=LEAST_LIST)
            view.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.tabBar().setAccessibleName("About the spot")
        for title, tip, part in (
            (
                "Who clicked",
                "Annotators who marked the spot, and those who saw it and did not",
                self._headed_voters(),
            ),
            ("Nearby", "Nearby spots and their distance", self.near),
            ("Other runs", "Results of other runs at this position", self.runs),
        ):
            margins = QWidget()
            inner = QVBoxLayout(margins)
            inner.setContentsMargins(8, 0, 4, 4)
            inner.addWidget(part)
            self.setTabToolTip(self.addTab(margins, title), tip)

    @property
    def runs_in_sight(self) -> bool:
        """Whether what other runs say is the one in sight."""
        return self.currentIndex() == RUNS

    def show_spot(self, voters: Sequence[VoterLine], near: Sequence[EvidenceLine]) -> None:
        """Show who clicked and who did not, and what lies near."""
        self.voters.set_lines(voters)
        self.voters.choose(self._voter)
        clicked = sum(line.clicked for line in voters)
        self._who.setText(f"{clicked} clicked, {len(voters) - clicked} did not")
        self.near.show_lines(near, ALONE)

    def show_runs(self, lines: Sequence[EvidenceLine] | None, nothing: str = "") -> None:
        """Show what other runs say of the spot; None says that they are being read."""
        self.runs.show_lines(lines or (), READING if lines is None else nothing)

    def choose_voter(self, annotator: int | None) -> None:
        """Mark an annotator among those who looked, without a signal."""
        self._voter = annotator
        self.voters.choose(annotator)

    def bring_neighbours(self) -> None:
        """Bring the spots nearby into sight."""
        self.setCurrentIndex(NEIGHBOURS)

    def bring_runs(self) -> None:
        """Bring what other runs say into sight."""
        self.setCurrentIndex(RUNS)

    def _headed_voters(self) -> QWidget:
        self._who = plain_label("", "small")
        part = QWidget()
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(2)
        above = QHBoxLayout()
        above.setContentsMargins(4, 0, 8, 0)
        above.addWidget(self._who, 1)
        above.addWidget(plain_label("reliability", "small"))
        column.addLayout(above)
        column.addWidget(self.voters, 1)
        part.setFocusProxy(self.voters)
        return part
