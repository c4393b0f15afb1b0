"""The catalogue of algorithms and what can be set, as text for the command line."""

from __future__ import annotations

import textwrap

from raterscope.algorithms.catalogue import Algorithm
from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.assignment import AssignmentSettings
from raterscope.algorithms.settings import Settings, Spec

__all__ = ["settings_in_words"]

_WIDTH = 100


def settings_in_words() -> str:
    """List every algorithm and detector with its settings, as --set takes them."""
    lines: list[str] = []
    for heading, catalogue in (
        ("algorithms (--algorithm, with run: ALGORITHM)", CLUSTERERS),
        ("detectors (--detector)", DETECTORS),
    ):
        lines += [f"{heading}:", ""]
        for algorithm in catalogue.values():
            lines += _algorithm(algorithm)
    lines += ["with all of them:", "", *_settings(AssignmentSettings)]
    return "\n".join(lines) + "\n"


def _algorithm(algorithm: Algorithm) -> list[str]:
    lines = [f"  {algorithm.name}: {algorithm.title}", *_wrapped(algorithm.summary, 6)]
    return [*lines, *_settings(algorithm.settings), ""]


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
