"""Accuracy of every fusion of labels on real crowds, beside crowd-kit's in the same run and figures to reach.

Usage: RATERSCOPE_DATA=FOLDER python -m tests.benchmarks.labels_accuracy [FUSER ...]

Every method runs with its defaults and without any truth. Then the crowds whose annotators drift or jump:
accuracy, AUC, Brier score, and the error (root mean square over the votes) of the confusion matrices of the
annotators who change and of those who do not.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from raterscope.algorithms.labels.assessment import Assessment, advice, assess
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.data import OPEN, FloatArray, Labels
from raterscope.algorithms.labels.fusion import LabelPlan, run
from raterscope.algorithms.labels.tempering import choose_tempering
from raterscope.algorithms.labels.voting import majority
from raterscope.algorithms.settings import Algorithm
from raterscope.app.papers.experiments import read_labels_of
from raterscope.app.papers.labels import matrices_of

EXPECTED = {
    "bluebirds": {"ibcc": (0.8889, 0.9441), "dynibcc": (0.8704, 0.9375), "majority": (0.7593, 0.8743)},
    "rte": {"ibcc": (0.9287, 0.9793), "dynibcc": (0.9287, 0.9788), "majority": (0.9187, 0.9649)},
    "dog": {"ibcc": (0.8377, 0.9615), "dynibcc": (0.8401, 0.9609), "majority": (0.8178, 0.9543)},
    "duchenne": {"ibcc": (0.7799, 0.7948), "dynibcc": (0.7736, 0.7931), "majority": (0.7233, 0.7876)},
    "cf_amt": {"ibcc": (0.8633, 0.9474), "dynibcc": (0.8633, 0.9516), "majority": (0.8467, 0.9274)},
    "product": {"ibcc": (0.9372, 0.8953), "dynibcc": (0.9349, 0.889), "majority": (0.8966, 0.8481)},
    "sp_amt": {"ibcc": (0.944, 0.9822), "dynibcc": (0.944, 0.9823), "majority": (0.944, 0.9841)},
    "adult2": {"ibcc": (0.7387, 0.8789), "dynibcc": (0.7357, 0.8759), "majority": (0.7628, 0.8624)},
}
"""Accuracy and AUC by an independent implementation."""

DRIFTING = {
    ("jump_J3", False): ((0.7495, 0.272), (0.89, 0.1339)),
    ("drift_J3", False): ((0.8115, 0.1613), (0.8505, 0.0756)),
    ("jump_J2", True): ((0.6793, 0.3767), (0.9296, 0.1378)),
    ("static_J3", False): ((0.9845,), (0.9845,)),
}
"""By crowd, and whether a fifth of the truth is given: accuracy, and error of those who change, by
independent implementations of the static and the dynamic model."""

IN_PART = ("ibcc", "dynibcc", "gibbs")
"""These are shown once more with the weight of a vote that predicts held-out votes best."""

CHANGE = 0.05
"""Annotators change if a rate of theirs has a range above it."""


def peers(labels: Labels) -> dict[str, FloatArray]:
    """Posteriors (N, J) of crowd-kit's methods; none where it is not installed."""
    try:
        from crowdkit.aggregation import DawidSkene, MajorityVote
    except ImportError:
        return {}
    from pandas import DataFrame

    votes = DataFrame({"task": labels.task, "worker": labels.annotator, "label": labels.label})
    results = {}
    for name, method in (
        ("crowd-kit DawidSkene", DawidSkene(n_iter=100)),
        ("crowd-kit vote", MajorityVote()),
    ):
        method.fit(votes)
        table = method.probas_.reindex(index=range(len(labels.tasks)), columns=range(len(labels.classes)))
        results[name] = table.fillna(0.0).to_numpy()
    return results


def line(
    name: str, assessment: Assessment, seconds: float | None, expected: tuple[float, float] | None
) -> str:
    took = "" if seconds is None else f"{seconds:8.2f} s"
    error = assessment.calibration.error
    figures = f"{assessment.accuracy:8.4f}{assessment.area:8.4f}{assessment.log_loss:8.3f}{error:8.3f}"
    return f"{name:22s}{figures}{took:>12s}" + ("" if expected is None else f"   expected {expected}")


