"""What was measured on comparable crowds, where nothing is known of the user's own.

The table ``calibration.csv`` of `raterscope.resources` is written by
``python -m tests.benchmarks.calibration --write``. A row is one number on one data set; the data set that is
nearest by annotators per item, and by the number of classes, is named.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from raterscope.app.errors import counted

__all__ = ["FILE", "NUMBERS", "ComparableCrowd", "comparable_crowds", "comparable_in_words", "nearest"]

FILE = "calibration.csv"

NUMBERS = {
    "probability": "probabilities of {claimed:.0%} on average were right in {measured:.0%}",
    "calibration error": "the expected calibration error was {measured:.2f}",
    "band": "the {claimed:.0%} band held {measured:.0%} of the outline of a left-out rater",
    "false discoveries": "{measured:.0%} of the flagged were flagged wrongly (rate {claimed:.0%})",
    "fair crowds": "an annotator was flagged in {measured:.0%} of crowds without bias",
}
"""Numbers of the table, and how each is said."""

_ITEMS = {
    "clicks": ("annotator", "image"), "masks": ("rater", "case"), "labels": ("vote", "task"),
    "pairs": ("comparison", "annotator"),
}  # fmt: skip
_FAR = math.log(2.5)
"""Distance beyond which a crowd is not called comparable."""


@dataclass(frozen=True)
class ComparableCrowd:
    """What was measured on one data set.

    Attributes
    ----------
    kind, data : str
    per_item : float
        Annotators per image or case, votes per task, or comparisons per annotator.
    classes : int
        0 where there are none.
    in_sample : bool
        Whether defaults were chosen on these data.
    figures : tuple of (number, claimed, measured)
        Keys of `NUMBERS`.
    """

    kind: str
    data: str
    per_item: float
    classes: int
    in_sample: bool
    figures: tuple[tuple[str, float, float], ...]

    def distance(self, per_item: float, classes: int) -> float:
        """Give how far a crowd is: the larger of two differences of logarithms."""
        far = abs(math.log(max(per_item, 0.5) / self.per_item))
        return max(far, abs(math.log(classes / self.classes))) if classes and self.classes else far


@cache
def comparable_crowds() -> tuple[ComparableCrowd, ...]:
    """Read the table that comes with the program."""
    text = (resources.files("raterscope.resources") / FILE).read_text(encoding="utf-8")
    found: dict[tuple[str, str], ComparableCrowd] = {}
    for row in csv.DictReader(text.splitlines()):
        key = row["kind"], row["data"]
        figure = row["number"], float(row["claimed"]), float(row["measured"])
        before = found[key].figures if key in found else ()
        found[key] = ComparableCrowd(
            *key, float(row["per_item"]), int(row["classes"]), row["in_sample"] == "1", (*before, figure)
        )
    return tuple(found.values())


def nearest(
    crowds: Iterable[ComparableCrowd], kind: str, per_item: float, classes: int = 0
) -> ComparableCrowd | None:
    """Give the crowd of a kind that is nearest; None without any that is near."""
    near = [
        (one.distance(per_item, classes), place, one)
        for place, one in enumerate(crowds)
        if one.kind == kind and one.distance(per_item, classes) <= _FAR
    ]
    return min(near)[2] if near else None


def comparable_in_words(kind: str, per_item: float, classes: int = 0) -> str:
    """Say what was measured on the nearest crowd.

    Parameters
    ----------
    kind : str
        "clicks", "masks", "labels" (by the pooled consensus), "labels, ibcc" or "pairs".
    per_item : float
        Annotators per image or case, votes per task, or comparisons per annotator.
    classes : int
        Of labels.
    """
    one = nearest(comparable_crowds(), kind, per_item, classes)
    if one is None:
        return "No crowd of this size was measured."
    noun, item = _ITEMS[kind.partition(",")[0]]
    size = f"{counted(round(one.per_item), noun)} per {item}"
    size += f", {one.classes} classes" if one.classes else ""
    said = "; ".join(
        NUMBERS[number].format(claimed=claimed, measured=measured)
        for number, claimed, measured in one.figures
    )
    chosen = " Defaults were chosen on these data." if one.in_sample else ""
    return f"On the nearest crowd measured ({one.data}: {size}), {said}.{chosen}"
