"""Decisions about annotators: flagged or cleared with a reason, skipped, or excluded."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication

from raterscope.algorithms.pairs.data import BoolArray
from raterscope.app.review import BiasSubject, Decision
from raterscope.app.session import while_shown
from raterscope.app.workspaces.pairs.scene import CLEARED, FLAGGED, OPEN
from raterscope.app.workspaces.pairs.screen import PairsCore, PairsPart
from raterscope.app.workspaces.review_order import Elsewhere
from raterscope.widgets.dialogs.review_dialogs import ReasonDialog
from raterscope.widgets.parts import Menu, without_checked

__all__ = ["BiasReview"]

REASONS = {
    "flag": ("clicks one side always", "clicks one side when unsure", "answers without looking"),
    "clear": ("agrees with the crowd", "the sides of the items explain it", "too few comparisons to say"),
}
HINTS = {
    "flag": "The corrected ranking removes this annotator's bias.",
    "clear": "The corrected ranking uses this annotator's answers unchanged.",
}
STATES = {"flag": FLAGGED, "clear": CLEARED}


class BiasReview(PairsPart):
    """Joins the queue of annotators with the journal.

    Signals
    -------
    message(str)
    exhausted
        Nobody else is left to be judged in the list.
    """

    message = Signal(str)
    exhausted = Signal()

    def __init__(self, core: PairsCore, elsewhere: Elsewhere) -> None:
        super().__init__(core)
        self._elsewhere = elsewhere
        self._by_hand = False
        """Whether the expert chose the annotator itself: only then may a decision be changed."""
        self.decided: NDArray[np.int8] = np.empty(0, dtype=np.int8)
        """What was decided of each annotator: OPEN, FLAGGED or CLEARED."""
        for place in (core.screen.queue, core.screen.path, core.screen.sides, core.screen.bars):
            place.chosen.connect(self._on_chosen)
        core.screen.evidence.flag_requested.connect(partial(self.judge, "flag"))
        core.screen.evidence.clear_requested.connect(partial(self.judge, "clear"))
        core.screen.evidence.skip_requested.connect(partial(self.judge, "skip"))
        core.screen.queue.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        core.screen.queue.view.customContextMenuRequested.connect(self._on_menu)
        core.session.scene_changed.connect(self.refresh)
        core.session.cleared.connect(self._clear)

    def _clear(self) -> None:
        self.decided = np.empty(0, dtype=np.int8)

    @while_shown
    def refresh(self) -> None:
        """Read anew what was decided."""
        scene, contents = self._session.scene, self._document.contents
        self.decided = np.zeros(len(scene.pairs.annotators), dtype=np.int8)
        if contents is None:
            return
        judged = contents.review.judged(scene.question.id)
        for at, name in enumerate(scene.pairs.annotators if judged else ()):
            if name in judged:
                self.decided[at] = STATES[judged[name].verb]

    def go(self, step: int) -> bool:
        """Go to the next annotator who is not decided, of any question; tells whether there is one."""
        queue = self._screen.queue
        here = queue.current
        queue.go(step)
        found = queue.current != here or self._elsewhere(step, False, False)
        if not found:
            queue.begin(step)
            found = queue.current != here
        self._by_hand = False
        if not found:
            self.exhausted.emit()
        return found

    def _on_chosen(self, annotator: int | None) -> None:
        self._by_hand = annotator is not None

    def judge(self, verb: str) -> None:
        """Flag, clear or skip the annotator looked at; the first two with a reason."""
        annotator = self._screen.queue.current
        if annotator is None:
            self.go(1)
            return
        scene = self._session.scene
        name = scene.pairs.annotators[annotator]
        if self.decided[annotator] != OPEN and (verb == "skip" or not self._by_hand):
            how = "flagged" if self.decided[annotator] == FLAGGED else "cleared"
            self.message.emit(
                f"{scene.names[annotator]} is {how} by you already. Undo, or choose them in the list, "
                "to change that; Tab goes on."
            )
            return
        if verb == "skip":
            self.record(verb, name)
            return
        dialog = ReasonDialog(
            scene.names[annotator], REASONS[verb], self._screen, act=verb.capitalize(), hint=HINTS[verb]
        )
        dialog.accepted.connect(partial(self._on_reason, verb, name, dialog))
        dialog.open()

    @while_shown
    def record(self, verb: str, name: str, reason: str = "") -> None:
        """Write what was decided of an annotator, and go on to the next."""
        scene = self._session.scene
        # Where those decided leave the list, the next one is found while this one is still in it.
        found = self.go(1)
        job = self._document.record(
            Decision(
                verb=verb, item=scene.question.id, subject=BiasSubject(annotator=name), reason=reason,
                run=None if scene.run is None else scene.run.id,
            )
        )  # fmt: skip
        if not found:
            job.finished.connect(self._on_last)

    def _on_last(self, _written: object) -> None:
        self.exhausted.emit()  # what was said before is forgotten with the decision

    @while_shown
    def set_aside(self, flagged: BoolArray) -> None:
        """Leave the flagged out of the fusions of every kind in this study."""
        scene, contents = self._session.scene, self._document.contents
        if contents is None:
            return
        names = tuple(
            name
            for name, flag in zip(scene.pairs.annotators, flagged.tolist(), strict=True)
            if flag and name not in contents.review.excluded
        )
        if not names:
            self.message.emit("All flagged annotators are already excluded.")
            return
        self._document.record(Decision(verb="exclude", annotators=names, reason="biased to a side"))

    def _on_menu(self, place: QPoint) -> None:
        """Offer what can be done with the annotator whose line has the mouse, which is current by then."""
        annotator, view = self._screen.queue.current, self._screen.queue.view
        if annotator is None:
            return
        name = self._session.scene.names[annotator]
        menu = Menu(self._screen)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(f"Annotator {name}".replace("&", "&&")).setEnabled(False)
        menu.addSeparator()
        for verb in ("flag", "clear", "skip"):
            menu.addAction(verb.capitalize()).triggered.connect(without_checked(partial(self.judge, verb)))
        menu.addAction("Copy the name").triggered.connect(
            without_checked(partial(QGuiApplication.clipboard().setText, name))
        )
        menu.popup(view.viewport().mapToGlobal(place))

    def _on_reason(self, verb: str, name: str, dialog: ReasonDialog) -> None:
        self.record(verb, name, dialog.reason)
