"""What the keys do that a widget answers itself, told beside the method that answers them."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

__all__ = ["OwnKeys", "own_keys"]


@dataclass(frozen=True, slots=True)
class OwnKeys:
    """Keys that hold in one place; a widget tells its own by its class attribute ``OWN_KEYS``.

    Attributes
    ----------
    where : str
        Where they hold: "On the image".
    keys : tuple of (str, str)
        Keys as they are printed, and what they do.
    """

    where: str
    keys: tuple[tuple[str, str], ...]


def own_keys(place: QWidget) -> tuple[OwnKeys, ...]:
    """List the keys of all widgets in a place, each kind of widget once, in the order in which they stand."""
    found = dict.fromkeys(
        told
        for widget in (place, *place.findChildren(QWidget))
        if isinstance(told := getattr(widget, "OWN_KEYS", None), OwnKeys)
    )
    return tuple(found)
