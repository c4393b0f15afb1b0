"""Simulated reader studies with known bias, repeatability and variance."""

import numpy as np

from raterscope.algorithms.annotators.agreement import kappa_interval
from raterscope.algorithms.annotators.agreement_statistics import (
    REPEATABILITY,
    concordance_correlation,
    intraclass_correlation,
    limits_of_agreement,
    vote_agreement,
)
from raterscope.algorithms.annotators.reader_study import compare_reads

CASES, READERS, READS = 40, 6, 2
CASE, READER, INTERACTION, ERROR = 4.0, 1.0, 0.5, 0.8


def coverage_of_studies(studies, seed=0):
    """Return for each statistic the share of intervals that hold the true value, and the mean error.

    Readers' offsets are drawn again in each study, as ICC and the mixed model suppose.
    """
    rng = np.random.default_rng(seed)
    held = {}

    def note(name, coefficient, truth):
        held.setdefault(name, []).append(
            (coefficient.low <= truth <= coefficient.high, coefficient.value - truth)
        )

    total = CASE**2 + READER**2 + INTERACTION**2 + ERROR**2
    for _ in range(studies):
        offset = rng.normal(0, READER, READERS)
        values = 50 + rng.normal(0, CASE, CASES)[:, None, None] + offset[:, None]
        values = values + rng.normal(0, INTERACTION, (CASES, READERS))[:, :, None]
        values = values + rng.normal(0, ERROR, (CASES, READERS, READS))
        result = compare_reads(values, [str(at) for at in range(READERS)])
        for at, reader in enumerate(result.readers):
            note("bias of a reader", reader.bias, offset[at] - np.delete(offset, at).mean())
            note("repeatability of a reader", reader.repeatability, REPEATABILITY * ERROR)
            single = (CASE**2 + INTERACTION**2) / (CASE**2 + INTERACTION**2 + ERROR**2)
            note("ICC(2,1) of a reader's reads", reader.consistency, single)
            note("limit of a reader's reads", reader.limits.upper, 1.959964 * np.sqrt(2) * ERROR)
        note("repeatability", result.repeatability, REPEATABILITY * ERROR)
        variance = result.variance
        note("between cases", variance.case, CASE)
        note("between readers", variance.reader, READER)
        note("interaction", variance.interaction, INTERACTION)
        note("between reads", variance.error, ERROR)
        icc = intraclass_correlation(values[:, :, 0])
        others = rng.normal(0, np.sqrt(total - CASE**2), (CASES, READERS))
        nested = rng.normal(0, CASE, CASES)[:, None] + others
        note(
            "ICC(1,1), other readers in each case",
            intraclass_correlation(nested).one_way,
            CASE**2 / total,
        )
        note("ICC(2,1)", icc.absolute, CASE**2 / total)
        note("ICC(3,1)", icc.consistency, CASE**2 / (total - READER**2))
        note("ICC(2,k)", icc.absolute_mean, CASE**2 / (CASE**2 + (total - CASE**2) / READERS))
        difference = offset[0] - offset[1]
        spread = np.sqrt(2 * (INTERACTION**2 + ERROR**2))
        limits = limits_of_agreement(values[:, 0, 0], values[:, 1, 0])
        note("bias of two readers", limits.bias, difference)
        note("lower limit of agreement", limits.lower, difference - 1.959964 * spread)
        note("upper limit of agreement", limits.upper, difference + 1.959964 * spread)
        both = CASE**2 + INTERACTION**2 + ERROR**2
        concordance = concordance_correlation(values[:, 0, 0], values[:, 1, 0])
        note("concordance of two readers", concordance, 2 * CASE**2 / (2 * both + difference**2))
    return {
        name: (float(np.mean([inside for inside, _ in notes])), float(np.mean([off for _, off in notes])))
        for name, notes in held.items()
    }


_TABLES = {
    "kappa .64, 40 units": (40, [[0.41, 0.09], [0.09, 0.41]]),
    "kappa .61, 40 units, 1 in 10": (40, [[0.0925, 0.0475], [0.0475, 0.8125]]),
    "kappa .92, 40 units": (40, [[0.2883, 0.0196], [0.0196, 0.6725]]),
    "kappa .59, 3 classes, 100 units": (
        100, [[0.2923, 0.0625, 0.0506], [0.0625, 0.2923, 0.0506], [0.0506, 0.0506, 0.088]]
    ),
}  # fmt: skip


def coverage_of_kappa(studies, seed=0, draws=2000):
    """Return the share of intervals of Cohen's kappa that hold the true value, for some true tables."""
    rng = np.random.default_rng(seed)
    shares = {}
    for name, (units, table) in _TABLES.items():
        shares_of_cells = np.array(table) / np.sum(table)
        rows, columns = shares_of_cells.sum(axis=1), shares_of_cells.sum(axis=0)
        truth = (np.trace(shares_of_cells) - rows @ columns) / (1 - rows @ columns)
        inside = []
        for _ in range(studies):
            counts = rng.multinomial(units, shares_of_cells.ravel())
            first, second = np.divmod(np.repeat(np.arange(counts.size), counts), len(rows))
            low, high = kappa_interval(first, second, draws=draws)
            inside.append(bool(low <= truth <= high) if np.isfinite(low) else np.nan)
        shares[name] = float(np.nanmean(inside))
    return shares


def coverage_of_votes(studies, seed=0):
    """Return the share of intervals of Fleiss' kappa and alpha that hold the true value, for some crowds."""
    rng = np.random.default_rng(seed)
    shares = {}
    for tasks, annotators, rates, accuracy in (
        (20, 2, [0.1, 0.9], 0.9), (40, 2, [0.3, 0.7], 0.95),
        (40, 5, [0.3, 0.7], 0.9), (40, 3, [0.25] * 4, 0.8),
    ):  # fmt: skip

        def draw(number, rates=rates, accuracy=accuracy, annotators=annotators):
            true = rng.choice(len(rates), number, p=rates)
            random = rng.integers(0, len(rates), (number, annotators))
            answers = np.where(rng.random((number, annotators)) < accuracy, true[:, None], random)
            return vote_agreement(np.repeat(np.arange(number), annotators), answers.ravel(), len(rates))

        truth = draw(100_000)
        held = {"fleiss": [], "krippendorff": []}
        for _ in range(studies):
            result = draw(tasks)
            for name, inside in held.items():
                figure = getattr(result, name)
                if np.isfinite(figure.low):
                    inside.append(figure.low <= getattr(truth, name).value <= figure.high)
        for name, inside in held.items():
            shares[f"{name}, {tasks} tasks, {annotators} votes"] = float(np.mean(inside))
    return shares
