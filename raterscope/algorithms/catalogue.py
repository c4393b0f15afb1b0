"""An algorithm as the form, the command line and the report see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raterscope.algorithms.settings import Settings

__all__ = ["Algorithm"]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One algorithm of a catalogue.

    Attributes
    ----------
    name : str
        The word on the command line: "oem".
    title : str
        For people: "OEM clustering".
    summary : str
        One sentence: what it does and when to take it.
    source : str
        Paper, as ``[@key]`` of the bibliography, and equations or algorithm number.
    settings : type of Settings
        What can be set.
    run : callable
        ``run(data, settings, watch=watch)`` gives the result.
    """

    name: str
    title: str
    summary: str
    source: str
    settings: type[Settings]
    run: Callable[..., Any]
