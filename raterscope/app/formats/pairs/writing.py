"""Export of pairs: tables of annotators, ranking, comparisons and regularisation path."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.pairs.data import BEHAVIOURS, FloatArray, PairFusion, Pairs
from raterscope.algorithms.pairs.ranking import ranks
from raterscope.algorithms.pairs.wins import MAX_COMPARED, count_wins
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.output_files import escape_formula, open_text_output, write_table

ANNOTATORS = (
    "annotator", "left", "right", "ties", "bias", "statistic", "entered", "flagged", "behaviour",
    "bias_low", "bias_high", "p_value", "share", "match",
    "q_value", "detectable_bias", "decidable", "rule", "match_original",
)  # fmt: skip
RANKING = (
    "item", "score", "rank", "score_corrected", "rank_corrected",
    "score_low", "score_high", "score_corrected_low", "score_corrected_high", "component",
    "rank_low", "rank_high",
)  # fmt: skip
WINS = ("item", "other", "won", "lost", "tied", "share", "share_low", "share_high")
PAIRS = ("annotator", "left", "right", "choice", "time")
TASK = "question_id"
PATH = "at"

_ROWS = 1 << 14
_SIDES = {1.0: "left", -1.0: "right", 0.0: "tie"}


def write_annotators(
    path: Path,
    annotators: Sequence[str],
    fusion: PairFusion,
    shares: FloatArray | None = None,
    match_original: FloatArray | None = None,
) -> Path:
    """Write one row per annotator: answers, bias with interval, evidence, flag, behaviour, detectable bias.

    Raises `InputError` if it cannot be written.

    `fusion`: its statistic is the median of W over the draws, or -log10 of the p value of the flip test.
    Values of untested annotators are empty, and so is the behaviour of annotators without answers, such as
    excluded ones. `shares`: (p,), share of the draws that select each annotator; empty if not given.
    `match_original`: (p,), share of the answers that agree with the ranking of all answers; empty if not
    given.
    """
    columns = annotator_columns(annotators, fusion, shares, match_original)
    return write_table(path, ANNOTATORS, zip(*columns, strict=True))


def annotator_columns(
    annotators: Sequence[str],
    fusion: PairFusion,
    shares: FloatArray | None = None,
    match_original: FloatArray | None = None,
) -> tuple[Sequence[Any], ...]:
    """Return the columns of annotators.csv, see `write_annotators`."""
    none = np.full(len(annotators), np.nan)
    share = none if shares is None else shares
    answered = fusion.left + fusion.right + fusion.ties > 0
    behaviour = np.where(answered, np.array(BEHAVIOURS, dtype=object)[fusion.behaviour], "")
    decidable = none.astype(object)
    if fusion.decidable is not None:
        decidable[answered] = (fusion.decidable | fusion.flagged)[answered]
    return (
        annotators, fusion.left.tolist(), fusion.right.tolist(), fusion.ties.tolist(), _figures(fusion.bias),
        _figures(_medians(fusion.statistic)), _figures(fusion.entry), fusion.flagged.tolist(),
        behaviour.tolist(), _figures(fusion.bias_low), _figures(fusion.bias_high),
        _figures(fusion.p_value), _figures(share), _figures(fusion.match),
        _figures(none if fusion.q_value is None else fusion.q_value),
        _figures(none if fusion.detectable is None else fusion.detectable),
        decidable.tolist(),
        [fusion.rule] * len(annotators),
        _figures(none if match_original is None else match_original),
    )  # fmt: skip


def write_ranking(path: Path, items: Sequence[str], fusion: PairFusion) -> Path:
    """Write one row per item: score and rank within its component, before and after correction.

    Scores have intervals. Rows are sorted by component, counted from 1, and corrected rank. Items that were
    never compared come last, with empty cells. Raises `InputError` if it cannot be written.
    """
    return write_table(path, RANKING, ranking_rows(items, fusion))


def ranking_rows(items: Sequence[str], fusion: PairFusion) -> list[tuple[Any, ...]]:
    """Return the rows of ranking.csv, see `write_ranking`."""
    before, after = (ranks(score, fusion.component) for score in (fusion.score, fusion.corrected))
    number = fusion.component + 1
    order = np.lexsort((after, np.where(number > 0, number, len(items) + 1)))
    columns = (
        items, _figures(fusion.score), _counted(before), _figures(fusion.corrected), _counted(after),
        *map(_figures, (fusion.score_low, fusion.score_high, fusion.corrected_low, fusion.corrected_high)),
        _counted(number),
        *(
            [None] * len(items) if end is None else _counted(end)
            for end in (fusion.rank_low, fusion.rank_high)
        ),
    )  # fmt: skip
    rows = list(zip(*columns, strict=True))
    return [rows[at] for at in order.tolist()]


def write_wins(path: Path, pairs: Pairs) -> Path:
    """Write one row per item and other item with comparisons: wins, losses, ties, and share with interval.

    Raises `InputError` if there are too many items, or if it cannot be written.
    """
    count = len(pairs.items)
    if count > MAX_COMPARED:
        problem = f"would have a row for every two of {count:,} items; expected at most {MAX_COMPARED:,}"
        raise InputError(problem, file=path)
    wins = count_wins(pairs)
    compared, share = wins.compared(), wins.share()

    def rows() -> Iterator[Sequence[object]]:
        for item, other in zip(*map(np.ndarray.tolist, np.nonzero(compared)), strict=True):
            figures = np.array([share[item, other], *wins.interval(item, other)])
            yield (
                pairs.items[item], pairs.items[other], int(wins.won[item, other]),
                int(wins.won[other, item]), int(wins.ties[item, other]), *_figures(figures),
            )  # fmt: skip

    return write_table(path, WINS, rows())


def write_pairs(path: Path, pairs: Pairs, watch: Watch = silent, tasks: Sequence[str] = ()) -> Path:
    """Write one row per comparison, with sides and ties as words or numbers, so that it can be read again.

    Raises `InputError` if it cannot be written.

    `pairs`: comparisons; a column of times is added if there are any. `tasks`: names of the subjects of the
    comparisons, for an additional column.
    """
    # An item called "left" would be read as the winner when the table is read again.
    is_ambiguous = bool(set(_SIDES.values()) & set(pairs.items))
    words = not is_ambiguous and bool(np.isin(pairs.choice, list(_SIDES)).all())
    header: tuple[str, ...] = PAIRS if pairs.time is not None else PAIRS[:-1]
    header += (TASK,) if pairs.task is not None and tasks else ()

    def rows() -> Iterator[Sequence[object]]:
        for low in range(0, len(pairs), _ROWS):
            watch(low / len(pairs), "writing comparisons")
            some = slice(low, low + _ROWS)
            choice = pairs.choice[some].tolist()
            columns: list[Sequence[object]] = [
                [pairs.annotators[at] for at in pairs.annotator[some].tolist()],
                *([pairs.items[at] for at in side[some].tolist()] for side in (pairs.left, pairs.right)),
                [_SIDES[value] for value in choice] if words else choice,
            ]
            if pairs.time is not None:
                columns.append(pairs.time[some].tolist())
            if header[-1] == TASK and pairs.task is not None:
                columns.append([tasks[at] if at >= 0 else "" for at in pairs.task[some].tolist()])
            yield from zip(*columns, strict=True)

    return write_table(path, header, rows())


def write_path(path: Path, annotators: Sequence[str], fusion: PairFusion, watch: Watch = silent) -> Path:
    """Write the regularisation path: position, then one column per annotator with the bias there.

    Raises `InputError` if it cannot be written.

    `annotators`: p names; an annotator called "at" gets a column "at (annotator)".
    """
    header = (PATH, *(f"{name} (annotator)" if name == PATH else name for name in annotators))
    size = max(1, _ROWS // len(header))

    with open_text_output(path) as file:
        csv.writer(file, lineterminator="\n").writerow(map(escape_formula, header))
        for step, (at, biases) in enumerate(zip(fusion.path_at.tolist(), fusion.path, strict=True)):
            if step % size == 0:
                watch(step / len(fusion.path_at), "writing the path")
            numbers = [at, *_figures(biases)]
            file.write(",".join([repr(number) if isfinite(number) else "" for number in numbers]) + "\n")
    return path


def _medians(statistic: NDArray[np.float32]) -> FloatArray:
    """Return the median of each column; NaN without draws."""
    medians = np.full(statistic.shape[1], np.nan)
    drawn = ~np.isnan(statistic).any(axis=0) if len(statistic) else np.zeros(len(medians), dtype=bool)
    if drawn.any():
        medians[drawn] = np.median(statistic[:, drawn].astype(np.float64), axis=0)
    return medians


def _figures(values: NDArray[np.floating]) -> list[float]:
    """Round numbers to six significant digits."""
    return [float(f"{value:.6g}") for value in values.tolist()]


def _counted(values: NDArray[np.integer]) -> list[int | None]:
    """Return numbers from 1; None for 0."""
    return [value or None for value in values.tolist()]
