"""Observer variability in reports and exports: statistics, tables and charts of readers, protocols of limits.

Every kind yields statistics. They become the rows of an export, the cells of a report, and are compared with
the limits of a protocol, a TOML file such as::

    tolerance = 2.0          # mm, of the surface Dice

    [limits]
    dice = 0.8               # at least
    hausdorff_95 = 5.0       # at most
    "ICC(2,1)" = 0.75
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.agreement_statistics import REPEATABILITY, Coefficient
from raterscope.algorithms.annotators.names import reads_of, split_read
from raterscope.algorithms.annotators.reader_study import ReaderComparison, ReaderVariance
from raterscope.app.errors import InputError, plain, system_reason
from raterscope.app.formats.output_files import format_number
from raterscope.app.page.contents import NONE, Cell, Picture, Table, draw_paper, named, p_value
from raterscope.figures.drawing import PaperChart
from raterscope.figures.evaluation import bland_altman_chart, forest_chart
from raterscope.text import estimate

COLUMNS = ("structure", "statistic", "first", "second", "value", "low", "high", "unit", "cases", "raters")
"""Columns of an export of variability."""

ICC = {
    "one_way": "ICC(1,1)", "absolute": "ICC(2,1)", "consistency": "ICC(3,1)",
    "one_way_mean": "ICC(1,k)", "absolute_mean": "ICC(2,k)", "consistency_mean": "ICC(3,k)",
}  # fmt: skip

Value = TypeVar("Value")

Measurements = Mapping[str, Mapping[int, float]]
"""Measurements of each annotator, by the number of the case."""

ANY_READER, ANOTHER, THE_SAME, THE_OTHERS = "any reader", "another reader", "the same reader", "the others"
_ANYBODY = {"", ANY_READER, ANOTHER, THE_SAME, THE_OTHERS}

_MAX_BYTES = 1 << 20
_MAX_PLOTS = 6
_MIN_POINTS = 3
_ROW_HEIGHT, _FOREST_HEIGHT = 46, 110

AT_LEAST = {
    "dice": "Dice", "surface_dice": "surface Dice", "conformity": "conformity index",
    "ICC(1,1)": "ICC(1,1)", "ICC(2,1)": "ICC(2,1)", "ICC(3,1)": "ICC(3,1)", "ICC(2,k)": "ICC(2,k)",
    "concordance": "concordance correlation", "detection_agreement": "detection agreement",
    "agreement": "agreement", "kappa": "Cohen's kappa", "fleiss": "Fleiss' kappa",
    "alpha": "Krippendorff's alpha",
    "consistency": "consistency of repeated comparisons",
    "swapped_consistency": "consistency of swapped comparisons",
}  # fmt: skip
"""Statistics with a lower limit in a protocol: name in the file, and in words."""

AT_MOST = {
    "mean_surface_distance": "mean surface distance", "hausdorff_95": "HD95",
    "added_path_length": "added path length", "centroid_shift": "centroid shift",
    "coefficient_of_variation": "coefficient of variation",
    "repeatability": "repeatability coefficient", "bias": "bias",
}  # fmt: skip
"""Statistics with an upper limit in a protocol; a bias counts by its absolute value."""


READERS = (
    "Readers are compared with each other by their first reads. Bias is the mean difference from the other "
    "readers of the same case, tested by Wilcoxon's signed-rank test ([@wilcoxon1945]) and adjusted for the "
    "number of readers ([@holm1979]). Variance is divided by a linear mixed model with crossed random "
    "effects of cases and readers, fitted by restricted maximum likelihood ([@patterson1971]); intervals of "
    "its terms by [@satterthwaite1946]. Limits of agreement and repeatability coefficient: [@bland1999]. "
    "Intraclass correlations: [@shrout1979], [@mcgraw1996], with generalized intervals of ICC(2,.) "
    "([@ionan2014])."
)
ANSWERS = (
    "Each answer is compared with the one that the same annotator gave before. Intervals of shares: "
    "[@wilson1927]. Cohen's kappa: [@cohen1960], with a bootstrap interval."
)
"""Texts of the methods section: of readers who measure the same cases, and of repeated answers."""


@dataclass(frozen=True)
class Statistic:
    """One statistic of variability."""

    subject: str  # structure or question; empty for clicks
    key: str  # key of `AT_LEAST` or `AT_MOST`, or a name
    value: Coefficient
    unit: str = ""
    # first, second: the compared annotators; empty for a statistic of all
    first: str = ""
    second: str = ""
    # cases, raters: numbers of cases and raters
    cases: int = 0
    raters: int = 2
    # whether it belongs to one of several pairs of annotators; protocols do not apply to these
    single: bool = False

    @property
    def title(self) -> str:
        """Name in words."""
        return AT_LEAST.get(self.key) or AT_MOST.get(self.key) or self.key

    def row(self) -> tuple[object, ...]:
        """Return its row in an export."""
        figures = map(format_number, (self.value.value, self.value.low, self.value.high))
        names = self.subject, self.title, self.first, self.second
        return (*names, *figures, self.unit, self.cases, self.raters)


def statistic_rows(
    statistics: Iterable[Statistic], pseudonyms: Mapping[str, str] | None = None
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of an export; with pseudonyms, without the annotators' names."""
    for statistic in statistics:
        row = statistic.row()
        if pseudonyms is not None:
            names = (name if name in _ANYBODY else pseudonyms.get(str(name), "") for name in row[2:4])
            row = (*row[:2], *names, *row[4:])
        yield row


