"""Rates over time by the methods of the thesis: recursive EM, incremental Newton, batch EM and MAP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QObject

from raterscope.algorithms.clicks.data import ClicksError
from raterscope.algorithms.clicks.decision_course import (
    METHODS,
    DecisionCourse,
    Decisions,
    Measured,
    follow,
    measure,
)
from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.progress import Watch
from raterscope.app.document import Document
from raterscope.app.jobs import Job
from raterscope.app.study import Study
from raterscope.app.workspaces.labels.scene import Scene
from raterscope.app.workspaces.labels.view import name_of
from raterscope.widgets.plots.decision_plot import CourseLine, DecisionKind, DecisionPlot, DecisionView

__all__ = ["Deciding", "course_of", "decisions_of", "view_of"]

Found = tuple[DecisionCourse, Measured | None] | str

_ROWS = {key: row for row, key in enumerate(METHODS)}
_Z = 1.96


class Deciding(QObject):
    """Follows the decisions of the question on screen while its page is in sight."""

    def __init__(self, document: Document, plot: DecisionPlot, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self._plot = plot
        self._scene: Scene | None = None
        self._wanted = False
        self._blind = False
        self._chosen = -1
        self._asked = 0
        self._job: Job | None = None
        plot.came_in_sight.connect(self.look)
        plot.class_chosen.connect(self._on_class)

    def show(self, scene: Scene | None, *, blind: bool = False) -> None:
        """Take another question, or other votes."""
        self._stop()
        if scene is None or self._scene is None or scene.question.id != self._scene.question.id:
            self._chosen = -1
        self._scene, self._blind, self._wanted = scene, blind, scene is not None
        self._plot.set_view(None)
        self.look()

    def look(self) -> None:
        """Follow the decisions where the page is in sight, once."""
        scene = self._scene
        if scene is None or not self._wanted or not self._plot.isVisible():
            return
        self._wanted = False
        if self._chosen < 0:
            self._chosen = len(scene.labels.classes) - 1
        work = partial(_read, scene.labels, scene.question.id, self._chosen)
        self._job = self._document.read_beside("Following decisions", work, quiet=True)
        self._job.finished.connect(partial(self._on_found, self._asked))

    def _stop(self) -> None:
        self._asked += 1
        if self._job is not None:
            self._job.cancel()
            self._job = None

    def _on_found(self, asked: int, found: Found) -> None:
        scene = self._scene
        if asked != self._asked or scene is None:
            return
        self._job = None
        if isinstance(found, str):
            self._plot.set_view(None, found)
            return
        names = tuple(name_of(scene, one, blind=self._blind) for one in range(len(scene.labels.annotators)))
        self._plot.set_view(view_of(*found, scene.labels.classes, self._chosen, names))

    def _on_class(self, place: int) -> None:
        if place != self._chosen:
            self._stop()
            self._chosen, self._wanted = place, True
            self.look()


def _read(labels: Labels, question: int, chosen: int, study: Study, watch: Watch) -> Found:
    known = study.crowd(question).truth
    truth = np.where(known == OPEN, -1, known == chosen).astype(np.int8)
    return course_of(labels, chosen, truth, watch)


def course_of(labels: Labels, chosen: int, truth: np.ndarray, watch: Watch) -> Found:
    """Follow the decisions whether tasks are of a class; a sentence where that cannot be done."""
    try:
        course = follow(decisions_of(labels, chosen), watch=watch)
    except ClicksError as error:
        return str(error).replace("clusters", "tasks")
    return course, measure(course, truth)


def decisions_of(labels: Labels, chosen: int) -> Decisions:
    """Take every vote as a decision whether its task is of a class, in the order of time."""
    meaning = np.arange(len(labels.outputs)) if labels.meaning is None else labels.meaning
    means = meaning[labels.label]
    order = np.arange(len(labels.task))
    if labels.time is not None:
        order = np.argsort(np.nan_to_num(labels.time, nan=np.inf), kind="stable")
    order = order[means[order] != OPEN]
    return Decisions(
        labels.annotator[order], labels.task[order], means[order] == chosen,
        len(labels.annotators), len(labels.tasks),
    )  # fmt: skip


def view_of(
    course: DecisionCourse,
    found: Measured | None,
    classes: tuple[str, ...],
    chosen: int,
    annotators: tuple[str, ...],
) -> DecisionView:
    """Make what the plot draws."""
    step = "decisions of each annotator" if course.repeated else "annotators"
    kinds = [
        DecisionKind("sensitivity", "Sensitivity", step, "sensitivity", each=True, unit=False),
        DecisionKind("specificity", "Specificity", step, "specificity", each=True, unit=False),
        DecisionKind("prevalence", "Prevalence", step, "prevalence", unit=False),
    ]
    if found is not None:
        kinds += [
            DecisionKind("wrong", "Wrong decisions", step, "share wrong", unit=False),
            DecisionKind("found", "Sensitivity of decisions", step, "sensitivity", unit=False),
            DecisionKind("precision", "Precision of decisions", step, "precision", unit=False),
            *(
                DecisionKind(f"error {at}", f"Error of {name}", step, "error, dB", unit=False)
                for at, name in enumerate(("sensitivity", "specificity", "prevalence"))
            ),
            DecisionKind("roc", "ROC at the end", "false positive rate", "sensitivity"),
        ]
    words = (
        f"{len(course.at):,} decisions of each annotator"
        if course.repeated
        else f"{int(course.at[0]):,} to {int(course.at[-1]):,} annotators"
    )
    return DecisionView(classes, chosen, tuple(kinds), annotators, partial(_lines, course, found), words)


def _lines(course: DecisionCourse, found: Measured | None, key: str, annotator: int) -> Sequence[CourseLine]:
    at = course.at.astype(float)
    if key in ("sensitivity", "specificity"):
        return _rate_lines(course, key, annotator, at)
    if key == "prevalence":
        return [_line(name, at, course.prevalence[row]) for row, name in enumerate(course.estimated)]
    assert found is not None
    if key == "roc":
        return [
            _roc(name, score, found.truth) for name, score in zip(found.methods, found.score, strict=True)
        ]
    if key.startswith("error "):
        with np.errstate(divide="ignore"):
            level = 10 * np.log10(np.maximum(found.error[int(key[-1])], 1e-12))
        return [_line(name, at, level[row]) for row, name in enumerate(course.estimated)]
    values = {"wrong": found.wrong, "found": found.sensitivity, "precision": found.precision}[key]
    return [_line(name, at, values[row]) for row, name in enumerate(found.methods)]


def _rate_lines(course: DecisionCourse, key: str, annotator: int, at: np.ndarray) -> list[CourseLine]:
    rates = course.sensitivity if key == "sensitivity" else course.specificity
    side = 0 if key == "sensitivity" else 1
    low, high = course.low[side], course.high[side]
    if annotator >= 0:
        values, ends = rates[:, :, annotator], (low[:, annotator], high[:, annotator])
    else:
        known = np.isfinite(rates)
        values = np.where(known, rates, 0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
        spread = np.where(np.isfinite(low), (high - low) / (2 * _Z), 0.0)
        half = _Z * np.sqrt((spread**2).sum(axis=1)) / np.maximum(known[0].sum(axis=1), 1)
        ends = np.clip(values[0] - half, 0, 1), np.clip(values[0] + half, 0, 1)
    lines = [_line(name, at, values[row]) for row, name in enumerate(course.estimated)]
    first = lines[0]
    return [CourseLine(first.title, first.method, at, first.down, *ends), *lines[1:]]


def _line(key: str, across: np.ndarray, down: np.ndarray) -> CourseLine:
    return CourseLine(METHODS[key], _ROWS[key], across, down)


def _roc(key: str, score: np.ndarray, truth: np.ndarray) -> CourseLine:
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)
    hits, alarms = np.cumsum(truth[order])[last], np.cumsum(~truth[order])[last]
    return CourseLine(
        METHODS[key], _ROWS[key], np.append(0.0, alarms / alarms[-1]), np.append(0.0, hits / hits[-1])
    )
