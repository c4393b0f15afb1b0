"""What is wrong with what an algorithm was given, in one sentence."""

from __future__ import annotations

__all__ = ["RefusedError"]


class RefusedError(ValueError):
    """Data or settings will not do; the sentence is for people, and whoever runs an algorithm tells it."""
