"""Errors in the data or settings of an algorithm, each as one sentence for people."""

from __future__ import annotations

__all__ = ["RefusedError"]


class RefusedError(ValueError):
    """Data or settings will not do; the sentence is for people, and whoever runs an algorithm tells it."""
