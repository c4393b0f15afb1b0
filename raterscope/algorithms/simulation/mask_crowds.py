"""Simulated CT volumes, and raters who outline a structure with bias, scatter, habits and leaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from raterscope.algorithms.masks.data import BoolArray
from raterscope.algorithms.masks.metrics import surface_of
from raterscope.algorithms.progress import Check, Watch, no_check, parts_of, silent

Field = NDArray[np.float32]
Shape = tuple[int, int, int]
Spacing = tuple[float, float, float]

_SLAB = 1 << 18
"""Number of voxels between two calls of the check, some milliseconds of work."""

_EDGE = 0.5
"""Width of the transition between tissues (the scanner's blur), mm."""

_AIR, _LUNG, _FAT, _MUSCLE, _BLOOD, _BONE, _MARROW = -1000.0, -860.0, -105.0, 55.0, 60.0, 650.0, 220.0


@dataclass(frozen=True, eq=False)
class Scene:
    """Painted volume, and its outlines."""

    values: Field  # (Z, Y, X): Hounsfield units, without noise
    # (Z, Y, X): height above the structure's outline, mm, above 0 inside; near the outline it is the signed
    # distance
    inside: Field
    wider: Field  # (Z, Y, X): the same for an outline that includes the ambiguous part beside the structure
    # (slice, row, column): unit vector in mm towards a neighbour that is easily mistaken for part of the
    # structure
    outward: NDArray[np.float64]
    centre: NDArray[np.float64]  # (slice, row, column): mm from the first voxel
    radius: float  # mm
    window: tuple[float, float]  # (centre, width): Hounsfield units


def slabs(shape: Shape, check: Check = no_check) -> Iterator[slice]:
    """Divide a volume into slabs of slices; `check` is called before each."""
    for begin, end in parts_of(shape[0], _SLAB // (shape[1] * shape[2])):
        check()
        yield slice(begin, end)


def smooth_field(
    rng: np.random.Generator, shape: Shape, spacing: Spacing, length: float, check: Check = no_check
) -> Field:
    """Make a random field with mean 0, standard deviation 1 and bumps of `length` mm.

    `check` is called before each of the `slabs`.
    """
    steps = [max(1, int(length / side / 1.5)) for side in spacing]
    coarse = tuple(size // step + 4 for size, step in zip(shape, steps, strict=True))
    widths = [length / (side * step) / 2 for side, step in zip(spacing, steps, strict=True)]
    rough = rng.standard_normal(coarse).astype(np.float32)
    values = ndimage.gaussian_filter(rough, widths, mode="wrap")
    values -= values.mean()
    values /= values.std()
    values = _stretched(values, 0, shape[0], steps[0])
    field = np.empty(shape, dtype=np.float32)
    for slab in slabs(shape, check):
        field[slab] = _stretched(_stretched(values[slab], 1, shape[1], steps[1]), 2, shape[2], steps[2])
    return field


def _stretched(values: Field, axis: int, size: int, step: int) -> Field:
    """Interpolate one axis to `size` voxels by a smooth cubic, with `step` voxels between values."""
    position = np.arange(size) / step + 1
    low = position.astype(np.intp)
    t = (position - low).astype(np.float32)
    shares = ((1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3)
    form = [1, 1, 1]
    form[axis] = size
    total = np.zeros([size if a == axis else n for a, n in enumerate(values.shape)], dtype=np.float32)
    for offset, share in zip((-1, 0, 1, 2), shares, strict=True):
        total += np.take(values, low + offset, axis=axis) * (share / np.float32(6)).reshape(form)
    return total


def _axes(shape: Shape, spacing: Spacing) -> list[Field]:
    """Return the coordinates (mm) along each axis from the first voxel, shaped for broadcasting."""
    lines = [
        np.arange(size, dtype=np.float32) * np.float32(side)
        for size, side in zip(shape, spacing, strict=True)
    ]
    return [lines[0][:, None, None], lines[1][None, :, None], lines[2][None, None, :]]


def _ellipse(axes: list[Field], centre: tuple[float, ...], half: tuple[float, ...]) -> Field:
    """Return the height above an ellipsoid, mm; an infinite half axis makes a cylinder."""
    square = sum(((axis - at) / size) ** 2 for axis, at, size in zip(axes, centre, half, strict=True))
    smallest = min(half)
    return np.asarray((1 - np.sqrt(square)) * smallest, dtype=np.float32)


def _paint(values: Field, inside: NDArray[np.floating], tissue: float | Field, edge: float = _EDGE) -> None:
    """Paint a tissue over the volume; at its outline both tissues are mixed equally."""
    share = np.asarray(np.clip(inside / np.float32(2 * edge) + np.float32(0.5), 0, 1), dtype=np.float32)
    values += share * (np.float32(tissue) - values if isinstance(tissue, float) else tissue - values)


def _brush(values: Field, check: Check) -> Callable[..., None]:
    """Return a function that paints on these values and calls `check` before each stroke."""

    def paint(inside: NDArray[np.floating], tissue: float | Field, edge: float = _EDGE) -> None:
        check()
        _paint(values, inside, tissue, edge)

    return paint


def chest(rng: np.random.Generator, shape: Shape, spacing: Spacing, check: Check = no_check) -> Scene:
    """Paint the right half of a chest with a nodule in the lung that has a veil on one side."""
    axes = _axes(shape, spacing)
    deep, high, wide = (size * side for size, side in zip(shape, spacing, strict=True))
    endless = 1e6
    values = np.full(shape, _AIR, dtype=np.float32)
    paint = _brush(values, check)
    wave = smooth_field(rng, shape, spacing, min(high, wide) / 4, check)
    body = (
        _ellipse(axes, (deep / 2, 0.5 * high, 0.98 * wide), (endless, 0.48 * high, 0.95 * wide)) + 1.5 * wave
    )
    paint(body, _FAT)
    paint(body - 0.03 * wide, _MUSCLE)
    lung = (
        _ellipse(axes, (deep / 2, 0.5 * high, 0.47 * wide), (endless, 0.35 * high, 0.355 * wide)) + 1.2 * wave
    )
    heart = _ellipse(axes, (0.3 * deep, 0.36 * high, 0.98 * wide), (deep, 0.24 * high, 0.3 * wide))
    spine = _ellipse(axes, (deep / 2, 0.79 * high, 0.96 * wide), (endless, 0.105 * high, 0.13 * wide))
    _ribs(values, axes, lung, (deep, high, wide))
    bone = _BONE + 60 * wave
    paint(spine, bone)
    paint(spine - 2.2, _MARROW)
    lung = np.minimum(np.minimum(lung, -heart - 1.0), -spine - 4.0)
    texture = smooth_field(rng, shape, spacing, 9.0, check)
    paint(lung, np.asarray(_LUNG + 18 * texture, dtype=np.float32))
    paint(heart, _BLOOD)
    root = np.array([deep / 2, 0.52 * high, 0.72 * wide])
    _vessels(rng, values, spacing, lung, root, 0.6 * min(high, wide))
    centre = np.array([deep / 2, rng.uniform(0.4, 0.58) * high, rng.uniform(0.29, 0.37) * wide])
    radius = 0.068 * min(high, wide)
    blob = _blob(rng, shape, spacing, centre, radius, 0.2, check)
    inside, wider = _heights(blob, axes, slice(None))
    paint(np.minimum(_neighbour(axes, blob), lung), _BLOOD)
    veil = np.minimum(wider, lung)
    paint(veil, np.asarray(-620 + 25 * texture, dtype=np.float32), edge=1.5)
    paint(inside, np.asarray(25 + 12 * texture, dtype=np.float32), edge=0.8)
    return Scene(values, inside, wider, blob.outward, centre, radius, (-600.0, 1500.0))


def _ribs(values: Field, axes: list[Field], lung: Field, size: tuple[float, float, float]) -> None:
    """Draw ribs around the lung that descend towards the front."""
    _, high, wide = size
    angle = np.arctan2((axes[1] - 0.5 * high) / high, (0.47 * wide - axes[2]) / wide)
    turn = (axes[0] / 24.0 + 1.7 * angle) % 1.0
    across = (0.25 - np.abs(turn - 0.5)) * 24.0
    along = 2.6 - np.abs(lung + 5.0)
    reach = 0.75 * wide - axes[2]
    rib = np.minimum(np.minimum(across, along), reach)
    _paint(values, rib, _BONE)
    _paint(values, rib - 1.3, _MARROW)


def _vessels(
    rng: np.random.Generator,
    values: Field,
    spacing: Spacing,
    lung: Field,
    root: NDArray[np.float64],
    reach: float,
) -> None:
    """Draw vessels that branch from the root of the lung and become thinner."""
    todo = [(root, _towards(rng, np.array([0.0, 0.0, -1.0]), 1.1), 0.032 * reach, reach) for _ in range(10)]
    amount = np.full(values.shape, -1e3, dtype=np.float32)
    while todo:
        position, direction, radius, rest = todo.pop()
        run = rest * rng.uniform(0.2, 0.36)
        for _ in range(max(1, int(run / (0.8 * radius)))):
            direction = _towards(rng, direction, 0.13)
            position = position + 0.8 * radius * direction
            _ball(amount, position, radius, spacing)
        if radius > 0.5 and rest > 6:
            for turn in (0.35, 0.6):
                todo.append(
                    (position, _towards(rng, direction, turn), radius * rng.uniform(0.68, 0.86), rest - run)
                )
    _paint(values, np.minimum(amount, lung), _BLOOD - 20)


def _towards(rng: np.random.Generator, direction: NDArray[np.float64], turn: float) -> NDArray[np.float64]:
    turned = direction + turn * rng.standard_normal(3)
    return np.asarray(turned / np.linalg.norm(turned))


def _ball(amount: Field, centre: NDArray[np.float64], radius: float, side: Spacing) -> None:
    """Raise `amount` to the height above a ball's outline, near the ball."""
    part: list[slice] = []
    squares: list[NDArray[np.float64]] = []
    for at, step, size in zip(centre.tolist(), side, amount.shape, strict=True):
        low = max(math.floor((at - radius - 1) / step), 0)
        high = min(math.ceil((at + radius + 1) / step) + 1, size)
        if high <= low:
            return
        part.append(slice(low, high))
        squares.append((np.arange(low, high) * step - at) ** 2)
    away = np.sqrt(squares[0][:, None, None] + squares[1][:, None] + squares[2])
    near = amount[tuple(part)]
    np.maximum(near, (radius - away).astype(np.float32), out=near)


@dataclass(frozen=True, eq=False)
class _Blob:
    """Irregular ellipsoid at `centre`, with a lobe on one side and a neighbouring structure on another."""

    centre: NDArray[np.float64]
    radius: float
    half: NDArray[np.float64]
    ragged: Field
    lobe: NDArray[np.float64]
    outward: NDArray[np.float64]


def _blob(
    rng: np.random.Generator,
    shape: Shape,
    spacing: Spacing,
    centre: NDArray[np.float64],
    radius: float,
    ragged: float,
    check: Check,
) -> _Blob:
    """Draw a blob; its outline varies by a share `ragged` of its radius."""
    half = radius * rng.uniform(0.88, 1.12, size=3)
    field = smooth_field(rng, shape, spacing, 0.65 * radius, check)
    field *= np.float32(ragged * radius)
    angle = rng.uniform(0, 2 * np.pi)
    lobe = centre + 0.85 * radius * np.array([0.15, np.sin(angle), np.cos(angle)])
    outward = np.array([0.0, np.sin(angle + 2.4), np.cos(angle + 2.4)])
    return _Blob(centre, radius, half, field, lobe, outward)


def _heights(blob: _Blob, axes: list[Field], slab: slice) -> tuple[Field, Field]:
    """Return the heights above a blob's outline, without and with the lobe, in a slab of slices."""
    inside = _ellipse(axes, tuple(blob.centre), tuple(blob.half))
    inside += blob.ragged[slab]
    return inside, np.maximum(inside, _ellipse(axes, tuple(blob.lobe), (0.72 * blob.radius,) * 3))


def _neighbour(axes: list[Field], blob: _Blob) -> Field:
    """Return the height above a vessel that runs along the slices beside a blob."""
    centre = blob.centre + 1.15 * blob.radius * blob.outward
    radius = blob.radius
    return _ellipse(axes, tuple(centre), (2.2 * radius, 0.38 * radius, 0.38 * radius))


def pelvis(rng: np.random.Generator, shape: Shape, spacing: Spacing, check: Check = no_check) -> Scene:
    """Paint a pelvis with a prostate below the bladder and seminal vesicles behind it at one side."""
    axes = _axes(shape, spacing)
    size = tuple(count * side for count, side in zip(shape, spacing, strict=True))
    deep, high, wide = size
    wave = smooth_field(rng, shape, spacing, min(high, wide) / 5, check)
    texture = smooth_field(rng, shape, spacing, 6.0, check)
    centre = np.array([0.48 * deep, 0.485 * high, 0.5 * wide])
    radius = 0.115 * min(high, wide)
    blob = _blob(rng, shape, spacing, centre, radius, 0.07, check)
    values, inside, wider = (np.empty(shape, dtype=np.float32) for _ in range(3))
    for slab in slabs(shape):
        part = [axes[0][slab], axes[1], axes[2]]
        heights = _heights(blob, part, slab)
        painted = _pelvis(part, size, wave[slab], texture[slab], blob, heights, check)
        values[slab], inside[slab], wider[slab] = painted
    return Scene(values, inside, wider, blob.outward, centre, radius, (40.0, 350.0))


def _pelvis(
    axes: list[Field],
    size: tuple[float, ...],
    wave: Field,
    texture: Field,
    blob: _Blob,
    heights: tuple[Field, Field],
    check: Check,
) -> tuple[Field, Field, Field]:
    """Paint a slab of a pelvis; return its values, and the blob's heights outside the bowel."""
    deep, high, wide = size
    endless = 1e6
    values = np.asarray(_FAT + 6 * texture, dtype=np.float32)
    paint = _brush(values, check)
    for sign in (-1.0, 1.0):
        muscle = _ellipse(
            axes, (deep / 2, 0.47 * high, (0.5 + 0.27 * sign) * wide), (endless, 0.22 * high, 0.07 * wide)
        )
        paint(muscle + 1.5 * wave, _MUSCLE)
        bone = _ellipse(
            axes,
            (deep * 0.5, 0.42 * high, (0.5 + 0.45 * sign) * wide),
            (0.8 * deep, 0.19 * high, 0.11 * wide),
        )
        paint(bone + 1.2 * wave, np.asarray(_BONE + 70 * wave, dtype=np.float32))
        paint(bone + 1.2 * wave - 3.0, np.asarray(_MARROW + 40 * texture, dtype=np.float32), edge=1.0)
        buttocks = _ellipse(
            axes, (deep / 2, 0.92 * high, (0.5 + 0.26 * sign) * wide), (endless, 0.16 * high, 0.24 * wide)
        )
        paint(buttocks + 1.5 * wave, _MUSCLE)
    joint = _ellipse(axes, (deep * 0.45, 0.1 * high, 0.5 * wide), (0.4 * deep, 0.07 * high, 0.17 * wide))
    paint(joint + wave, _BONE)
    paint(joint + wave - 3.0, _MARROW, edge=1.0)
    bladder = _ellipse(axes, (0.95 * deep, 0.36 * high, 0.5 * wide), (0.33 * deep, 0.15 * high, 0.19 * wide))
    paint(bladder + wave, 50.0)
    paint(bladder + wave - 2.5, 6.0)
    bowel = (
        _ellipse(axes, (deep / 2, 0.73 * high, 0.5 * wide), (endless, 0.085 * high, 0.1 * wide)) + 1.2 * wave
    )
    paint(bowel, 45.0)
    gas = _ellipse(axes, (deep / 2, 0.715 * high, 0.5 * wide), (endless, 0.03 * high, 0.045 * wide))
    paint(gas + wave, -850.0)
    inside, wider = np.minimum(heights[0], -bowel - 1.5), np.minimum(heights[1], -bowel - 1.0)
    paint(np.minimum(_neighbour(axes, blob), -bowel - 1.0), 42.0, edge=1.0)
    paint(wider, np.asarray(22 + 6 * texture, dtype=np.float32), edge=1.0)
    paint(inside, np.asarray(58 + 8 * texture, dtype=np.float32), edge=0.8)
    return values, inside, wider


_SCENES = {"nodule": chest, "prostate": pelvis}

_LOOKS = {"nodule": (3, 8), "prostate": (19, 0)}
"""Number of calls of the check while a scene is painted: for each slab, and in addition."""


@dataclass(frozen=True, slots=True)
class SimulatedRater:
    """Habits of one rater."""

    name: str
    bias: float = 0.0  # mm the whole outline lies too far outside
    scatter: float = 0.6  # standard deviation of the outline's place, mm
    leaks: bool = False  # the outline runs into the neighbour at one position
    wider: bool = False  # the outline includes the ambiguous part beside the structure


@dataclass(frozen=True, eq=False)
class SimulatedCase:
    """Volume, its structure, and the raters' outlines."""

    volume: NDArray[np.int16]  # (Z, Y, X): Hounsfield units
    truth: BoolArray  # (Z, Y, X)
    masks: BoolArray  # (P, Z, Y, X)
    leak: BoolArray  # (Z, Y, X): region of the leaks
    raters: tuple[SimulatedRater, ...]
    spacing: tuple[float, float, float]  # (slice, row, column): mm
    window: tuple[float, float]  # (centre, width): Hounsfield units that show the structure well

    @property
    def annotators(self) -> tuple[str, ...]:
        """Names of the raters."""
        return tuple(rater.name for rater in self.raters)


def gather_raters(count: int, seed: int, *, wider: int = 0) -> tuple[SimulatedRater, ...]:
    """Return raters of different care; the third leaks, and the last `wider` follow the wider outline.

    Raises `ValueError` for fewer than one rater, or `wider` above the number of raters.
    """
    if count < 1 or not 0 <= wider <= count:
        raise ValueError(f"{wider} of {count} raters cannot follow the wider outline.")
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

    Each rater's outline is the true outline, shifted by the rater's bias and a smooth random field, on the
    voxels of the volume.

    `shape`: (slices, rows, columns).
    `spacing`: (slice, row, column), mm.
    `raters`: number of raters for `gather_raters`, or the raters themselves.
    `subject`: "nodule" or "prostate".
    Raises `ValueError` for an unknown subject, or without raters.
    """
    if subject not in _SCENES:
        raise ValueError(f"subject {subject!r}; expected one of {', '.join(_SCENES)}.")
    crowd = gather_raters(raters, seed) if isinstance(raters, int) else tuple(raters)
    if not crowd:
        raise ValueError("a case without raters; expected at least 1.")
    rng = np.random.default_rng([seed, 0])
    per_slice, besides = _LOOKS[subject]
    looks = per_slice * sum(1 for _ in slabs(shape)) + besides
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
        check = _steps(watch, begin, end, 2 * count, f"outlining as {rater.name}")
        own = np.random.default_rng([seed, 2, p])
        moved = smooth_field(own, box, spacing, 0.6 * scene.radius, check)
        for slab in slabs(box, check):
            height = (wider if rater.wider else near)[slab]
            if rater.leaks:
                height = np.maximum(height, lobe(slab))
            marked[slab] = height + np.float32(rater.bias) + np.float32(rater.scatter) * moved[slab] > 0
        masks[p][part] = _largest(marked)
    return SimulatedCase(volume, truth, masks, leak, crowd, spacing, scene.window)


def _steps(watch: Watch, start: float, stop: float, looks: int, text: str) -> Check:
    """Return a check that reports a share of the progress in a number of steps."""
    count = 0

    def check() -> None:
        nonlocal count
        watch(start + (stop - start) * min(count / looks, 1.0), text)
        count += 1

    return check


def _with_noise(values: NDArray[np.float32], rng: np.random.Generator, watch: Watch) -> NDArray[np.int16]:
    """Add a scanner's noise slab by slab, in the order of the voxels."""
    volume = np.empty(values.shape, dtype=np.int16)
    shape = values.shape[0], values.shape[1], values.shape[2]
    check = _steps(watch, 0.5, 0.58, sum(1 for _ in slabs(shape)), "adding noise")
    for slab in slabs(shape, check):
        grain = rng.standard_normal(values[slab].shape, dtype=np.float32)
        grain = ndimage.gaussian_filter1d(ndimage.gaussian_filter1d(grain, 0.6, axis=1), 0.6, axis=2)
        volume[slab] = np.clip(np.rint(values[slab] + np.float32(26.0) * grain), -1024, 3071)
    return volume


def _around(
    scene: Scene, shape: tuple[int, int, int], spacing: tuple[float, float, float]
) -> tuple[slice, slice, slice]:
    """Return the part of the volume that contains all outlines."""
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
    centre = scene.centre + 1.1 * scene.radius * scene.outward
    z, y, x = (
        np.arange(cut.start, cut.stop) * side - at
        for cut, side, at in zip(part, spacing, centre, strict=True)
    )

    def height(slab: slice) -> NDArray[np.float32]:
        away = np.sqrt(z[slab, None, None] ** 2 + y[None, :, None] ** 2 + x[None, None] ** 2)
        return np.asarray(0.55 * scene.radius - away, dtype=np.float32)

    return height


def _largest(mask: BoolArray) -> BoolArray:
    """Keep the largest connected part."""
    box = tuple(
        slice(int(result[0]), int(result[-1]) + 1)
        for axis in range(3)
        if len(result := np.flatnonzero(mask.any(axis=tuple({0, 1, 2} - {axis}))))
    )
    labels, count = ndimage.label(mask[box])
    if count < 2:
        return mask
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    largest = np.zeros_like(mask)
    largest[box] = labels == sizes.argmax()
    return largest


_RADIUS = 0.6
"""Radius of the ball, as a share of that of a ball with the structure's volume."""


def strict(masks: BoolArray) -> BoolArray:
    """Return the voxels that more than half of the raters marked, (Z, Y, X), from masks (P, Z, Y, X)."""
    return np.asarray(2 * masks.sum(axis=0) > len(masks))


def leaking(masks: BoolArray, leakers: int, seed: int) -> BoolArray:
    """Add raters with a common leak to masks; return all masks, (P + leakers, Z, Y, X).

    Each new rater copies a random rater, and adds a ball around a random surface voxel of the strict majority
    vote; the ball is the same for all.

    `masks`: (P, Z, Y, X); the vote must not be empty. `leakers`: from 1 to P.
    """
    rng = np.random.default_rng(seed)
    reference = strict(masks)
    copied = rng.integers(len(masks), size=1) if leakers == 1 else rng.permutation(len(masks))[:leakers]
    surface = np.argwhere(surface_of(reference))
    centre = surface[rng.integers(len(surface))]
    radius = _RADIUS * np.cbrt(np.count_nonzero(reference) * 0.75 / np.pi)
    axes = np.ogrid[tuple(map(slice, reference.shape))]
    away = sum((axis - at) ** 2 for axis, at in zip(axes, centre, strict=True))
    return np.concatenate([masks, masks[copied] | (away <= radius**2)])