@dataclass(frozen=True)
class Protocol:
    """Limits for the variability of a reader study."""

    tolerance: float | None = None  # mm, of the surface Dice
    limits: Mapping[str, float] = field(default_factory=dict)  # by key


def read_protocol(path: Path) -> Protocol:
    """Read a protocol of limits; raises `InputError` for any other file."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InputError("is too long for a protocol", file=path)
        content = tomllib.loads(data.decode())
    except OSError as error:
        raise InputError(f"cannot be read: {system_reason(error)}", file=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not TOML: {plain(str(error), 120)}", file=path) from error
    limits = content.pop("limits", {})
    tolerance = content.pop("tolerance", None)
    if content:
        name = plain(next(iter(content)), 40)
        raise InputError(f"has the unknown field {name}; expected tolerance and [limits]", file=path)
    if not isinstance(limits, dict):
        raise InputError("has limits that are no table; expected [limits]", file=path)
    for name, value in {"tolerance": tolerance, **limits}.items():
        if name != "tolerance" and name not in AT_LEAST and name not in AT_MOST:
            known = ", ".join((*AT_LEAST, *AT_MOST))
            raise InputError(f"has the unknown limit {plain(name, 40)}; expected some of {known}", file=path)
        wrong = isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf
        if value is not None and wrong:
            raise InputError(f"{name} is {plain(value, 40)}; expected a number from 0", file=path)
    return Protocol(tolerance, {name: float(value) for name, value in limits.items()})


def protocol_table(protocol: Protocol, statistics: Sequence[Statistic]) -> Table | None:
    """Compare statistics with the limits of a protocol; None without such limits.

    Statistics of single pairs of readers are not compared.
    """
    rows: list[tuple[Cell | str, ...]] = []
    for statistic in statistics:
        limit = protocol.limits.get(statistic.key)
        if limit is None or statistic.single or not math.isfinite(statistic.value.value):
            continue
        names = dict.fromkeys(filter(None, (statistic.first, statistic.second)))
        pair = versus(names)
        at_least = statistic.key in AT_LEAST
        unit = f" {statistic.unit}" if statistic.unit else ""
        rows.append(
            (
                statistic.title[:1].upper() + statistic.title[1:] + (f", {pair}" if pair else ""),
                write(statistic.value) + unit,
                f"{'at least' if at_least else 'at most'} {limit:g}{unit}",
                verdict(statistic, limit),
            )
        )
    if not rows:
        return None
    note = (
        "Pass: the whole 95 % interval is within the limit. Fail: the whole interval is beyond it. "
        "Undecided: the interval contains it, and more cases are needed. Without an interval the value alone "
        "counts."
    )
    return Table(
        "Limits of the protocol", ("Statistic", "Value", "Limit", "Result"), rows, note, frozenset({3})
    )


def verdict(statistic: Statistic, limit: float) -> str:
    """Return "pass", "fail" or "undecided"."""
    value = statistic.value
    low, high = (value.low, value.high) if math.isfinite(value.low) else (value.value, value.value)
    if statistic.key == "bias":
        low, high = (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
    if statistic.key in AT_LEAST:
        low, high, limit = -high, -low, -limit
    return "pass" if high <= limit else "fail" if low > limit else "undecided"


def versus(pair: Iterable[str]) -> str:
    """Name two compared annotators."""
    return " \N{MINUS SIGN} ".join(map(named, pair))


def write(coefficient: Coefficient) -> str:
    """Write a value with its interval."""
    return estimate(coefficient.value, coefficient.low, coefficient.high)


def reader_statistics(subject: str, unit: str, comparison: ReaderComparison) -> Iterator[Statistic]:
    """Yield bias and repeatability of each reader, and the components of the variance."""
    for reader in comparison.readers:
        yield Statistic(subject, "bias", reader.bias, unit, reader.name, THE_OTHERS, reader.cases)
        if reader.repeated:
            yield Statistic(
                subject, "repeatability", reader.repeatability, unit, reader.name, reader.name,
                reader.repeated, 1,
            )  # fmt: skip
            yield Statistic(
                subject, "ICC(2,1)", reader.consistency, "", reader.name, reader.name, reader.repeated, 1
            )
    variance = comparison.variance
    cases, readers = variance.cases, variance.readers
    if variance.repeated:
        yield Statistic(subject, "repeatability", comparison.repeatability, unit, cases=cases, raters=readers)
    for name, term in _terms(variance).items():
        yield Statistic(subject, f"deviation {name}", term, unit, cases=cases, raters=readers)


def readers_table(comparison: ReaderComparison, quantity: str, unit: str) -> Table:
    """Show each reader's bias with its test, and repeatability if any reader read a case twice."""
    variance = comparison.variance
    heads = ["Reader", "Cases", "Bias", "p, adjusted"]
    if variance.repeated:
        heads += ["Read twice", "Repeatability", "ICC of reads"]
    rows = []
    for reader in comparison.readers:
        row = [named(reader.name), f"{reader.cases:,}", write(reader.bias), p_value(reader.adjusted)]
        repeats = [f"{reader.repeated:,}", write(reader.repeatability), write(reader.consistency)]
        if variance.repeated:
            row += repeats if reader.repeated else [NONE] * len(repeats)
        rows.append(row)
    parts = ", ".join(
        f"{name} {write(term)}" for name, term in _terms(variance).items() if math.isfinite(term.value)
    )
    of_unit = f", {unit}" if unit else ""
    note = (
        f"{quantity}{of_unit}. Bias: mean difference from the other readers of the same case; p by "
        "Wilcoxon's signed-rank test, adjusted for the number of readers by Holm. Mixed model (REML), "
        f"standard deviations: {parts}. 95 % of the differences between two readers are below "
        f"{REPEATABILITY * variance.reproducibility:.3g}."
    )
    if variance.repeated:
        note += (
            " Repeatability coefficient: 95 % of the differences between two reads of a reader are smaller; "
            f"of all readers {write(comparison.repeatability)}."
        )
    return Table("Readers", heads, rows, note)


