"""Settings of an algorithm, the algorithm, and the plan of a run.

The single description of a setting is used to draw the form, read the command line, check and store values,
and write the methods section of a report.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, ClassVar, Literal, Self, TypeVar

from raterscope.algorithms.progress import RefusedError

_SMALLEST = 1e-3
"""Lower limits below this only keep a number above 0."""

_PLURALS = ("sweeps", "tasks", "votes")
"""Units without a plural s after 1."""

FORMER_NAMES = {
    "as_printed": ("as_published",),
    "community_as_printed": ("community_as_published",),
    "community_least": ("community_min_votes",),
    "community_most": ("community_max_votes",),
    "fewest": ("min_annotators",),
    "least": ("min_comparisons",),
    "least_clicks": ("min_clicks",),
    "least_neighbours": ("min_neighbours",),
    "most": ("max_annotators", "max_consensuses"),
    "own_hands": ("per_annotator_scatter",),
    "printed_form": ("published_form",),
}
"""Current names of settings, by their names in studies and `run.json` of earlier versions."""

Kind = Literal["number", "integer", "choice", "switch"]
_Value = TypeVar("_Value")


_FEW, _NEAREST = 6, 3
"""Settings that are all named beside an unknown one, and otherwise the number of the nearest."""


class SettingsError(RefusedError):
    """Error: a setting is unknown or out of range; the message gives the reason.

    `problem`: the reason, such as "is 0; expected at least 1."; without `name`, a whole sentence. `name`,
    `label`: the setting in code and on screen.
    """

    def __init__(self, problem: str, name: str = "", label: str = "") -> None:
        super().__init__(f"{name} {problem}" if name else problem)
        self.problem, self.name, self.label = problem, name, label or name

    def about(self, setting: str) -> str:
        """Return the message with another name of the setting: its label, or an option."""
        return f"{setting} {self.problem}" if self.name else str(self)


class UnknownSettingError(SettingsError):
    """A setting that none of the algorithm's settings has."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        self.names_all = len(known) <= _FEW
        listed = list(known) if self.names_all else get_close_matches(name, known, _NEAREST, cutoff=0.0)
        count = "" if self.names_all else f"{len(known)}, the nearest: "
        super().__init__(f"is not a setting here; expected one of {count}{', '.join(listed)}.", name)


