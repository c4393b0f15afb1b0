"""Raters who outline one structure in a simulated volume: each with a bias, a scatter and habits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from raterscope.algorithms.masks.data import BoolArray
from raterscope.algorithms.progress import Look, Watch, silent
from raterscope.algorithms.simulation.body import Scene, chest, pelvis, slabs, smooth_field

__all__ = ["SimulatedCase", "SimulatedRater", "gather_raters", "simulate_case"]

_SCENES = {"nodule": chest, "prostate": pelvis}

_LOOKS = {"nodule": (3, 8), "prostate": (19, 0)}
"""Looks while a scene is painted: of each slab, and besides."""


@dataclass(frozen=True, slots=True)
class SimulatedRater:
    """How one rater outlines.

    Attributes
    ----------
    name : str
    bias : float
        mm the whole outline lies too far outside.
    scatter : float
        Standard deviation of the outline's place, mm.
    leaks : bool
        In one place the outline runs into the neighbour.
    wider : bool
        Follows the outline that also takes in what lies ambiguously beside the structure.
    """

    name: str
    bias: float = 0.0
    scatter: float = 0.6
    leaks: bool = False
    wider: bool = False


@dataclass(frozen=True, eq=False)
class SimulatedCase:
    """A volume, the structure in it, and what the raters outlined.

    Attributes
    ----------
    volume : (Z, Y, X) int16
        Hounsfield units.
    truth : (Z, Y, X) bool
    masks : (P, Z, Y, X) bool
    leak : (Z, Y, X) bool
        Where those who leak do so.
    raters : tuple of SimulatedRater
    spacing : (slice, row, column)
        mm.
    window : (centre, width)
        Hounsfield units that show the structure well.
    """

    volume: NDArray[np.int16]
    truth: BoolArray
    masks: BoolArray
    leak: BoolArray
    raters: tuple[SimulatedRater, ...]
    spacing: tuple[float, float, float]
    window: tuple[float, float]

    @property
    def annotators(self) -> tuple[str, ...]:
        """The raters' names."""
        return tuple(rater.name for rater in self.raters)


def gather_raters(count: int, seed: int, *, wider: int = 0) -> tuple[SimulatedRater, ...]:
    """Gather raters of unlike care; the third of them leaks, the last `wider` follow the wider outline.

    Raises
    ------
    ValueError
        For fewer than one rater, or more who follow the wider outline than there are.
    """
    if count < 1 or not 0 <= wider <= count:
        raise ValueError(f"{wider} of {count} raters cannot take the wider outline.")
    rng = np.random.default_rng([seed, 1])
    return tuple(
        SimulatedRater(
            f"Reader {p + 1}",
            bias=float(rng.normal(0.0, 0.4)),
            scatter=float(rng.uniform(0.4, 0.9)),
            leaks=p == 2,
            wider=p >= count - wider,
        )
        for p in range(count)
    )


def simulate_case(
    seed: int,
    shape: tuple[int, int, int] = (60, 192, 192),
    spacing: tuple[float, float, float] = (2.5, 0.8, 0.8),
    raters: int | Sequence[SimulatedRater] = 5,
    *,
    subject: str = "nodule",
    watch: Watch = silent,
) -> SimulatedCase:
    """Simulate a CT volume and its raters; the same arguments give the same case.

    Each rater's outline is the truth's, moved by the rater's bias and by a smooth random field. It is drawn
    at once on the whole volume's voxels, as a person would who sees the volume at its own spacing.

    Parameters
    ----------
    seed : int
    shape : (slices, rows, columns)
    spacing : (slice, row, column)
        mm.
    raters : int or sequence of SimulatedRater
        How many `gather_raters` gathers, or the raters themselves.
    subject : {"nodule", "prostate"}
    watch : Watch

    Raises
    ------
    ValueError
        For another subject, or no raters.

    Examples
    --------
    >>> case = simulate_case(1, shape=(8, 64, 64), raters=3)
    >>> case.masks.shape
    (3, 8, 64, 64)
    """
    if subject not in _SCENES:
        raise ValueError(f"subject {subject!r}; expected one of {', '.join(_SCENES)}.")
    crowd = gather_raters(raters, seed) if isinstance(raters, int) else tuple(raters)
    if not crowd:
        raise ValueError("a case of no raters; expected at least 1.")
    rng = np.random.default_rng([seed, 0])
    each, besides = _LOOKS[subject]
    looks = each * sum(1 for _ in slabs(shape)) + besides
    scene = _SCENES[subject](rng, shape, spacing, _steps(watch, 0.0, 0.5, looks, "painting the volume"))
    volume = _with_noise(scene.values, rng, watch)
    part = _around(scene, shape, spacing)
    truth, leak = (np.zeros(shape, dtype=np.bool_) for _ in range(2))
    masks = np.zeros((len(crowd), *shape), dtype=np.bool_)
    near, wider = scene.inside[part], scene.wider[part]
    box = near.shape[0], near.shape[1], near.shape[2]
    count = sum(1 for _ in slabs(box))
    lobe = _lobe(scene, spacing, part)
    marked, leaking = (np.empty(box, dtype=np.bool_) for _ in range(2))
    for slab in slabs(box, _steps(watch, 0.58, 0.6, count, "adding the structure")):
        marked[slab] = near[slab] > 0
        leaking[slab] = (lobe(slab) > 0) & ~marked[slab]
    truth[part], leak[part] = _largest(marked), leaking
    for p, rater in enumerate(crowd):
        begin, end = (0.6 + 0.4 * at / len(crowd) for at in (p, p + 1))
        look = _steps(watch, begin, end, 2 * count, f"outlining as {rater.name}")
        own = np.random.default_rng([seed, 2, p])
        moved = smooth_field(own, box, spacing, 0.6 * scene.radius, look)
        for slab in slabs(box, look):
            height = (wider if rater.wider else near)[slab]
            if rater.leaks:
                height = np.maximum(height, lobe(slab))
            marked[slab] = height + np.float32(rater.bias) + np.float32(rater.scatter) * moved[slab] > 0
        masks[p][part] = _largest(marked)
    return SimulatedCase(volume, truth, masks, leak, crowd, spacing, scene.window)


