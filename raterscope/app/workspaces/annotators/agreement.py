"""Panels of the agreement of annotators: Bland-Altman plots, and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QTabWidget

from raterscope.algorithms.progress import Watch, part
from raterscope.app.annotator_evidence import Agreement, Measurements
from raterscope.app.document import Document
from raterscope.app.kinds.registry import KINDS
from raterscope.app.session import LatestTask
from raterscope.app.study import Study
from raterscope.figures.evaluation import bland_altman_chart, forest_chart
from raterscope.widgets.figures.chart_figure import ChartChoice, ChartPanel

SELECT_TWO = "Select two annotators in the table (Ctrl+click) to compare what they measured."
TOO_FEW = "These two have not measured three cases in common: volumes of masks or counts of clicks."
NO_ALPHA = (
    "Krippendorff's alpha needs two annotators or more on the same spots, voxels, tasks or pairs of items. "
    "Spots need a fusion of clicks."
)
_LEAST_CASES = 3


class AgreementPlots(QObject):
    """The two plots for the selected annotators, filled while they are visible.

    `tabs`: gets a tab for each plot. `names`: returns all names of each selected annotator, the main name
    first. `shown`: returns a name as it is shown.
    """

    def __init__(
        self,
        document: Document,
        tabs: QTabWidget,
        names: Callable[[], Sequence[Sequence[str]]],
        shown: Callable[[str], str],
    ) -> None:
        super().__init__(tabs)
        self._document, self._tabs, self._names, self._shown = document, tabs, names, shown
        self.bland_altman = ChartChoice("Bland-Altman", SELECT_TWO, "Quantity to compare")
        self.alpha = ChartPanel("Krippendorff's alpha", NO_ALPHA)
        tabs.addTab(self.bland_altman, "Bland-Altman")
        tabs.addTab(self.alpha, "Alpha")
        self._measuring, self._comparing = LatestTask(), LatestTask()
        self._measured: Sequence[Measurements] | None = None
        self._compared: tuple[Any, ...] | None = None
        tabs.currentChanged.connect(self.update)

    def forget(self) -> None:
        """Drop what was measured: annotations or decisions changed."""
        self._measuring.cancel()
        self._comparing.cancel()
        self._measured = self._compared = None

    def update(self) -> None:
        """Measure and compare, as far as a plot is visible."""
        if self._document.contents is None:
            return
        current = self._tabs.currentWidget()
        if current is self.bland_altman:
            self._compare_two()
        elif current is self.alpha:
            self._compare_votes()

    def _compare_two(self) -> None:
        names = self._names()
        if len(names) != 2:
            self.bland_altman.show_charts((), (), SELECT_TWO)
        elif self._measured is None:
            if not self._measuring.busy:
                self.bland_altman.show_charts((), (), "Measuring volumes and counts.")
                job = self._document.read_beside("Measuring observer variability", _measure, quiet=True)
                self._measuring.follow(job, self._on_measured, failed=self._on_failed)
        else:
            first, second = (own[0] for own in names)
            charts, titles = [], []
            for measured in self._measured:
                own, other = measured.values.get(first, {}), measured.values.get(second, {})
                common = sorted(own.keys() & other.keys())
                if len(common) >= _LEAST_CASES:
                    a, b = ([of[case] for case in common] for of in (own, other))
                    both = self._shown(first), self._shown(second)
                    charts.append(bland_altman_chart(a, b, both, measured.quantity, measured.unit))
                    titles.append(measured.quantity)
            self.bland_altman.show_charts(charts, titles, TOO_FEW)

    def _on_failed(self, sentence: str) -> None:
        self.bland_altman.show_charts((), (), f"Volumes and counts cannot be measured: {sentence}")

    def _on_measured(self, measured: Sequence[Measurements]) -> None:
        self._measured = measured
        self.update()

    def _compare_votes(self) -> None:
        selected = self._names()
        names = tuple(name for own in selected for name in own) if len(selected) > 1 else ()
        if names == self._compared:
            return
        self._compared = names
        words = f"{len(selected):,} selected annotators" if names else "all annotators"
        job = self._document.read_beside("Measuring agreement", partial(_compare, names), quiet=True)
        self._comparing.follow(job, partial(self._on_compared, words))

    def _on_compared(self, words: str, agreements: Sequence[Agreement]) -> None:
        known = [each for each in agreements if np.isfinite(each.alpha.value)]
        units = ", ".join(f"{each.name} {each.units}" for each in known)
        title = f"Krippendorff's alpha of {words}: {units}"
        names, alphas = [each.name for each in known], [each.alpha for each in known]
        self.alpha.set_chart(forest_chart(names, alphas, title, 0.0) if known else None)


def _measure(study: Study, watch: Watch) -> Sequence[Measurements]:
    measured: list[Measurements] = []
    kinds = [kind for kind in KINDS.values() if kind.load_annotators is not None and kind.items(study)]
    for done, kind in enumerate(kinds):
        assert kind.load_annotators is not None
        step = part(watch, done / len(kinds), (done + 1) / len(kinds))
        measured += kind.load_annotators().measurements(study, step)
    return measured


def _compare(names: Sequence[str], study: Study, watch: Watch) -> Sequence[Agreement]:
    agreements: list[Agreement] = []
    for kind in KINDS.values():
        if kind.load_annotators is not None and kind.items(study):
            agreements += kind.load_annotators().agreement(study, names, watch)
    return agreements
