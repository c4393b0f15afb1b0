"""The figures along an axis, written as everywhere else."""

from __future__ import annotations

import pyqtgraph as pg

__all__ = ["WrittenAxis"]


class WrittenAxis(pg.AxisItem):  # type: ignore[misc]
    """Tells thousands apart and has a true minus; of what is counted it names whole numbers alone.

    Attributes
    ----------
    whole : bool
        Whether there is nothing between 1 and 2, as with iterations.
    """

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self.whole = False

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        """Write the figures."""
        if self.logMode:
            return list(super().tickStrings(values, scale, spacing))
        step = f"{spacing * scale:.0e}"
        places = max(-int(step.partition("e")[2]), 0)
        return [f"{value * scale:,.{places}f}".replace("-", "−") for value in values]

    def tickSpacing(self, least: float, most: float, size: float) -> list[tuple[float, float]]:
        """Say how far apart figures may stand."""
        found = list(super().tickSpacing(least, most, size))
        return [one for one in found if one[0] >= 1] or [(1, 0)] if self.whole else found
