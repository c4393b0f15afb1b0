"""Lengths, sizes and runs as text, with the units that a grid supports."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import bidirectional

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.errors import plain
from raterscope.app.study import RunEntry

NONE = "\N{EN DASH}"
"""Text of a missing figure."""

_MINUS = "\N{MINUS SIGN}"
_SMALL = 0.1
"""Volumes below this, in ml, are stated in mm³."""


@dataclass(frozen=True)
class Units:
    """Formatting of lengths and sizes on one grid."""

    length: str  # "mm"; "px" if the pixel size is unknown
    size: str  # "ml", on an image "mm²"; "voxels" or "px" if their size is unknown
    per_ml: float  # what one ml of the algorithms' figures is in that unit
    extent: str = "Volume"  # "Volume", on an image "Area"

    def mm(self, value: float) -> str:
        """Format a length without its unit."""
        if math.isnan(value):
            return NONE
        return f"{value:.{1 if value >= 0.95 else 2}f}" if math.isfinite(value) else "nothing marked"

    def amount(self, ml: float) -> str:
        """Format a size, small volumes in mm³."""
        value, unit = self._scaled(ml, abs(ml))
        return f"{self._figure(value)} {unit}"

    def difference(self, ml: float, of: float) -> str:
        """Format a difference of sizes with its sign and its percentage."""
        value, unit = self._scaled(ml, abs(of))
        total, _ = self._scaled(of, abs(of))
        digits = max(0, _places(total)) if self.size in ("ml", "mm²") else 0
        text = f"{signed(value, lambda x: f'{x:,.{digits}f}')} {unit}"
        return f"{text} ({signed(100 * ml / of, lambda x: f'{x:.0f}')} %)" if of > 0 else text

    def _scaled(self, ml: float, largest: float) -> tuple[float, str]:
        if self.size == "ml" and largest < _SMALL:
            return 1000.0 * ml, "mm³"
        return ml * self.per_ml, self.size

    def _figure(self, value: float) -> str:
        least = 0 if self.size in ("voxels", "px") else max(0, _places(value))
        return f"{value:,.{least}f}" if math.isfinite(value) else NONE


def units_of(grid: Grid) -> Units:
    """Return the units of a grid."""
    extent = "Area" if grid.flat else "Volume"
    if not grid.calibrated:
        return Units("px", "px" if grid.flat else "voxels", 1000.0 / grid.voxel_volume, extent)
    if grid.flat:
        return Units("mm", "mm²", 1000.0 / grid.spacing[0], extent)
    return Units("mm", "ml", 1.0)


def significant(value: float, digits: int = 3) -> str:
    """Format a figure with some significant digits: "0.0123", "4.56", "1,230"."""
    if not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    return f"{round(value, _places(value, digits)):,.{max(0, _places(value, digits))}f}".replace("-", _MINUS)


def named(text: object, longest: int = 30) -> str:
    """Make an untrusted name safe within a sentence, including right-to-left text."""
    name = plain(text, longest)
    if any(bidirectional(letter) in ("R", "AL") for letter in name):
        return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
    return name


def share(value: float, digits: int = 3) -> str:
    """Format a share from 0 to 1, or a coefficient bounded by 1."""
    return f"{value:.{digits}f}".replace("-", _MINUS) if math.isfinite(value) else NONE


def p_value(value: float) -> str:
    """Format a p-value with two significant digits."""
    if math.isnan(value):
        return NONE
    return "< 0.001" if value < 0.001 else significant(value, 2)


def signed(value: float, write: Callable[[float], str] | None = None, digits: int = 1) -> str:
    """Format a figure with + or -, neither if it rounds to zero."""
    if not math.isfinite(value):
        return NONE
    text = f"{abs(value):.{digits}f}" if write is None else write(abs(value))
    if not text.strip("0.,"):
        return text
    return f"{'+' if value > 0 else _MINUS}{text}"


def _places(value: float, digits: int = 3) -> int:
    """Count the decimals of a formatted figure; below 0 for tens and hundreds."""
    return min(digits - 1 - math.floor(math.log10(abs(value))), 6) if value else 0


def run_in_words(run: RunEntry) -> str:
    """Name a run: number, algorithm, when, how long."""
    when = run.started.strftime("%Y-%m-%d %H:%M %Z").strip()
    return f"run {run.id}, {plain(run.algorithm)}, {when}, {significant(run.seconds, 2)} s"


def flat(settings: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """List settings by name, with those of nested groups."""
    pairs: list[tuple[str, Any]] = []
    for name, value in settings.items():
        pairs += flat(value) if isinstance(value, dict) else [(str(name), value)]
    return pairs