def bias_picture(comparison: ReaderComparison, quantity: str, unit: str) -> Picture:
    """Draw a forest plot of the readers' bias."""
    label = f"bias{f', {unit}' if unit else ''}"
    values = [reader.bias for reader in comparison.readers]
    names = [plain(reader.name, 40) for reader in comparison.readers]
    return forest_picture(names, values, label, f"{quantity}: bias of each reader", 0.0)


def forest_picture(
    names: Sequence[str],
    values: Sequence[Coefficient],
    label: str,
    title: str,
    reference: float | None = None,
) -> Picture:
    """Draw a forest plot."""
    height = _FOREST_HEIGHT + _ROW_HEIGHT * len(names)
    text = "Squares: estimates; lines: 95 % intervals."
    return draw_paper(PaperChart(forest_chart(names, values, label, reference), height=height), title, text)


def bland_altman_pictures(measurements: Measurements, quantity: str, unit: str) -> list[Picture]:
    """Draw Bland-Altman plots: the reads of each reader, then pairs of readers on their first reads."""
    pictures: list[Picture] = []
    for first, second in compared_pairs(measurements):
        common = sorted(set(measurements[first]) & set(measurements[second]))
        if len(common) < _MIN_POINTS or len(pictures) == _MAX_PLOTS:
            continue
        a, b = ([measurements[name][case] for case in common] for name in (first, second))
        if not np.ptp(np.subtract(a, b)):
            continue
        names = plain(first, 30), plain(second, 30)
        chart = bland_altman_chart(a, b, names, quantity, unit)
        text = "Line: bias; dashed: limits of agreement; bands: their 95 % intervals."
        pictures.append(draw_paper(PaperChart(chart), chart.title, text))
    return pictures