@dataclass(frozen=True, slots=True)
class Spec:
    """Description of one setting.

    `default` None means that the value may be empty, shown as `left_open`: the algorithm then estimates it or
    uses a default, as described in `help`.
    """

    name: str
    label: str
    kind: Kind
    default: float | int | str | bool | None
    help: str
    unit: str = ""
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[tuple[str, str], ...] = ()
    optional: bool = False
    advanced: bool = False
    left_open: str = "estimated"

    def parse(self, text: str) -> Any:
        """Convert text from a command line to a value, for `check`.

        Raises
        ------
        SettingsError
            For text that is not a value of this kind.
        """
        word = text.strip()
        if self.optional and word.lower() in {"", "auto", "none"}:
            return None
        if self.kind == "switch":
            if word.lower() in {"1", "true", "yes", "on"}:
                return True
            if word.lower() in {"0", "false", "no", "off"}:
                return False
            raise self._error(f"is {text!r}; expected yes or no.")
        if self.kind == "choice":
            return word
        try:
            return int(word) if self.kind == "integer" else float(word)
        except ValueError:
            expected = "a whole number" if self.kind == "integer" else "a number"
            raise self._error(f"is {text!r}; expected {expected}.") from None

    def check(self, value: Any) -> Any:
        """Check a value, and return it in the setting's type.

        Raises
        ------
        SettingsError
            For an invalid value, with the reason.
        """
        if value is None and self.optional:
            return None
        if self.kind == "switch":
            if not isinstance(value, bool):
                raise self._error(f"is {value!r}; expected yes or no.")
            return value
        if self.kind == "choice":
            allowed = [key for key, _ in self.choices]
            if value not in allowed:
                raise self._error(f"is {value!r}; expected one of {', '.join(allowed)}.")
            return value
        return self._check_number(value)

    def _check_number(self, value: Any) -> float | int:
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not abs(value) <= sys.float_info.max  # also of integers that are too large for a float
        ):
            raise self._error(f"is {value!r}; expected a number.")
        if self.kind == "integer" and value != int(value):
            raise self._error(f"is {value!r}; expected a whole number.")
        if not self.minimum <= value <= self.maximum:
            expected = self.range_in_words()
            if 0 < value < self.minimum < _SMALLEST:
                expected = f"at least {format_number(self.minimum)} {self.unit}".rstrip()
            raise self._error(f"is {format_number(value)}; expected {expected}.")
        return int(value) if self.kind == "integer" else float(value)

    def _error(self, problem: str) -> SettingsError:
        return SettingsError(problem, self.name, self.label)

    def range_in_words(self) -> str:
        """Describe the range: "0 to 1", "at least 1", "above 0, at most 1"."""
        low = "" if math.isinf(self.minimum) else format_number(self.minimum)
        high = "" if math.isinf(self.maximum) else format_number(self.maximum)
        if 0 < self.minimum < _SMALLEST:
            most = "below 1" if 0 < 1 - self.maximum < _SMALLEST else high and f"at most {high}"
            words = f"above 0, {most}" if most else "above 0"
        elif low and high:
            words = f"{low} to {high}"
        else:
            words = f"at least {low}" if low else f"at most {high}" if high else "a number"
        return f"{words} {self.unit}".rstrip()

    def values_in_words(self) -> str:
        """Describe the permitted values as typed: "yes or no", "whole number, at least 1, or auto"."""
        if self.kind == "choice":
            return " or ".join(f"{key} ({words})" for key, words in self.choices)
        if self.kind == "switch":
            return "yes or no"
        kind = "whole number, " if self.kind == "integer" else ""
        return kind + self.range_in_words() + (", or auto" if self.optional else "")

    def as_text(self, value: Any) -> str:
        """Return a value as a user types it in a form or on a command line; `parse` is the inverse."""
        if value is None:
            return "auto"
        if self.kind == "switch":
            return "yes" if value else "no"
        if self.kind == "choice":
            return str(value)
        text = format_number(value, 10).replace(",", "")
        return text if float(text) == value else repr(value)

    def in_words(self, value: Any) -> str:
        """Return a value in words."""
        if value is None:
            return self.left_open
        if self.kind == "switch":
            return self.as_text(value)
        if self.kind == "choice":
            return dict(self.choices)[value]
        unit = self.unit[:-1] if value == 1 and self.unit in _PLURALS else self.unit
        return f"{format_number(value)} {unit}".rstrip()


def format_number(value: float, digits: int = 6) -> str:
    """Format a number for reading: "0.000001", "100,000,000", and "1e-9" or "1e20" with more zeros.

    Examples
    --------
    >>> format_number(0.000012345), format_number(1234567.0), format_number(1e20)
    ('0.000012345', '1,234,567', '1e20')
    """
    if value == round(value) and 1e5 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    if 1e-6 <= abs(value) < 1e-4:
        return f"{value:.{digits + 5}f}".rstrip("0")
    text, power, of_ten = f"{value:.{digits}g}".partition("e")
    return f"{text}{power}{int(of_ten)}" if power else text


def _field(default: Any, **spec: Any) -> Any:
    return dataclasses.field(default=default, metadata={"spec": spec})


def number(
    default: float | None,
    label: str,
    help: str,
    *,
    unit: str = "",
    minimum: float = -math.inf,
    maximum: float = math.inf,
    optional: bool = False,
    advanced: bool = False,
    left_open: str = "estimated",
) -> Any:
    """Describe a real number.

    Parameters
    ----------
    default : float or None
    label : str
        Label in a form.
    help : str
        A sentence.
    unit : str
    minimum, maximum : float
        Limits of the value.
    optional : bool
        Whether the value may be empty (None).
    advanced : bool
        Whether a form shows it among the advanced settings.
    left_open : str
        Text for an empty value.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Example(Settings):
    ...     radius: float = number(4.0, "Radius", "Distance at which spots match.", unit="px", minimum=0.0)
    >>> Example().radius, Example.specs()[0].unit
    (4.0, 'px')
    >>> Example.from_text({"radius": "-1"})
    Traceback (most recent call last):
        ...
    raterscope.algorithms.settings.SettingsError: radius is -1; expected at least 0 px.
    """
    return _field(
        default, label=label, help=help, kind="number", unit=unit, minimum=minimum, maximum=maximum,
        optional=optional or default is None, advanced=advanced, left_open=left_open,
    )  # fmt: skip


