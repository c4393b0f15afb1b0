"""What the report says of one image of clicks, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raterscope.algorithms.clicks.data import BoolArray
from raterscope.algorithms.clicks.results import Fusion
from raterscope.app.disputes import DISPUTED
from raterscope.app.kinds.clicks.deciding import Decided, decided_on
from raterscope.app.review import Spot
from raterscope.app.study import ImageEntry, RunEntry, Study
from raterscope.app.study.records import TruePoints

__all__ = ["CountedImage", "read_counted"]


@dataclass(frozen=True, eq=False)
class CountedImage:
    """What is found on one image: the fusion's clusters with the expert's word in place of the posterior.

    Attributes
    ----------
    entry : ImageEntry
    run : RunEntry
    fusion : Fusion
    annotators : tuple of str
        Who looked.
    spots : Decided
    judged : tuple of Spot
        What the expert decided.
    truth : TruePoints
    """

    entry: ImageEntry
    run: RunEntry
    fusion: Fusion
    annotators: tuple[str, ...]
    spots: Decided
    judged: tuple[Spot, ...]
    truth: TruePoints

    @property
    def disputed(self) -> BoolArray:
        """Which spots are in dispute, (M,)."""
        low, high = DISPUTED
        return ~self.spots.decided & (self.spots.posterior > low) & (self.spots.posterior < high)


def read_counted(study: Study, entry: ImageEntry, spots: Sequence[Spot]) -> CountedImage | None:
    """Read the fusion shown of an image and lay the expert's decisions over it; None without one."""
    shown = study.shown.result(entry.id)
    if shown is None:
        return None
    run, fusion = shown
    return CountedImage(
        entry=entry,
        run=run,
        fusion=fusion,
        annotators=study.clicks(entry.id, run).annotators,
        spots=decided_on(fusion, spots),
        judged=tuple(spots),
        truth=study.truth(entry.id),
    )
