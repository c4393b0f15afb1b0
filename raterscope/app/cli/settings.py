"""The catalogue of algorithms and what can be set, as text for the command line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from raterscope.algorithms.catalogue import Algorithm
from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS
from raterscope.algorithms.clicks.assignment import AssignmentSettings
from raterscope.algorithms.clicks.stopping import StoppingSettings
from raterscope.algorithms.clicks.stream import StreamSettings
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import QuestionSettings
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.pairs.catalogue import PATHS
from raterscope.algorithms.settings import Settings, Spec
from raterscope.app.clicks.watching import StepSettings

__all__ = ["settings_in_words"]

_WIDTH = 100


def settings_in_words(kind: str | None = None) -> str:
    """List the algorithms of a kind, or of all kinds, with their settings, as --set takes them.

    Of `watch` the settings that only it has; it takes those of oem and dem too.
    """
    if kind == "watch":
        return "\n".join(_of_watch()) + "\n"
    lists = {"clicks": _of_clicks, "masks": _of_masks, "labels": _of_labels, "pairs": _of_pairs}
    return "\n".join("\n".join(make()) + "\n" for name, make in lists.items() if kind in (None, name))


def _of_clicks() -> list[str]:
    lines: list[str] = []
    for heading, catalogue in (
        ("algorithms for clicks (--algorithm, with run: ALGORITHM)", CLUSTERERS),
        ("detectors for clicks (--detector)", DETECTORS),
    ):
        lines += _catalogue(heading, catalogue)
    return [*lines, "with all of them:", "", *_settings(AssignmentSettings)]


def _of_watch() -> list[str]:
    kinds = (StreamSettings, StoppingSettings, StepSettings)
    lines = ["how clicks are followed (the settings of oem and dem are understood too):", ""]
    return [*lines, *(line for kind in kinds for line in _settings(kind))]


def _of_masks() -> list[str]:
    return _catalogue("algorithms for masks (--algorithm, with run: ALGORITHM)", FUSERS)


def _of_labels() -> list[str]:
    lines = _catalogue("algorithms for labels (--algorithm, with run: ALGORITHM)", LABELLERS)
    return [*lines, "with all of them:", "", *_settings(QuestionSettings)]


def _of_pairs() -> list[str]:
    return _catalogue("paths for pairs (--path, with run: ALGORITHM)", PATHS)


def _catalogue(heading: str, catalogue: Mapping[str, Algorithm]) -> list[str]:
    return [f"{heading}:", "", *(line for one in catalogue.values() for line in _algorithm(one))]


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
