"""Communities and annotators in triangles, and participation over time: charts, tables and their files.

Figures 4, 7, 8 and 10 to 13 of the dynamic combination paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.common_tasks import (
    CommonTaskSettings,
    CommunitiesOverTime,
    common_task_communities,
    follow,
)
from raterscope.algorithms.annotators.communities import Communities, CommunitySettings, communities
from raterscope.algorithms.labels import Confusion
from raterscope.algorithms.labels.constancy import Constancy, constancy
from raterscope.algorithms.labels.data import ClassArray, Drift, FloatArray, LabelFusion, Labels
from raterscope.algorithms.labels.drift import confusion_at, row_over_time
from raterscope.algorithms.labels.rates import Rates, estimate_rates
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.output_files import format_number, write_bytes, write_table
from raterscope.app.kinds.labels.runs import Groups, names_of
from raterscope.figures.courses import MIN_ROWS, TernaryChart, TernaryPath, TernaryPoint, share_bars
from raterscope.figures.description import Key
from raterscope.figures.drawing import LINES, Drawable, PaperChart, sheet
from raterscope.figures.layout import Style
from raterscope.text import percent

SHARES = (0.2, 0.4, 0.6, 0.8)
"""Moments before the last, as shares of each annotator's history."""

PARTS = 3
"""Number of moments of common tasks, with equal numbers of votes between them."""

DAY = 86400.0


@dataclass(frozen=True, eq=False)
class CommunityCourse:
    """Communities at several moments."""

    over: CommunitiesOverTime  # communities of the last moment are numbered as in the groups
    titles: Sequence[str]  # (T,): names of the moments: "at 40 %"
    caption: str  # description of the moments: "of each one's votes"
    names: tuple[str, ...]  # by persistent number
    # T arrays, (C_t, J, L): mean of the members' matrices at each moment, weighted by participation
    prototypes: tuple[FloatArray, ...]

    def participation(self, moment: int, annotator: int) -> FloatArray:
        """Return an annotator's share in each lasting community at a moment; zeros without one."""
        at_moment, identity = self.over.moments[moment], self.over.identity[moment]
        shares = np.zeros(self.over.count)
        row = np.flatnonzero(at_moment.members == annotator)
        if len(row):
            shares[identity] = at_moment.participation[row[0]]
        return shares


def why_not_over_time(labels: Labels, fusion: LabelFusion | None, basis: str) -> str:
    """Return why communities cannot be followed over time; empty if they can."""
    if basis == "behaviour":
        if fusion is None or fusion.drift is None:
            return (
                "Changes of behaviour need a dynamic answer: fuse with dynamic IBCC, or group annotators by "
                "common tasks."
            )
    elif labels.time is None:
        return "Common tasks can be followed over time only if votes have times: these have none."
    return ""


def communities_by_tasks(
    labels: Labels, mean: FloatArray, votes: NDArray[np.int64] | None, method: str, watch: Watch = silent
) -> Communities:
    """Group annotators by common tasks, with some of the votes or all."""
    task, annotator = labels.task, labels.annotator
    if votes is not None:
        task, annotator = task[votes], annotator[votes]
    settings = CommonTaskSettings(method=method)
    counts = len(labels.tasks), len(labels.annotators)
    return common_task_communities(task, annotator, *counts, settings, watch, mean)


