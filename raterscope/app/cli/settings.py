"""Algorithms and their settings as text for the command line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from raterscope.algorithms.clicks.stopping import StoppingSettings
from raterscope.algorithms.clicks.stream import StreamSettings
from raterscope.algorithms.settings import Algorithm, Settings, Spec
from raterscope.app.kinds.clicks.live_watching import StepSettings
from raterscope.app.kinds.kind import Kind

_WIDTH = 100


def algorithms_in_words(kinds: Iterable[Kind]) -> str:
    """List the algorithms of some kinds."""
    lines: list[str] = []
    for catalogue in (algorithm for kind in kinds for algorithm in kind.catalogues):
        lines += [f"{catalogue.heading}:", ""]
        for algorithm in catalogue.algorithms.values():
            lines += _head(algorithm)
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def settings_in_words(kinds: Iterable[Kind]) -> str:
    """List the algorithms of some kinds with their settings, as --set takes them."""
    return "\n".join("\n".join(_lines_of_kind(kind)) + "\n" for kind in kinds)


def watch_settings_in_words() -> str:
    """List the settings that only `watch` has; it takes those of oem and dem too."""
    lines = ["how clicks are watched (the settings of oem and dem are accepted too):", ""]
    for settings in (StreamSettings, StoppingSettings, StepSettings):
        lines += _settings(settings)
    return "\n".join(lines) + "\n"


def _lines_of_kind(kind: Kind) -> list[str]:
    lines: list[str] = []
    for heading, algorithms, _ in kind.catalogues:
        lines += [
            f"{heading}:",
            "",
            *(line for algorithm in algorithms.values() for line in _algorithm(algorithm)),
        ]
    shared = kind.load_catalogues().shared_settings
    return lines if shared is None else [*lines, "with all of them:", "", *_settings(shared)]


def _algorithm(algorithm: Algorithm) -> list[str]:
    return [*_head(algorithm), *_settings(algorithm.settings), ""]


def _head(algorithm: Algorithm) -> list[str]:
    return [f"  {algorithm.name}: {algorithm.title}", *_wrapped(algorithm.summary, 6)]


def _settings(settings: type[Settings]) -> list[str]:
    lines = []
    for spec in settings.specs():
        lines.append(f"      {spec.name}={_default(spec)}")
        lines += _wrapped(f"{spec.label}; {_values(spec)}. {spec.help}", 10)
    return lines


def _values(spec: Spec) -> str:
    if spec.kind == "choice":
        return " or ".join(key for key, _ in spec.choices)
    if spec.kind == "switch":
        return "yes or no"
    kind = "whole number, " if spec.kind == "integer" else ""
    return kind + spec.range_in_words() + (", or auto" if spec.optional else "")


def _default(spec: Spec) -> str:
    if spec.default is None:
        return "auto"
    if isinstance(spec.default, bool):
        return "yes" if spec.default else "no"
    return f"{spec.default:g}" if isinstance(spec.default, (int, float)) else spec.default


def _wrapped(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=" " * indent, subsequent_indent=" " * indent)
