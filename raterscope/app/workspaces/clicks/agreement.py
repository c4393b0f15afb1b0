"""Agreement of every two annotators, on the image on screen and over the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement import ClickAgreement, click_agreement
from raterscope.algorithms.progress import Watch
from raterscope.app.errors import counted
from raterscope.app.session import LatestTask
from raterscope.app.workspaces.clicks.annotators import Annotators, alias
from raterscope.app.workspaces.clicks.screen import ClicksCore, ClicksPart
from raterscope.app.workspaces.clicks.spots import Known
from raterscope.app.workspaces.review_queue import ReviewQueue
from raterscope.widgets.figures.agreement_matrix import AgreementMatrix
from raterscope.widgets.figures.mode_switch import ModeSwitch

__all__ = ["Agreement"]

MOST = 24
"""Of more annotators, those are shown who agree the least with all others."""

MEASURES = {
    "Dice": ("Dice", "Positive agreement: twice what both marked over the sum of what each marked"),
    "kappa": ("kappa", "Cohen's kappa: agreement beyond chance on which spots are marked"),
}
SCOPES = {
    "image": ("image", "On the image on screen"),
    "study": ("study", "On all images that both looked at, each by its latest fusion"),
}
NOTHING = (
    "How far every two annotators agree is drawn here, who agrees the least first: it takes a fused image "
    "that two looked at."
)


@dataclass(frozen=True, eq=False)
class _Page:
    """What is shown of one measure: of P annotators, those who agree the least first."""

    measure: str
    names: tuple[str, ...]
    values: NDArray[np.float64]
    clusters: NDArray[np.int64]
    images: NDArray[np.int64]
    everybody: int

    def words(self, row: int, column: int) -> str:
        """Say what stands in a cell."""
        value, images = self.values[row, column], int(self.images[row, column])
        if not images:
            return "no image in common"
        seen = counted(int(self.clusters[row, column]), "spot")
        where = f"{seen} on {counted(images, 'image')} that both saw"
        if np.isfinite(value):
            return f"{self.measure} {value:.2f}, of {where}"
        if self.measure == "Dice":
            return f"neither marked any of {where}"
        return f"kappa is not defined: both marked all, or none, of {where}"


class Agreement(ClicksPart):
    """Fills the matrix of agreement while it is visible."""

    def __init__(self, core: ClicksCore, review_queue: ReviewQueue, annotators: Annotators) -> None:
        super().__init__(core)
        self._review_queue, self._annotators = review_queue, annotators
        self.matrix = AgreementMatrix("Pairwise agreement", nothing=NOTHING, noun="annotator")
        self.measures, self.scopes = ModeSwitch(MEASURES), ModeSwitch(SCOPES)
        for switch in (self.measures, self.scopes):
            self.matrix.header.row.addWidget(switch)
        self._task = LatestTask()
        self._made_from: Mapping[int, Known] | None = None
        self._pages: dict[str, _Page] = {}
        core.screen.middle_tabs.addTab(self.matrix, "Agreement")
        core.screen.middle_tabs.currentChanged.connect(self._look)
        self.measures.chosen.connect(self._show)
        self.scopes.chosen.connect(self._look)
        self.matrix.pair_chosen.connect(self._on_pair)
        annotators.chosen.connect(self._on_chosen)
        review_queue.all_read.connect(self._look)
        core.document.names_changed.connect(self._show)
        core.session.scene_changed.connect(self._look)
        core.session.cleared.connect(self._look)

    def _look(self) -> None:
        """Compare anew what has changed, where somebody looks."""
        if self._screen.middle_tabs.currentWidget() is not self.matrix:
            return
        wanted = self._wanted()
        if self._made_from is not None and _same(wanted, self._made_from):
            return
        self._made_from = wanted
        job = self._jobs.start("Comparing annotators", partial(_compare, wanted), quiet=True)
        self._task.follow(job, self._on_compared)

    def _wanted(self) -> Mapping[int, Known]:
        if self.scopes.mode == "study":
            return self._review_queue.results
        if not self._session.shown:
            return {}
        scene = self._session.scene
        return {scene.image.id: Known(scene.fusion, scene.clicks.annotators)}

    def _on_compared(self, pages: dict[str, _Page]) -> None:
        self._pages = pages
        self._show()

    def _show(self) -> None:
        page, contents = self._pages.get(self.measures.mode), self._document.contents
        numbers = self._document.numbers
        if page is None or not numbers.keys() >= set(page.names):
            self.matrix.set_matrix((), (), np.empty((0, 0)), self.measures.mode)
            self.matrix.header.set_aside("")
            return
        here = [numbers[name] for name in page.names]
        names = [alias(number) for number in here] if contents and contents.hidden else page.names
        self.matrix.set_matrix(names, here, page.values, page.measure, page.words)
        many = len(page.names)
        cut = f"{many} of {page.everybody:,}, the least first" if many < page.everybody else ""
        self.matrix.header.set_aside(cut)

    def _on_pair(self, first: str, second: str) -> None:
        shown = list(self.matrix.figure.names)
        page, contents = self._pages.get(self.measures.mode), self._document.contents
        if page is not None and contents is not None:
            pair = [contents.annotators.index(page.names[shown.index(one)]) for one in (first, second)]
            self._annotators.choose_two(*pair)

    def _on_chosen(self, number: int | None) -> None:
        contents = self._document.contents
        if contents is None or number is None:
            self.matrix.select(None)
        else:
            self.matrix.select(alias(number) if contents.hidden else contents.annotators[number])


def _same(one: Mapping[int, Known], other: Mapping[int, Known]) -> bool:
    return one.keys() == other.keys() and all(one[key].fusion is other[key].fusion for key in one)


def _compare(known: Mapping[int, Known], watch: Watch) -> dict[str, _Page]:
    fused = [(one.fusion.marked, one.annotators) for one in known.values() if one.fusion is not None]
    found = click_agreement([marked for marked, _ in fused], [names for _, names in fused], watch)
    return {"Dice": _page("Dice", found, found.dice), "kappa": _page("kappa", found, found.kappa)}


def _page(measure: str, found: ClickAgreement, values: NDArray[np.float64]) -> _Page:
    standing = found.standing(values)
    order = np.argsort(standing, kind="stable")[:MOST]  # NaN comes last
    block = np.ix_(order, order)
    return _Page(
        measure=measure,
        names=tuple(found.names[row] for row in order.tolist()),
        values=values[block],
        clusters=found.clusters[block],
        images=found.images[block],
        everybody=len(found.names),
    )