def integer(
    default: int | None,
    label: str,
    help: str,
    *,
    unit: str = "",
    minimum: float = -math.inf,
    maximum: float = math.inf,
    advanced: bool = False,
    left_open: str = "estimated",
) -> Any:
    """Describe a whole number; see `number`."""
    return _field(
        default, label=label, help=help, kind="integer", unit=unit, minimum=minimum, maximum=maximum,
        optional=default is None, advanced=advanced, left_open=left_open,
    )  # fmt: skip


def choice(default: str, label: str, help: str, choices: Mapping[str, str], *, advanced: bool = False) -> Any:
    """Describe a choice; `choices` maps names to words on screen. See `number`."""
    return _field(
        default, label=label, help=help, kind="choice", choices=tuple(choices.items()), advanced=advanced
    )


def switch(default: bool, label: str, help: str, *, advanced: bool = False) -> Any:
    """Describe a yes/no setting; see `number`."""
    return _field(default, label=label, help=help, kind="switch", advanced=advanced)


@dataclass(frozen=True)
class Settings:
    """Base class of settings: a frozen dataclass with fields from `number`, `choice` and the like."""

    def __post_init__(self) -> None:
        for spec in self.specs():
            object.__setattr__(self, spec.name, spec.check(getattr(self, spec.name)))

    @classmethod
    @cache
    def specs(cls) -> tuple[Spec, ...]:
        """Describe every setting, in the order of definition."""
        result = []
        for field in dataclasses.fields(cls):
            if "spec" not in field.metadata or field.default is MISSING:
                raise TypeError(f"{cls.__name__}.{field.name} is not described")
            result.append(Spec(name=field.name, default=field.default, **field.metadata["spec"]))
        return tuple(result)

    @classmethod
    def from_text(cls, texts: Mapping[str, str]) -> Self:
        """Make settings from `field=value` pairs of a command line; names of earlier versions are accepted.

        Raises
        ------
        SettingsError
            For an unknown setting, or an invalid value.
        """
        texts = _present_names(texts, cls.names())
        return cls(**{spec.name: spec.parse(texts[spec.name]) for spec in cls.specs() if spec.name in texts})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make settings from stored values; names of earlier versions are accepted."""
        return cls(**_present_names(values, cls.names()))

    @classmethod
    def names(cls) -> list[str]:
        """Return the settings' names, in the order of definition."""
        return [spec.name for spec in cls.specs()]

    def as_dict(self) -> dict[str, Any]:
        """Return the values, ready for JSON."""
        return dataclasses.asdict(self)

    def unused(self) -> Collection[str]:
        """Return the names of settings without effect, given the values of the others."""
        return ()

    def in_words(self, omitted: Collection[str] = ()) -> str:
        """Describe settings with an effect, for the methods section:"click scatter 2 px, lower bound 0"."""
        unused = {*self.unused(), *omitted}
        return ", ".join(
            f"{spec.label.lower()} {spec.in_words(getattr(self, spec.name))}"
            for spec in self.specs()
            if spec.name not in unused
        )

    def departures(self) -> tuple[str, ...]:
        """List the differences from the publication, as clauses for the methods section."""
        return ()

    def methods_text(self) -> str:
        """State the settings with an effect, and the differences from the publication."""
        departures = ", ".join(self.departures())
        return self.in_words() + (f"; differences from the paper: {departures}" if departures else "")