def follow_communities(
    labels: Labels, fusion: LabelFusion, mean: FloatArray, groups: Groups, watch: Watch = silent
) -> CommunityCourse:
    """Find the communities at earlier moments and match them with the final ones.

    For communities by behaviour, moments are shares of each annotator's own history. For communities by
    common tasks, moments are times, and all votes until then count (dynamic combination paper, sections 9 and
    10).

    `mean`: (K, J, L), expected confusion matrices at the end. `groups`: communities of the last moment.
    """
    last = groups.communities
    if groups.basis == "behaviour":
        moments, titles, caption = _moments_by_behaviour(labels, fusion, last, watch)
    else:
        moments, titles, caption = _moments_by_tasks(labels, fusion, mean, last, watch)
    # Communities by common tasks are matched by their members alone.
    matched = (
        moments
        if groups.basis == "behaviour"
        else [replace(moment, prototype=np.empty((moment.count, 0, 0))) for moment in moments]
    )
    over = _numbered_by_last(replace(follow(matched, len(labels.annotators)), moments=tuple(moments)))
    group_count = len(groups.names)
    names = groups.names + names_of(labels, over.latest()[group_count:], groups.basis, group_count)
    return CommunityCourse(over, titles, caption, names, tuple(moment.prototype for moment in moments))


def _moments_by_behaviour(
    labels: Labels, fusion: LabelFusion, last: Communities, watch: Watch
) -> tuple[list[Communities], list[str], str]:
    settings = CommunitySettings(method=last.method)
    moments: list[Communities] = []
    for share, step in steps_of(watch, SHARES):
        moment_watch = part(step, 0.0, 1.0, f"{percent(share)} of the votes: ")
        mean, votes = _rates_until(labels, fusion, share, moment_watch)
        moments.append(communities(mean, votes, settings, moment_watch, labels.used_classes()))
    titles = [f"{percent(share)} of votes" for share in (*SHARES, 1.0)]
    return [*moments, last], titles, "of each one's votes"


