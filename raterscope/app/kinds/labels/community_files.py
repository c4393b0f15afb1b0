"""Files of communities and traces: which there can be of an answer, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from raterscope.algorithms.labels.data import LabelFusion, Labels
from raterscope.algorithms.labels.drift import constancy
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import write_table, write_whole
from raterscope.app.kinds.labels.answers import Groups
from raterscope.app.kinds.labels.community_charts import (
    COURSE,
    PARTICIPATION,
    TRACES,
    class_keys,
    community_charts,
    community_keys,
    course_charts,
    course_rows,
    most_changed,
    participation_charts,
    participation_rows,
    trace_charts,
    trace_rows,
)
from raterscope.app.kinds.labels.community_course import CommunityCourse, follow_communities, obstacle
from raterscope.figures.description import Key
from raterscope.figures.sheet import Drawable, sheet

_MOST_ANNOTATORS = 6

Charts = Sequence[tuple[str, Drawable]]

WHAT = ("communities", "communities-over-time", "participation", "traces")

CHART_FILES = (
    "communities.svg",
    *(f"{name}.{form}" for name in ("communities_over_time", "participation", "traces")
      for form in ("csv", "svg")),
)  # fmt: skip
"""What `write_all` writes, where it can."""


@dataclass(frozen=True, eq=False)
class GroupedAnswer:
    """An answer with its communities.

    Attributes
    ----------
    labels : Labels
    fusion : LabelFusion
    rates : Rates
    groups : Groups or None
    watch : Watch
        Of the search for communities of earlier moments.
    """

    labels: Labels
    fusion: LabelFusion
    rates: Rates
    groups: Groups | None
    watch: Watch = silent

    def obstacle(self, what: str) -> str:
        """Say why something of `WHAT` cannot be shown; nothing where it can."""
        if what == "traces":
            dynamic = self.fusion.drift is not None
            return "" if dynamic else "traces are those of dynamic IBCC; fuse with --algorithm dynibcc"
        if self.groups is None:
            return "holds no communities"
        return "" if what == "communities" else obstacle(self.labels, self.fusion, self.groups.basis)

    @cached_property
    def course(self) -> CommunityCourse:
        """The communities over time."""
        assert self.groups is not None
        return follow_communities(self.labels, self.fusion, self.rates.mean, self.groups, self.watch)

    def drawn(self) -> list[int]:
        """Choose the annotators who are drawn."""
        drift = self.fusion.drift
        if drift is None:
            votes = self.labels.votes_of_annotators()
            return [int(at) for at in (-votes).argsort(kind="stable")[:_MOST_ANNOTATORS]]
        return most_changed(constancy(self.labels, self.fusion), drift, _MOST_ANNOTATORS)

    def charts(self, what: str) -> tuple[Charts, Sequence[Key]]:
        """Draw something of `WHAT`, with its legend."""
        labels, groups = self.labels, self.groups
        if what == "traces":
            return trace_charts(labels, self.fusion, self.drawn()), class_keys(self.fusion.classes)
        assert groups is not None
        if what == "communities":
            sizes = groups.found.sizes().tolist()
            charts = community_charts(labels, groups.found.prototype, sizes)
            return charts, community_keys(groups.names)
        keys = community_keys(self.course.names)
        if what == "participation":
            return participation_charts(self.course, self.drawn(), labels.annotators), keys
        return course_charts(labels, self.course), keys

    def write(self, what: str, path: Path, form: str) -> Path:
        """Write something of `WHAT` as "svg" or "csv".

        Raises
        ------
        InputError
            When there is nothing of it, or it cannot be written.
        """
        reason = self.obstacle(what)
        if reason:
            raise InputError(reason)
        if form == "svg":
            charts, keys = self.charts(what)
            return write_whole(path, sheet(charts, keys))
        entries = [f"{true}: {given}" for true in self.fusion.classes for given in self.fusion.outputs]
        tables: dict[str, tuple[Sequence[str], Callable[[], Iterable[Sequence[object]]]]] = {
            "communities-over-time": ((*COURSE, *entries), lambda: course_rows(self.course)),
            "participation": (
                PARTICIPATION, lambda: participation_rows(self.course, self.labels.annotators)
            ),
            "traces": (TRACES, lambda: trace_rows(self.labels, self.fusion)),
        }  # fmt: skip
        columns, rows = tables[what]
        return write_table(path, columns, rows())


def write_all(folder: Path, answer: GroupedAnswer, watch: Watch = silent) -> list[Path]:
    """Write those of `CHART_FILES` that the answer has."""
    written = []
    for at, name in enumerate(CHART_FILES):
        part(watch, at / len(CHART_FILES), 1.0)(0.0, f"writing {name}")
        path = folder / name
        what = path.stem.replace("_", "-")
        if not answer.obstacle(what):
            written.append(answer.write(what, path, path.suffix[1:]))
    return written