def table_of_crowds(root: Path, fusers: dict[str, Algorithm]) -> None:
    for name, expected in EXPECTED.items():
        labels, truth = read_labels_of(root, name)
        print(
            f"\n{name}: {len(labels):,} votes, {len(labels.tasks):,} tasks, {len(labels.annotators)}"
            f" annotators, {len(labels.classes)} classes, {np.count_nonzero(truth != OPEN):,} truths"
        )
        print(f"{'':22s}{'accuracy':>8s}{'AUC':>8s}{'logloss':>8s}{'calibr.':>8s}")
        vote = assess(majority(labels).posterior, truth, labels.classes)
        for key, fuser in fusers.items():
            start = time.perf_counter()
            fusion = fuser.run(labels, fuser.settings())
            seconds = time.perf_counter() - start
            assessment = assess(fusion.posterior, truth, labels.classes)
            assert assessment is not None
            print(line(key, assessment, seconds, expected.get(key)))
            if key in IN_PART:
                part = run(labels, LabelPlan.make(key, {"counting": "predictive"}))
                found_in_part = assess(part.posterior, truth, labels.classes)
                assert found_in_part is not None
                print(line(f"  a vote for {part.power:g}", found_in_part, None, None))
            for sentence in (
                advice(labels, fusion, assessment, vote, choose_tempering(labels, fusion))
                if key == "ibcc"
                else ()
            ):
                print(f"    {sentence}")
        for key, posterior in peers(labels).items():
            assessment = assess(posterior, truth, labels.classes)
            assert assessment is not None
            print(line(key, assessment, None, None))


def table_of_drift(root: Path, fusers: dict[str, Algorithm]) -> None:
    for (name, text), expected in DRIFTING.items():
        with np.load(root / f"labels/synth/{name}_seed7.npz") as file:
            task, annotator, label, truth, rates, known = (
                file[key] for key in ("task", "worker", "label", "truth", "pi_true", "known20")
            )
        classes = tuple(map(str, range(rates.shape[1])))
        labels = Labels(
            task.astype(np.int32), annotator.astype(np.int32), label.astype(np.int16),
            tuple(map(str, range(len(truth)))), tuple(map(str, range(int(annotator.max()) + 1))),
            classes, classes,
        )  # fmt: skip
        if text:
            labels = replace(labels, known=known.astype(np.int16))
        ranges = [np.ptp(rates[annotator == k], axis=0).max() for k in range(len(labels.annotators))]
        changing = np.array(ranges) > CHANGE
        values = ", a fifth of the truth given" if text else ""
        print(f"\n{name}{values}: accuracy, AUC, Brier score, error of matrices")
        judged = np.where(labels.known == OPEN, truth, OPEN) if labels.known is not None else truth
        for key, fuser in fusers.items():
            fusion = fuser.run(labels, fuser.settings())
            assessment = assess(fusion.posterior, judged.astype(np.int16), classes)
            assert assessment is not None
            error = np.square(matrices_of(fusion, labels) - rates).mean(axis=(1, 2))
            apart = [
                float(np.sqrt(error[changing[annotator] == item].mean()))
                if (changing == item).any()
                else np.nan
                for item in (True, False)
            ]
            goal = {"ibcc": expected[0], "dynibcc": expected[1]}.get(key)
            print(
                f"{key:22s}{assessment.accuracy:8.4f}{assessment.area:8.4f}{assessment.brier:8.4f}"
                f"   change {apart[0]:.4f}, steady {apart[1]:.4f}" + (f"   expected {goal}" if goal else "")
            )


def main() -> None:
    root = os.environ.get("RATERSCOPE_DATA")
    if not root:
        sys.exit("set RATERSCOPE_DATA to the folder of labels/*.csv and labels/synth/*.npz")
    names = sys.argv[1:]
    fusers = {name: fuser for name, fuser in LABELLERS.items() if name in names or not names}
    try:
        import crowdkit  # noqa: F401
    except ImportError:
        print("crowd-kit is not installed: its rows are left out.")
    table_of_crowds(Path(root), fusers)
    table_of_drift(Path(root), fusers)


if __name__ == "__main__":
    main()