def compared_pairs(names: Mapping[str, object] | Sequence[str]) -> list[tuple[str, str]]:
    """List the pairs to compare: successive reads of each reader, then first reads of two readers."""
    ordered = [list(reads.values()) for reads in reads_of(names).values()]
    own = [(reads[at + 1], reads[at]) for reads in ordered for at in range(len(reads) - 1)]
    return own + list(combinations((reads[0] for reads in ordered), 2))


def is_intra(first: str, second: str) -> bool:
    """Return whether two annotators are reads of the same reader."""
    return split_read(first)[0] == split_read(second)[0]


def first_reads(measurements: Mapping[str, Value]) -> dict[str, Value]:
    """Keep each reader's first read."""
    least: dict[str, int] = {}
    for name in measurements:
        person, read = split_read(name)
        least[person] = min(read, least.get(person, read))
    return {
        name: values
        for name, values in measurements.items()
        if split_read(name)[1] == least[split_read(name)[0]]
    }


def last_answers(
    names: Sequence[str], annotator: NDArray[np.integer], unit: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return the rows of each reader's last answer on each unit, in the first read, sorted by unit.

    `names`: (K,), of the annotators. `annotator`, `unit`: (N,), of each answer.
    """
    kept = set(first_reads(dict.fromkeys(names)))
    rows = np.flatnonzero(np.array([name in kept for name in names], dtype=bool)[annotator])
    key = unit[rows].astype(np.int64) * len(names) + annotator[rows]
    _, from_end = np.unique(key[::-1], return_index=True)
    return rows[len(key) - 1 - from_end]


def _terms(variance: ReaderVariance) -> dict[str, Coefficient]:
    terms = {"between cases": variance.case, "between readers": variance.reader}
    if variance.repeated:
        return terms | {
            "of a reader on a case": variance.interaction,
            "between reads": variance.error,
        }
    return terms | {"left over": variance.error}


def complete_table(measurements: Measurements) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Choose raters, the busiest first, with the most measurements on cases that all of them measured."""
    busiest = sorted(measurements, key=lambda name: -len(measurements[name]))
    best: tuple[tuple[str, ...], list[int]] = ((), [])
    for count in range(2, len(busiest) + 1):
        names = busiest[:count]
        common = sorted(set.intersection(*(set(measurements[name]) for name in names)))
        if len(common) >= 2 and len(common) * count > len(best[0]) * len(best[1]):
            best = (tuple(names), common)
    order = tuple(name for name in measurements if name in best[0])
    return order, np.array(
        [[measurements[name][case] for name in order] for case in best[1]], dtype=np.float64
    )


def person_of(name: str) -> str:
    """Return the reader's name, without the read, of an annotator."""
    return split_read(name)[0]
