"""Decisions for the tests, numbered as the study numbers them."""

from collections.abc import Sequence
from dataclasses import replace

from raterscope.app.review import Decision, RegionSubject, SpotSubject, WeightSubject, fold


def journal(*decisions: Decision) -> list[Decision]:
    """Number decisions as the study does."""
    return [replace(decision, id=number) for number, decision in enumerate(decisions, start=1)]


def on(verb: str, x: float, y: float = 0.0, **more: object) -> Decision:
    position = {name: more.pop(name) for name in ("number", "from_x", "from_y") if name in more}
    return Decision(verb=verb, item=1, subject=SpotSubject(x=x, y=y, **position), **more)  # type: ignore[arg-type]


def a_region(**more: object) -> RegionSubject:
    return RegionSubject(structure="nodule", origin=(0, 0, 0), shape=(3, 4, 4), **more)  # type: ignore[arg-type]


def settle(verb: str, voxels: int, **more: object) -> Decision:
    region = a_region(rater="reader 2" if verb == "take" else "", **more)
    return Decision(verb=verb, item=1, subject=region, voxels=voxels)


def verdicts(decisions: Sequence[Decision], image: int = 1) -> list[tuple[float, float, str]]:
    return [(spot.x, spot.y, spot.verdict) for spot in fold(decisions).spots(image)]


def added(decisions: list[Decision], decision: Decision | None) -> list[Decision]:
    assert decision is not None
    return journal(*decisions, decision)


def weigh(name: str, weight: float = 0.5, reason: str = "r") -> Decision:
    subject = WeightSubject(weight=weight)
    return Decision(verb="weigh", annotators=(name,), subject=subject, reason=reason)
