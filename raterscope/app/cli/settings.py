"""The catalogue of algorithms and what can be set, as text for the command line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

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

__all__ = ["algorithms_in_words", "settings_in_words"]

_WIDTH = 100


_CATALOGUES: Mapping[str, tuple[tuple[str, Mapping[str, Algorithm]], ...]] = {
    "clicks": (
        ("algorithms for clicks (--algorithm, with run: ALGORITHM)", CLUSTERERS),
        ("detectors for clicks (--detector)", DETECTORS),
    ),
    "masks": (("algorithms for masks (--algorithm, with run: ALGORITHM)", FUSERS),),
    "labels": (("algorithms for labels (--algorithm, with run: ALGORITHM)", LABELLERS),),
    "pairs": (("paths for pairs (--path, with run: ALGORITHM)", PATHS),),
}
_WITH_ALL: Mapping[str, type[Settings]] = {"clicks": AssignmentSettings, "labels": QuestionSettings}


def algorithms_in_words(kind: str | None = None) -> str:
    """List the algorithms of a kind, or of all kinds; `watch` has none to choose."""
    lines: list[str] = []
    for heading, catalogue in _of(kind):
        lines += [f"{heading}:", ""]
        for one in catalogue.values():
            lines += _head(one)
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def settings_in_words(kind: str | None = None) -> str:
    """List the algorithms of a kind, or of all kinds, with their settings, as --set takes them.

    Of `watch` the settings that only it has; it takes those of oem and dem too.
    """
    if kind == "watch":
        return "\n".join(_of_watch()) + "\n"
    return "\n".join("\n".join(_of_kind(name)) + "\n" for name in _CATALOGUES if kind in (None, name))


def _of(kind: str | None) -> Iterator[tuple[str, Mapping[str, Algorithm]]]:
    """Give the catalogues of a kind, or of all, with what stands above each."""
    return (one for name, several in _CATALOGUES.items() if kind in (None, name) for one in several)


def _of_kind(kind: str) -> list[str]:
    lines: list[str] = []
    for heading, catalogue in _of(kind):
        lines += [f"{heading}:", "", *(line for one in catalogue.values() for line in _algorithm(one))]
    if kind in _WITH_ALL:
        lines += ["with all of them:", "", *_settings(_WITH_ALL[kind])]
    return lines


def _of_watch() -> list[str]:
    kinds = (StreamSettings, StoppingSettings, StepSettings)
    lines = ["how clicks are followed (the settings of oem and dem are understood too):", ""]
    return [*lines, *(line for kind in kinds for line in _settings(kind))]


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
