"""What the commands need of the terminal: one line of progress, plain text, whether there is a display."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

__all__ = ["ProgressLine", "has_display", "one_line"]

_EVERY = 0.1  # seconds
_BAR = 24


def has_display() -> bool:
    """Tell whether a window could be seen."""
    if sys.platform in {"darwin", "win32"}:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def one_line(text: str) -> str:
    """Make one line of printable text; what strangers wrote shall not steer the terminal."""
    line = " ".join(text.split())
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)


class ProgressLine:
    """A watch that draws progress on a terminal, in one line that is wiped at the end.

    Where the stream is no terminal nothing is written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream if stream.isatty() else None
        self._drawn = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(
        self,
        fraction: float,
        words: str,
        *,
        objective: float | None = None,  # noqa: ARG002 - a terminal shows no curves
        partial: Callable[[], object] | None = None,  # noqa: ARG002 - nor a partial result
    ) -> None:
        """Draw, at most ten times a second."""
        now = time.monotonic()
        if self._stream is None or now - self._drawn < _EVERY:
            return
        self._drawn = now
        done = round(_BAR * min(max(fraction, 0.0), 1.0))
        bar = "#" * done + "." * (_BAR - done)
        room = max(20, _columns(self._stream) - _BAR - 10)
        self._stream.write(f"\r\x1b[K{bar} {fraction:4.0%} {one_line(words)[:room]}")
        self._stream.flush()


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
