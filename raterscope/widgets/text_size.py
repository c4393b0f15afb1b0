"""Scale of the interface text; rows, figures and minimum sizes follow it.

Painted widgets work in unscaled pixels and let the painter scale. Qt layouts get scaled lengths from
`set_lengths`.
"""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRect, QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QApplication, QWidget

__all__ = [
    "LARGEST",
    "SMALLEST",
    "enlarge",
    "follow_lengths",
    "pixels",
    "set_lengths",
    "set_text_size",
    "text_size",
    "usual",
]

SMALLEST, LARGEST = 0.8, 2.0
LENGTHS = "lengths"


class _State:
    size = 1.0


def text_size() -> float:
    """Return the text scale; 1 is the default."""
    return _State.size


def set_text_size(size: float) -> None:
    """Set the text scale, clipped to its range; `theme.apply_theme` applies it."""
    _State.size = min(max(size, SMALLEST), LARGEST)


def pixels(length: float) -> int:
    """Convert unscaled to window pixels."""
    return round(length * _State.size)


def enlarge(painter: QPainter, box: QRect | QRectF) -> QRectF:
    """Scale a painter; returns the box in unscaled pixels."""
    painter.scale(_State.size, _State.size)
    size = _State.size
    return QRectF(box.x() / size, box.y() / size, box.width() / size, box.height() / size)


def usual(position: QPointF) -> QPointF:
    """Convert a widget position to unscaled pixels."""
    return QPointF(position.x() / _State.size, position.y() / _State.size)


def set_lengths(widget: QWidget, **lengths: int) -> None:
    """Set lengths of a widget that follow the text scale.

    Parameters
    ----------
    item : QWidget
    lengths : int
        Properties of Qt (minimumWidth, maximumHeight, defaultSectionSize ...) or `width` and `height` for a
        fixed one, in unscaled pixels. Lengths set earlier are kept.
    """
    stored = {**(widget.property(LENGTHS) or {}), **lengths}
    widget.setProperty(LENGTHS, stored)
    _apply(widget, stored)


def follow_lengths() -> None:
    """Update the lengths of all widgets."""
    for widget in QApplication.allWidgets():
        lengths = widget.property(LENGTHS)
        if lengths:
            _apply(widget, lengths)


def _apply(widget: QWidget, lengths: dict[str, int]) -> None:
    # Least lengths first where they shrink: what is set below the least that still holds would stay at it.
    # Where they grow they come last: else each of the thousands of rows of a list grows by itself.
    least = {name for name in lengths if name.startswith("minimum")}
    grow = any(pixels(lengths[name]) > widget.property(name) for name in least)
    for name, length in sorted(lengths.items(), key=lambda item: (item[0] in least) == grow):
        if name == "width":
            widget.setFixedWidth(pixels(length))
        elif name == "height":
            widget.setFixedHeight(pixels(length))
        else:
            widget.setProperty(name, pixels(length))