def settings_from_texts(texts: Mapping[str, str], *classes: type[Settings]) -> tuple[Any, ...]:
    """Make settings of several classes from `field=value` pairs; each class takes its own settings.

    Raises `SettingsError` for a setting of no class, or an invalid value.
    """
    texts = _present_names(texts, dict.fromkeys(name for each in classes for name in each.names()))
    return tuple(
        each.from_text({name: text for name, text in texts.items() if name in each.names()})
        for each in classes
    )


def _present_names(values: Mapping[str, _Value], known: Collection[str]) -> dict[str, _Value]:
    """Return values by the current names of their settings; refuse unknown names."""
    renamed = {
        next((new for new in (name, *FORMER_NAMES.get(name, ())) if new in known), name): value
        for name, value in values.items()
    }
    for name in renamed:
        if name not in known:
            raise UnknownSettingError(name, known)
    return renamed


@dataclass(frozen=True, slots=True)
class Algorithm:
    """Algorithm of a catalogue.

    Attributes
    ----------
    name : str
        Name on the command line: "oem".
    title : str
        Title on screen: "OEM clustering".
    summary : str
        What the algorithm does and when to use it, in one sentence.
    source : str
        Paper, as ``[@key]`` of the bibliography, and equations or algorithm number.
    settings : type of Settings
        Class of its settings.
    run : callable
        ``run(data, settings, watch=watch)`` returns the result.
    weighs : bool
        Whether the algorithm uses the weights of annotators in `data`.
    """

    name: str
    title: str
    summary: str
    source: str
    settings: type[Settings]
    run: Callable[..., Any]
    weighs: bool = False

    def weight_notices(self, weights: object) -> tuple[str, ...]:
        """Return a notice if weights have no effect; () if they have, or without weights."""
        if weights is None or self.weighs:
            return ()
        title = self.title[:1].upper() + self.title[1:]
        text = "all count fully. Exclude them, or choose another method"
        return (f"{title} cannot down-weight annotators: {text}.",)


@dataclass(frozen=True)
class Plan:
    """Algorithm with its settings; each kind of annotation has a plan with its own catalogue.

    Attributes
    ----------
    algorithm : str
        A key of `catalogue`.
    settings : Settings
        Settings of the algorithm's class.

    Raises
    ------
    SettingsError
        For an unknown algorithm, or settings of another class.
    """

    catalogue: ClassVar[Mapping[str, Algorithm]]
    noun: ClassVar[str]
    """Noun for an entry of the catalogue: "algorithm for masks"."""

    algorithm: str
    settings: Settings

    def __post_init__(self) -> None:
        if type(self.settings) is not self.of(self.algorithm).settings:
            raise SettingsError(f"the settings are not those of {self.algorithm}.")

    @classmethod
    def of(cls, name: str) -> Algorithm:
        """Return the algorithm of a name.

        Raises
        ------
        SettingsError
            For an unknown name.
        """
        if name not in cls.catalogue:
            raise SettingsError(f"{name} is no {cls.noun}; expected one of {', '.join(cls.catalogue)}.")
        return cls.catalogue[name]

    @classmethod
    def make(cls, algorithm: str | None = None, texts: Mapping[str, str] | None = None) -> Self:
        """Make a plan from a name (or the default) and `field=value` pairs of a command line.

        Raises
        ------
        SettingsError
            For an unknown algorithm or setting, or an invalid value.
        """
        name = str(cls.__dataclass_fields__["algorithm"].default) if algorithm is None else algorithm
        return cls(name, cls.of(name).settings.from_text(texts or {}))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a plan from a dictionary of `as_dict`.

        Raises
        ------
        SettingsError
            For unknown names or values.
        """
        name, settings = values.get("algorithm"), values.get("settings")
        if not isinstance(name, str) or not isinstance(settings, Mapping):
            raise SettingsError("a plan must name its algorithm and its settings.")
        return cls(name, cls.of(name).settings.from_dict(settings))

    def as_dict(self) -> dict[str, Any]:
        """Return the plan, ready for JSON."""
        return {"algorithm": self.algorithm, "settings": self.settings.as_dict()}

    def in_words(self) -> str:
        """Describe the plan, for the methods section."""
        raise NotImplementedError