def _steps(watch: Watch, start: float, stop: float, looks: int, words: str) -> Look:
    """Report that a share of the work goes on, by so many looks."""
    count = 0

    def look() -> None:
        nonlocal count
        watch(start + (stop - start) * min(count / looks, 1.0), words)
        count += 1

    return look


def _with_noise(values: NDArray[np.float32], rng: np.random.Generator, watch: Watch) -> NDArray[np.int16]:
    """Add a scanner's grain, slab by slab: drawn in the order of the voxels."""
    volume = np.empty(values.shape, dtype=np.int16)
    shape = values.shape[0], values.shape[1], values.shape[2]
    look = _steps(watch, 0.5, 0.58, sum(1 for _ in slabs(shape)), "adding noise")
    for slab in slabs(shape, look):
        grain = rng.standard_normal(values[slab].shape, dtype=np.float32)
        grain = ndimage.gaussian_filter1d(ndimage.gaussian_filter1d(grain, 0.6, axis=1), 0.6, axis=2)
        volume[slab] = np.clip(np.rint(values[slab] + np.float32(26.0) * grain), -1024, 3071)
    return volume


def _around(
    scene: Scene, shape: tuple[int, int, int], spacing: tuple[float, float, float]
) -> tuple[slice, slice, slice]:
    """Give the part of the volume in which anybody outlines."""
    reach = 2.6 * scene.radius
    low = [max(0, int((at - reach) / side)) for at, side in zip(scene.centre, spacing, strict=True)]
    high = [
        min(size, int((at + reach) / side) + 2)
        for at, side, size in zip(scene.centre, spacing, shape, strict=True)
    ]
    return slice(low[0], high[0]), slice(low[1], high[1]), slice(low[2], high[2])


def _lobe(
    scene: Scene, spacing: tuple[float, float, float], part: tuple[slice, slice, slice]
) -> Callable[[slice], NDArray[np.float32]]:
    """Return a function for the height above the outline of a leak's lobe, mm, in a slab of a part."""
    place = scene.centre + 1.1 * scene.radius * scene.outward
    z, y, x = (
        np.arange(cut.start, cut.stop) * side - at for cut, side, at in zip(part, spacing, place, strict=True)
    )

    def height(slab: slice) -> NDArray[np.float32]:
        away = np.sqrt(z[slab, None, None] ** 2 + y[None, :, None] ** 2 + x[None, None] ** 2)
        return np.asarray(0.55 * scene.radius - away, dtype=np.float32)

    return height


def _largest(mask: BoolArray) -> BoolArray:
    """Keep the largest connected part."""
    box = tuple(
        slice(int(found[0]), int(found[-1]) + 1)
        for axis in range(3)
        if len(found := np.flatnonzero(mask.any(axis=tuple({0, 1, 2} - {axis}))))
    )
    labels, count = ndimage.label(mask[box])
    if count < 2:
        return mask
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    largest = np.zeros_like(mask)
    largest[box] = labels == sizes.argmax()
    return largest
