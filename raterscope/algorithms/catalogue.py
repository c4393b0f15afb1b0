"""Catalogues of algorithms, and the plan of a run: one of a catalogue's algorithms with its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from raterscope.algorithms.settings import Settings, SettingsError

__all__ = [
    "Algorithm",
    "Plan",
]


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


@dataclass(frozen=True)
class Plan:
    """An algorithm by name with its settings; each kind of annotation has a plan with its own catalogue.

    Attributes
    ----------
    algorithm : str
        A key of `catalogue`.
    settings : Settings
        Of the kind that it takes.

    Raises
    ------
    SettingsError
        For an algorithm that is not known, or settings of another.
    """

    catalogue: ClassVar[Mapping[str, Algorithm]]
    noun: ClassVar[str]
    """What an entry of the catalogue is: "algorithm for masks"."""

    algorithm: str
    settings: Settings

    def __post_init__(self) -> None:
        if type(self.settings) is not self.of(self.algorithm).settings:
            raise SettingsError(f"the settings are not those of {self.algorithm}.")

    @classmethod
    def of(cls, name: str) -> Algorithm:
        """Return an algorithm by its name.

        Raises
        ------
        SettingsError
            For one that is not known.
        """
        if name not in cls.catalogue:
            raise SettingsError(f"{name} is no {cls.noun}; expected one of {', '.join(cls.catalogue)}.")
        return cls.catalogue[name]

    @classmethod
    def make(cls, algorithm: str | None = None, texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan from a name, by default the usual one, and `field=value` pairs of a command line.

        Raises
        ------
        SettingsError
            For an algorithm or a setting that is not known, or a value that will not do.
        """
        name = str(cls.__dataclass_fields__["algorithm"].default) if algorithm is None else algorithm
        return cls(name, cls.of(name).settings.from_text(texts or {}))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from what `as_dict` gave.

        Raises
        ------
        SettingsError
            For names and values that are not known here.
        """
        name, settings = values.get("algorithm"), values.get("settings")
        if not isinstance(name, str) or not isinstance(settings, Mapping):
            raise SettingsError("a plan names its algorithm and its settings.")
        return cls(name, cls.of(name).settings.from_dict(settings))

    def as_dict(self) -> dict[str, Any]:
        """Return the plan, ready for JSON."""
        return {"algorithm": self.algorithm, "settings": self.settings.as_dict()}
