"""What a fusion of clicks is held to: decided spots, viewed spots, control images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from raterscope.algorithms.clicks.data import FloatArray, KnownSpots
from raterscope.app.review import ReviewState, View, known_spots, viewed_places
from raterscope.app.study.records import TruePoints


class HeldFixed(NamedTuple):
    """What the expert knows of an image; see the fields of the same names in `Clicks`."""

    known: KnownSpots
    viewed: FloatArray | None
    control: bool | None


def held_fixed(
    image: int,
    state: ReviewState,
    views: Mapping[int, Sequence[View]],
    truth: TruePoints | None = None,
) -> HeldFixed:
    """Give what a fusion of an image is held to.

    Parameters
    ----------
    image : int
        Its number in the study.
    state : ReviewState
    views : mapping of image to views
        Spots that were viewed and left without a decision; empty where views were never recorded.
    truth : TruePoints, optional
        Imported true places to be held fixed too.
    """
    spots, control = state.spots(image), state.control(image)
    return HeldFixed(
        known=known_spots(spots, None if truth is None else (truth.x, truth.y)),
        viewed=viewed_places(views.get(image, ()), spots) if views else None,
        control=None if control is None else control.holds,
    )