def _rates_until(
    labels: Labels, fusion: LabelFusion, share: float, watch: Watch
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Estimate matrices from a share of each annotator's votes, as `rates_of` does from all."""
    drift = fusion.drift
    assert drift is not None
    vote_counts = np.diff(drift.start)
    count = np.where(vote_counts > 0, np.rint(share * np.maximum(vote_counts - 1, 0)).astype(np.int64) + 1, 0)
    step = np.arange(len(drift.vote)) - np.repeat(drift.start[:-1], vote_counts)
    is_given = np.zeros(len(labels), dtype=bool)
    is_given[drift.vote[step < np.repeat(count, vote_counts)]] = True
    labels_then = replace(labels.subset(is_given), known=fusion.known)
    last = confusion_at(fusion, share=share).counts()
    return estimate_rates(labels_then, fusion.posterior, last=last, watch=watch).mean, count


def _moments_by_tasks(
    labels: Labels, fusion: LabelFusion, mean: FloatArray, last: Communities, watch: Watch
) -> tuple[list[Communities], list[str], str]:
    times = labels.time
    assert times is not None
    has_time = np.isfinite(times)
    ends = np.quantile(times[has_time], [step / PARTS for step in range(1, PARTS + 1)])
    moments: list[Communities] = []
    for step, end in enumerate(ends[:-1].tolist()):
        step_watch = part(
            watch, step / (PARTS - 1), (step + 1) / (PARTS - 1), f"votes {step + 1} of {PARTS}: "
        )
        is_before = has_time & (times <= end)
        mean_then = mean if fusion.drift is None else _mean_then(fusion, is_before)
        moments.append(
            communities_by_tasks(labels, mean_then, np.flatnonzero(is_before), last.method, step_watch)
        )
    write = _date if ends[-1] - ends[0] > DAY else _hour
    titles = [f"until {write(end)}" for end in ends[:-1].tolist()]
    return [*moments, last], [*titles, "after all votes"], "by all votes until then"


def _mean_then(fusion: LabelFusion, is_before: NDArray[np.bool_]) -> FloatArray:
    """Return every annotator's expected confusion matrix after the votes until then."""
    drift, prior = fusion.drift, fusion.confusion.prior
    assert drift is not None
    annotator = np.repeat(np.arange(len(drift.start) - 1), np.diff(drift.start))
    steps = np.flatnonzero(is_before[drift.vote])
    last = np.full(len(drift.start) - 1, -1, dtype=np.int64)
    np.maximum.at(last, annotator[steps], steps)
    alpha = np.broadcast_to(prior, (len(last), *prior.shape)).copy()
    alpha[last >= 0] = drift.alpha[last[last >= 0]]
    return Confusion(alpha, prior).mean()


def _date(seconds: float) -> str:
    return _format_time(seconds, "%Y-%m-%d")


def _hour(seconds: float) -> str:
    return _format_time(seconds, "%H:%M:%S")


def _format_time(seconds: float, form: str) -> str:
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime(form)
    except (ValueError, OverflowError, OSError):  # seconds from another origin than 1970
        return f"{seconds:g} s"


def _numbered_by_last(over: CommunitiesOverTime) -> CommunitiesOverTime:
    """Renumber communities as at the last moment, with dissolved ones after them."""
    final = over.identity[-1]
    dissolved = np.setdiff1d(np.arange(over.count), final)
    number = np.full(max(over.count, 1), -1, dtype=np.int16)
    number[final] = np.arange(len(final))
    number[dissolved] = len(final) + np.arange(len(dissolved))
    events = over.events.copy()
    for column in (2, 3):
        named = events[:, column] >= 0
        events[named, column] = number[events[named, column]]
    return replace(over, identity=tuple(number[identity] for identity in over.identity), events=events)


Charts = list[tuple[str, Drawable]]

COURSE = ("moment", "community", "name", "members")
"""Columns; the entries of the mean matrix follow, named "true: given"."""

PARTICIPATION = ("moment", "annotator", "community", "name", "participation")
TRACES = ("annotator", "vote", "votes_of_all", "true", "given", "probability")

_SMALLEST, _LARGEST = 4.0, 16.0
_BARS = Style(letters=13.0, edge=10.0)
_MARKS, _ROWS = 5, 20
"""Number of steps marked in a triangle, and number of steps written to a table."""
_POINTS = 400
_APART = 0.1
"""Minimum distance of a marker from the last named one to get a name: texts must not overlap."""
_EDGE = LINES[3]
_TRACES = (LINES[0], LINES[2], *LINES[4:])
"""Colours of classes, distinct from those of markers."""


def corners_of(
    outputs: Sequence[str], meaning: ClassArray, true: int, mean: FloatArray
) -> tuple[tuple[str, str, str], NDArray[np.float64]]:
    """Return the corners of a class's triangle, and the share of each output in them, (L, 3).

    With three outputs each is a corner, in their order. Otherwise the corners are the right answer, the most
    frequent wrong answer, and all others together.

    `meaning`: (L,), the class that each output stands for. `mean`: (L,), frequency of each output for the
    class.
    """
    share = np.zeros((len(outputs), 3))
    if len(outputs) == 3:
        return (outputs[0], outputs[1], outputs[2]), np.eye(3)
    right = np.flatnonzero(meaning == true)
    wrong = np.where(meaning == true, -1.0, mean)
    wrong_output = int(wrong.argmax())
    share[:, 1] = 1.0
    share[right] = (1.0, 0.0, 0.0)
    if wrong[wrong_output] >= 0:
        share[wrong_output] = (0.0, 0.0, 1.0)
    names = " or ".join(plain(outputs[at], 20) for at in right.tolist()) or "none is right"
    return (names, "all others", plain(outputs[wrong_output], 20)), share


def community_charts(labels: Labels, prototypes: FloatArray, sizes: Sequence[int]) -> Charts:
    """Draw communities' mean matrices, a triangle per true class; discs grow with the members (Fig. 4).

    `prototypes`: (C, J, L).
    """
    return _triangles(labels, prototypes, sizes, range(len(prototypes)), prototypes.mean(axis=0))


def course_charts(labels: Labels, course: CommunityCourse) -> Charts:
    """Draw the communities at every moment, a row of triangles each (Figs. 11 to 13)."""
    charts: Charts = []
    mean = np.concatenate(course.prototypes).mean(axis=0)
    for at, title in enumerate(course.titles):
        sizes = course.over.moments[at].sizes().tolist()
        numbers = course.over.identity[at].tolist()
        triangles = _triangles(labels, course.prototypes[at], sizes, numbers, mean)
        charts += [(f"{name}, {title}", chart) for name, chart in triangles]
    return charts


def community_keys(names: Sequence[str]) -> list[Key]:
    """Return the legend of communities."""
    return [
        Key(
            name if name.startswith("community ") else f"{number + 1} {plain(name, 60)}", _colour(number),
            symbol="disc", line=False,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip


def class_keys(classes: Sequence[str]) -> list[Key]:
    """Return the legend of the classes of `trace_charts`."""
    keys = [Key(f"true: {plain(name, 60)}", _TRACES[at % len(_TRACES)]) for at, name in enumerate(classes)]
    return [*keys, Key("the same moment, with the votes of all annotators until then", _EDGE)]


def participation_charts(course: CommunityCourse, annotators: Sequence[int], names: Sequence[str]) -> Charts:
    """Draw the participation of some annotators at every moment (Fig. 10)."""
    colours = [_colour(number) for number in range(course.over.count)]
    return [
        (
            plain(names[annotator], 40),
            PaperChart(
                share_bars(
                    np.array(
                        [course.participation(moment, annotator) for moment in range(len(course.titles))]
                    ),
                    course.titles, course.names, inks=colours,
                ),
                420, 34 * max(len(course.titles), MIN_ROWS) + 40, _BARS,
            ),
        )
        for annotator in annotators
    ]  # fmt: skip


def trace_charts(labels: Labels, fusion: LabelFusion, annotators: Sequence[int]) -> Charts:
    """Draw the rows of annotators' matrices over their votes, aligned in time (Figs. 7 and 8).

    Markers join the rows of all classes at the same total number of votes, which stands beside them.
    """
    assert fusion.drift is not None
    assert labels.meaning is not None
    charts: Charts = []
    represented = [at for at in range(len(fusion.classes)) if (labels.meaning == at).any()]
    for annotator in annotators:
        rows = row_over_time(fusion.drift, labels, fusion, annotator).mean
        names, share = corners_of(
            fusion.outputs, labels.meaning, represented[0], rows[:, represented[0]].mean(axis=0)
        )
        several = [represented] if len(fusion.outputs) == 3 else [[at] for at in represented]
        for group in several:
            if len(several) > 1:
                mean = rows[:, group[0]].mean(axis=0)
                names, share = corners_of(fusion.outputs, labels.meaning, group[0], mean)
            chart = _trace(labels, fusion.drift, annotator, rows @ share, group, names)
            title = plain(labels.annotators[annotator], 40)
            if len(several) > 1:
                title += f", true: {plain(fusion.classes[group[0]], 30)}"
            charts.append((title, chart))
    return charts


def aligned_steps(
    labels: Labels, drift: Drift, annotator: int, marks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return evenly spaced steps of an annotator, and the number of all votes until each, both (M,)."""
    return _aligned(_votes_before(labels), drift, annotator, marks)


def _votes_before(labels: Labels) -> NDArray[np.int64]:
    """Count the votes of all annotators before each vote; votes of unknown time come last."""
    position = np.arange(len(labels))
    if labels.time is not None:
        position[np.argsort(labels.time, kind="stable")] = np.arange(len(labels))
    return position


def _aligned(
    position: NDArray[np.int64], drift: Drift, annotator: int, marks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    own_votes = drift.vote[drift.steps(annotator)]
    steps = np.unique(np.linspace(0, len(own_votes) - 1, min(marks, len(own_votes))).astype(np.int64))
    return steps, position[own_votes[steps]] + 1


def most_changed(constancy: Constancy | None, drift: Drift, limit: int) -> list[int]:
    """Choose annotators to draw: those who changed, otherwise all, by number of votes."""
    vote_counts = np.diff(drift.start)
    among = np.arange(len(vote_counts)) if constancy is None else np.sort(constancy.changed())
    if not len(among):
        among = np.arange(len(vote_counts))
    return [
        int(at) for at in among[np.argsort(-vote_counts[among], kind="stable")][:limit] if vote_counts[at]
    ]


def course_rows(course: CommunityCourse) -> Iterator[tuple[object, ...]]:
    """Return the rows of the table of communities over time."""
    for at, title in enumerate(course.titles):
        sizes = course.over.moments[at].sizes().tolist()
        for row, number in enumerate(course.over.identity[at].tolist()):
            matrix = course.prototypes[at][row].ravel().tolist()
            yield (title, number + 1, course.names[number], sizes[row], *map(format_number, matrix))


def participation_rows(course: CommunityCourse, names: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Return the rows of the table of participation over time; shares of 0 are omitted."""
    for at, title in enumerate(course.titles):
        communities, identity = course.over.moments[at], course.over.identity[at].tolist()
        for row, annotator in enumerate(communities.members.tolist()):
            for column, number in enumerate(identity):
                share = float(communities.participation[row, column])
                if share >= 0.0005:
                    yield (title, names[annotator], number + 1, course.names[number], f"{share:.4g}")


def trace_rows(labels: Labels, fusion: LabelFusion) -> Iterator[tuple[object, ...]]:
    """Return the rows of the table of traces: all annotators' matrices at common moments."""
    drift = fusion.drift
    assert drift is not None
    position = _votes_before(labels)
    for annotator in np.flatnonzero(np.diff(drift.start)).tolist():
        steps, votes = _aligned(position, drift, annotator, _ROWS)
        alpha = drift.alpha[drift.steps(annotator)][steps].astype(np.float64)
        rows = alpha / alpha.sum(axis=2, keepdims=True)
        for at, (step, vote) in enumerate(zip(steps.tolist(), votes.tolist(), strict=True)):
            for true, name in enumerate(fusion.classes):
                for output_index, output in enumerate(fusion.outputs):
                    probability = format_number(float(rows[at, true, output_index]))
                    yield (labels.annotators[annotator], step + 1, vote, name, output, probability)


def _triangles(
    labels: Labels, prototypes: FloatArray, sizes: Sequence[int], numbers: Sequence[int], mean: FloatArray
) -> Charts:
    assert labels.meaning is not None
    largest = max(sizes, default=1)
    charts: Charts = []
    for true, name in enumerate(labels.classes):
        if not (labels.meaning == true).any():
            continue
        corners, share = corners_of(labels.outputs, labels.meaning, true, mean[true])
        points = [
            TernaryPoint(
                prototype[true] @ share,
                _colour(number),
                _SMALLEST + (_LARGEST - _SMALLEST) * (size / largest) ** 0.5,
                str(number + 1),
            )
            for prototype, size, number in zip(prototypes, sizes, numbers, strict=True)
        ]
        charts.append((f"True: {plain(name, 40)}", TernaryChart(corners, points)))
    return charts


def _trace(
    labels: Labels,
    drift: Drift,
    annotator: int,
    shares: FloatArray,
    classes: Sequence[int],
    corners: tuple[str, str, str],
) -> TernaryChart:
    points_kept = np.unique(np.linspace(0, len(shares) - 1, min(len(shares), _POINTS)).astype(np.int64))
    paths = [TernaryPath(shares[points_kept, true], _TRACES[true % len(_TRACES)]) for true in classes]
    points = []
    steps, votes = aligned_steps(labels, drift, annotator, _MARKS)
    labelled = np.full(3, np.inf)
    for step, vote in zip(steps.tolist(), votes.tolist(), strict=True):
        share = shares[step, classes[0]]
        apart = bool(np.abs(share - labelled).sum() > _APART)
        labelled = share if apart else labelled
        if len(classes) > 1:
            paths.append(TernaryPath(shares[step, classes], _EDGE, 1.0))
        points += [
            TernaryPoint(shares[step, true], _EDGE, 3.5, f"{vote:,}" if apart and true == classes[0] else "")
            for true in classes
        ]
    points += [TernaryPoint(shares[-1, true], _TRACES[true % len(_TRACES)], 6.0) for true in classes]
    return TernaryChart(corners, points, paths)


def _colour(number: int) -> str:
    return LINES[number % len(LINES)]


_MAX_ANNOTATORS = 6

CHART_FILES = (
    "communities.svg",
    *(f"{name}.{form}" for name in ("communities_over_time", "participation", "traces")
      for form in ("csv", "svg")),
)  # fmt: skip
"""File names of `write_all`."""


@dataclass(frozen=True, eq=False)
class GroupedAnswer:
    """An answer with its communities."""

    labels: Labels
    fusion: LabelFusion
    rates: Rates
    groups: Groups | None
    watch: Watch = silent  # reports the search for communities at earlier moments

    def obstacle(self, chart: str) -> str:
        """Return why an export is not available; empty if it is."""
        if chart == "traces":
            dynamic = self.fusion.drift is not None
            return "" if dynamic else "traces need dynamic IBCC; fuse with --algorithm dynibcc"
        if self.groups is None:
            return "contains no communities"
        return (
            "" if chart == "communities" else why_not_over_time(self.labels, self.fusion, self.groups.basis)
        )

    @cached_property
    def course(self) -> CommunityCourse:
        """The communities over time."""
        assert self.groups is not None
        return follow_communities(self.labels, self.fusion, self.rates.mean, self.groups, self.watch)

    def choose_annotators(self) -> list[int]:
        """Choose the annotators to draw."""
        drift = self.fusion.drift
        if drift is None:
            votes = self.labels.votes_of_annotators()
            return [int(at) for at in (-votes).argsort(kind="stable")[:_MAX_ANNOTATORS]]
        return most_changed(constancy(self.labels, self.fusion), drift, _MAX_ANNOTATORS)

    def charts(self, chart: str) -> tuple[Charts, Sequence[Key]]:
        """Draw an export, with its legend."""
        labels, groups = self.labels, self.groups
        if chart == "traces":
            return trace_charts(labels, self.fusion, self.choose_annotators()), class_keys(
                self.fusion.classes
            )
        assert groups is not None
        if chart == "communities":
            sizes = groups.communities.sizes().tolist()
            charts = community_charts(labels, groups.communities.prototype, sizes)
            return charts, community_keys(groups.names)
        keys = community_keys(self.course.names)
        if chart == "participation":
            return participation_charts(self.course, self.choose_annotators(), labels.annotators), keys
        return course_charts(labels, self.course), keys

    def write(self, chart: str, path: Path, form: str) -> Path:
        """Write an export as "svg" or "csv". Raises `InputError` if it is not available."""
        reason = self.obstacle(chart)
        if reason:
            raise InputError(reason)
        if form == "svg":
            charts, keys = self.charts(chart)
            return write_bytes(path, sheet(charts, keys))
        entries = [f"{true}: {output}" for true in self.fusion.classes for output in self.fusion.outputs]
        tables: dict[str, tuple[Sequence[str], Callable[[], Iterable[Sequence[object]]]]] = {
            "communities-over-time": ((*COURSE, *entries), lambda: course_rows(self.course)),
            "participation": (
                PARTICIPATION, lambda: participation_rows(self.course, self.labels.annotators)
            ),
            "traces": (TRACES, lambda: trace_rows(self.labels, self.fusion)),
        }  # fmt: skip
        columns, rows = tables[chart]
        return write_table(path, columns, rows())


def write_all(folder: Path, answer: GroupedAnswer) -> list[Path]:
    """Write the available ones of `CHART_FILES`."""
    files = []
    for name in CHART_FILES:
        path = folder / name
        chart = path.stem.replace("_", "-")
        if not answer.obstacle(chart):
            files.append(answer.write(chart, path, path.suffix[1:]))
    return files
