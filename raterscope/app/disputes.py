"""When an item is disputed: the same bounds for the window, reports and the comparison of runs."""

from __future__ import annotations

__all__ = ["CERTAIN", "DISPUTED"]

DISPUTED = (0.1, 0.9)
"""Posteriors between which a spot that the expert did not decide is disputed."""

CERTAIN = 0.05
"""Entropy up to which a task of labels is not disputed."""
