"""Rigid registration of two volumes by mutual information, and signs of its failure.

References
----------
.. [mattes2003] D. Mattes, D. R. Haynor, H. Vesselle, T. K. Lewellen and W. Eubank, "PET-CT image registration
   in the chest using free-form deformations", IEEE Transactions on Medical Imaging 22 (2003) 120-128,
   doi:10.1109/TMI.2003.809072.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Cancelled, RefusedError, Watch, part, steps_of

Triple = tuple[float, float, float]

FEWEST = 4
"""Minimum number of voxels along each axis."""

MIN_OVERLAP = 0.3
"""Minimum share of the smaller volume that lies within the other."""

MIN_INFORMATION = 0.2
"""Minimum mutual information, nats; below it two volumes have almost nothing in common."""

CLEAR = 0.9
"""Maximum mutual information at another position, as a share of that of the result."""

_TURNS = (-90.0, -40.0, 40.0, 90.0, 180.0)
"""Angles of additional starts about each axis, degrees."""

_TURN_STEP = 45.0
"""Step of a grid of rotations about all axes, degrees; the best rotations are additional starts."""

_MEASURED_STARTS = 5
"""Number of starts from this grid."""

_NEAR = 5.0
"""Maximum differences, mm and degrees, of two transforms that are the same position."""

_RESTARTS = 9
"""Maximum number of searches from displaced positions that confirm the result."""

_PARTS = 4
"""Number of parts of the voxels that show how uncertain a position is."""

_BLOCK = 4
_MAX_MEASURED = 1 << 17

_CANDIDATES = 3
_SEED = 1
"""Seed of the samples; SimpleITK reads 0 as the current time."""

_BINS = 32
_SAMPLES = 30_000
_SHRINK = (4, 2, 1)
_ITERATIONS = 80


@dataclass(frozen=True)
class RigidMotion:
    """Rotation about a centre, followed by a shift, in millimetres of the patient's system.

    Axes are those of DICOM: x to the left, y to the back, z to the head. The rotation is about x first, then
    y, then z, through `centre`.
    """

    shift: Triple = (0.0, 0.0, 0.0)  # mm
    rotation: Triple = (0.0, 0.0, 0.0)  # degrees
    centre: Triple = (0.0, 0.0, 0.0)  # mm

    def __post_init__(self) -> None:
        for name in ("shift", "rotation", "centre"):
            values = tuple(float(value) for value in getattr(self, name))
            if len(values) != 3 or not all(map(math.isfinite, values)):
                raise ValueError(f"{name} of a motion is {values}; expected three finite numbers.")
            object.__setattr__(self, name, values)

    @classmethod
    def from_matrix(cls, matrix: NDArray[np.floating], centre: Triple) -> RigidMotion:
        """Split a rigid (4, 4) matrix into shift and rotation about a centre."""
        turn = np.asarray(matrix, dtype=float)[:3, :3]
        about_y = math.asin(float(np.clip(-turn[2, 0], -1.0, 1.0)))
        about_x = math.atan2(float(turn[2, 1]), float(turn[2, 2]))
        about_z = math.atan2(float(turn[1, 0]), float(turn[0, 0]))
        x, y, z = np.degrees([about_x, about_y, about_z]).tolist()
        middle = np.array(centre)
        shift = turn @ middle + np.asarray(matrix, dtype=float)[:3, 3] - middle
        return cls((float(shift[0]), float(shift[1]), float(shift[2])), (x, y, z), centre)

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Matrix that maps positions (x, y, z, 1) before the motion to those after it, (4, 4)."""
        (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians(self.rotation)), np.sin(np.radians(self.rotation))
        about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
        about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
        about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
        matrix = np.eye(4)
        matrix[:3, :3] = about_z @ about_y @ about_x
        middle = np.array(self.centre)
        matrix[:3, 3] = middle + np.array(self.shift) - matrix[:3, :3] @ middle
        return matrix

    @property
    def translation(self) -> float:
        """Length of the shift, mm."""
        return math.hypot(*self.shift)

    @property
    def angle(self) -> float:
        """Angle of the combined rotation, degrees."""
        cosine = (float(np.trace(self.matrix[:3, :3])) - 1) / 2
        return math.degrees(math.acos(min(1.0, max(-1.0, cosine))))

    def move(self, grid: Grid) -> Grid:
        """Return the grid after the motion."""
        return Grid.from_matrix(
            grid.shape, self.matrix @ grid.matrix, calibrated=grid.calibrated,
            slice_offsets=grid.slice_offsets,
        )  # fmt: skip


@dataclass(frozen=True)
class Registration:
    """Result of a registration."""

    motion: RigidMotion  # moves the series onto the case
    information: float  # Mattes mutual information, nats
    before: float  # the same as the files have the series; 0 without overlap
    overlap: float  # share of the smaller volume within the other
    converged: bool
    rival: float = 0.0  # mutual information of the next best other position
    apart: float = 0.0  # mm between the result and that of a search from a displaced position
    tolerance: float = math.inf  # of `apart` and `uncertainty`, mm
    uncertainty: float = 0.0  # standard error of the position by parts of the voxels, mm

    @property
    def problems(self) -> tuple[str, ...]:
        """Signs that the registration failed; empty if there are none."""
        problems = []
        if self.overlap < MIN_OVERLAP:
            problems.append(f"only {100 * self.overlap:.0f} % of the smaller volume overlaps")
        if self.information < MIN_INFORMATION:
            problems.append(f"mutual information is only {self.information:.2f}")
        if self.information < self.before:
            problems.append("mutual information is lower than before")
        if self.rival > CLEAR * self.information:
            problems.append("another position fits nearly as well")
        if self.apart > self.tolerance:
            problems.append(f"a search from a nearby position ended {self.apart:.1f} mm away")
        if self.uncertainty > self.tolerance:
            problems.append(f"parts of the volume disagree on the position by {self.uncertainty:.1f} mm")
        if not self.converged:
            problems.append("the search did not converge")
        return tuple(problems)


def centre_of(grid: Grid) -> Triple:
    """Return the middle of a grid's voxels, mm."""
    x, y, z = grid.to_patient((np.array(grid.shape, dtype=float) - 1) / 2).tolist()
    return x, y, z


def register(
    case: NDArray[np.float32], case_grid: Grid, series: NDArray[np.float32], series_grid: Grid, watch: Watch
) -> Registration:
    """Find the rigid motion that moves a series onto a case, by Mattes mutual information [mattes2003]_.

    Short searches on coarse volumes start from the positions in the files, and from aligned centres in
    several rotations, with the best of a grid of rotations among them. The best three are refined from coarse
    to fine. The best result is confirmed by a search with other samples from a displaced position. If this
    search fits better, it becomes the result and is confirmed in the same way. Results that differ by more
    than half a voxel are a sign of failure, and so is a larger standard error of the position. Random numbers
    have fixed seeds. Raises `RefusedError` for volumes that cannot be registered, and `ModuleNotFoundError`
    without SimpleITK.

    `case`, `series`: values on grids with even slices and right angles. Memory and time grow with their size.
    """
    import SimpleITK

    for values, noun in ((case, "case"), (series, "series")):
        _check(values, noun)
    fixed, moving = _image(SimpleITK, case, case_grid), _image(SimpleITK, series, series_grid)
    search = _Search(SimpleITK, fixed, moving, centre_of(case_grid))
    before = search.measure(np.eye(4))

    def result_of(matrix: NDArray[np.float64], converged: bool, information: float) -> Registration:
        motion = RigidMotion.from_matrix(np.linalg.inv(matrix), centre_of(series_grid))
        overlap = overlap_of(case_grid, motion.move(series_grid))
        return Registration(motion, information, before, overlap, converged)

    offset = np.subtract(centre_of(series_grid), centre_of(case_grid))
    starts, turned = _starts(offset, centre_of(case_grid)), _turned(offset, centre_of(case_grid))
    brief = search.try_starts(starts, turned, part(watch, 0.0, 0.3))
    candidates = _distinct(_best_first([result_of(*answer) for answer in brief]))[:_CANDIDATES]
    results = []
    for number, candidate in enumerate(candidates):
        ends = number / len(candidates), (number + 1) / len(candidates)
        start = np.asarray(np.linalg.inv(candidate.motion.matrix), dtype=np.float64)
        answer = search.run(start, part(part(watch, 0.3, 0.8), *ends))
        if answer is not None:
            results.append(result_of(*answer))
    if not results:
        raise RefusedError(
            "The volumes do not overlap, or have nothing in common. Enter a shift and a rotation near the "
            "correct position, or choose another series."
        )
    best, *others = _distinct(_best_first(results))
    best = _confirm(search, best, case_grid, result_of, part(watch, 0.8, 1.0))
    rivals = [other.information for other in others if len(_distinct([best, other])) == 2]
    return replace(best, rival=max(rivals, default=0.0))


def _confirm(
    search: _Search,
    best: Registration,
    grid: Grid,
    result_of: Callable[[NDArray[np.float64], bool, float], Registration],
    watch: Watch,
) -> Registration:
    """Search again from displaced positions until the result stays within half a voxel of `grid`."""
    tolerance = max(grid.spacing) / 2
    corners = grid.to_patient((np.indices((2, 2, 2)).reshape(3, 8).T + 0.5) / 2 * np.array(grid.shape))
    apart = 0.0
    for number, step in steps_of(watch, range(_RESTARTS)):
        sign = 1 - 2 * (number % 2)
        perturbation = RigidMotion(
            (4 * sign, -4 * sign, 4 * sign), (6 * sign, -6 * sign, 6 * sign), centre_of(grid)
        )
        start = np.linalg.inv(best.motion.matrix) @ perturbation.matrix
        answer = search.run(start, step, seed=_SEED + 1 + number)
        if answer is None:
            continue
        result = result_of(*answer)
        if result.information <= CLEAR * best.information:  # clearly worse: another optimum
            continue
        ends = [np.linalg.inv(each.motion.matrix) for each in (best, result)]
        change = ends[1] - ends[0]
        apart = float(np.linalg.norm(corners @ change[:3, :3].T + change[:3, 3], axis=1).mean())
        best = _best_first([best, result])[0]
        if apart <= tolerance:
            break
    uncertainty = search.uncertainty(np.linalg.inv(best.motion.matrix), grid)
    return replace(best, apart=apart, tolerance=tolerance, uncertainty=uncertainty)


def _starts(offset: NDArray[np.float64], centre: Triple) -> list[NDArray[np.float64]]:
    """Return the transforms to start from: the files' positions, and aligned centres in several rotations."""
    starts = [np.eye(4)]
    turns = [(0.0, 0.0, 0.0)]
    for angle in _TURNS:
        turns += [(angle, 0.0, 0.0), (0.0, angle, 0.0), (0.0, 0.0, angle)]
    return starts + [_aligned(offset, turn, centre) for turn in turns]


def _turned(offset: NDArray[np.float64], centre: Triple) -> list[NDArray[np.float64]]:
    """Return transforms with aligned centres, in a grid of rotations over all orientations."""
    around = np.arange(-180.0, 180.0, _TURN_STEP).tolist()
    tilts = np.arange(-90.0, 91.0, _TURN_STEP).tolist()
    return [
        _aligned(offset, (x, y, z), centre)
        for x in around
        for y in tilts
        for z in (around if abs(y) < 90 else [0.0])
    ]


def _aligned(offset: NDArray[np.float64], turn: Triple, centre: Triple) -> NDArray[np.float64]:
    shift = float(offset[0]), float(offset[1]), float(offset[2])
    return RigidMotion(shift, turn, centre).matrix


def _best_first(results: list[Registration]) -> list[Registration]:
    """Sort results by mutual information; results with little overlap are last."""
    return sorted(
        results, key=lambda result: (result.overlap >= MIN_OVERLAP, result.information), reverse=True
    )


def _distinct(results: list[Registration]) -> list[Registration]:
    """Keep the first result at each position."""
    kept: list[Registration] = []
    for result in results:
        differences = [np.linalg.inv(other.motion.matrix) @ result.motion.matrix for other in kept]
        moves = [RigidMotion.from_matrix(difference, result.motion.centre) for difference in differences]
        if all(move.translation >= _NEAR or move.angle >= _NEAR for move in moves):
            kept.append(result)
    return kept


def overlap_of(first: Grid, second: Grid) -> float:
    """Return the share of the smaller volume that lies within the other."""
    smaller, larger = sorted((first, second), key=lambda grid: float(np.prod([*grid.shape, *grid.spacing])))
    steps = [np.linspace(-0.5, size - 0.5, 2 * _PROBES + 1)[1::2] for size in smaller.shape]
    index = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 3)
    there = larger.to_index(smaller.to_patient(index))
    inside = (there >= -0.5) & (there <= np.array(larger.shape) - 0.5)
    return float(inside.all(axis=1).mean())


_PROBES = 16
"""Number of positions along each axis for measuring the overlap."""


def _check(values: NDArray[np.float32], noun: str) -> None:
    if values.ndim != 3 or min(values.shape) < FEWEST:
        sizes = " x ".join(map(str, values.shape))
        raise RefusedError(
            f"The {noun} has {sizes} voxels; expected a volume of {FEWEST} or more along each axis."
        )
    if not np.isfinite(values).all():
        raise RefusedError(f"The {noun} has values that are not finite; expected finite numbers.")
    if values.min() == values.max():
        raise RefusedError(f"The {noun} has the same value everywhere, so that nothing can be registered.")


def _image(itk: Any, values: NDArray[np.float32], grid: Grid) -> Any:
    image = itk.GetImageFromArray(np.ascontiguousarray(values, dtype=np.float32))
    spacing = np.linalg.norm(grid.matrix[:3, :3], axis=0)
    image.SetSpacing(spacing.tolist())
    image.SetOrigin(grid.matrix[:3, 3].tolist())
    image.SetDirection((grid.matrix[:3, :3] / spacing).ravel().tolist())
    return image


Answer = tuple[NDArray[np.float64], bool, float]
"""Transform from the case to the series, whether the search converged, and mutual information."""


class _Search:
    """Searches for the transform from the case to the series, with SimpleITK (`itk`)."""

    def __init__(self, itk: Any, fixed: Any, moving: Any, centre: Triple) -> None:
        self._itk, self._fixed, self._moving, self._centre = itk, fixed, moving, centre
        self.mask: Any = None  # voxels of the case that count

    def try_starts(
        self, starts: list[NDArray[np.float64]], turned: list[NDArray[np.float64]], watch: Watch
    ) -> list[Answer]:
        """Search briefly on coarse volumes, from each start and from those of `turned` that fit best.

        Starts without overlap are omitted.
        """
        coarse = _Search(self._itk, self._coarse(self._fixed), self._coarse(self._moving), self._centre)
        fits = []
        for start in turned:
            watch(0.0, "measuring orientations")
            fits.append(coarse.measure(start))
        best = np.argsort(fits, kind="stable")[::-1][:_MEASURED_STARTS]
        starts = [*starts, *(turned[at] for at in best.tolist())]
        answers = []
        for number, start in enumerate(starts):
            ends = number / len(starts), (number + 1) / len(starts)
            step = part(watch, *ends, f"start {number + 1} of {len(starts)}, ")
            answers.append(coarse.run(start, step, levels=(1,)))
        return [answer for answer in answers if answer is not None]

    def _coarse(self, image: Any) -> Any:
        factors = [max(1, min(_SHRINK[0], size // (2 * FEWEST))) for size in image.GetSize()]
        return self._itk.BinShrink(image, factors)

    def uncertainty(self, matrix: NDArray[np.floating], grid: Grid) -> float:
        """Return the standard error of a position, mm.

        The mutual information of each quarter of the voxels, in blocks, has its maximum elsewhere. The shift
        to it follows from slope and curvature along each shift and rotation.
        """
        step, radius = 2 * max(grid.spacing), math.hypot(*np.multiply(grid.shape, grid.spacing)) / 4
        moves = []
        for x, y, z, *arcs in (*step * np.eye(6), *-step * np.eye(6)):
            about_x, about_y, about_z = np.degrees(np.divide(arcs, radius)).tolist()
            moves.append(RigidMotion((x, y, z), (about_x, about_y, about_z), self._centre).matrix)
        fixed, moving = self._small(self._fixed), self._small(self._moving)
        small = _Search(self._itk, fixed, moving, self._centre)
        blocks = np.indices(fixed.GetSize()[::-1]) // _BLOCK
        parts = np.random.default_rng(_SEED).integers(_PARTS, size=blocks.max(axis=(1, 2, 3)) + 1)
        part_of = parts[tuple(blocks)]
        slopes, curvatures = [], []
        for number in range(_PARTS):
            small.mask = self._itk.GetImageFromArray((part_of == number).astype(np.uint8))
            small.mask.CopyInformation(fixed)
            here = small.measure(matrix)
            forth, back = np.reshape([small.measure(matrix @ move) for move in moves], (2, 6))
            slopes.append((forth - back) / (2 * step))
            curvatures.append((forth + back - 2 * here) / step**2)
        curvature = np.minimum(np.mean(curvatures, axis=0), -1e-12)
        errors = np.std(slopes, axis=0, ddof=1) / math.sqrt(_PARTS) / -curvature
        # A point at the radius moves by two thirds of the square of a rotation's arc, on average.
        return math.sqrt(float(np.square(errors) @ [1, 1, 1, 2 / 3, 2 / 3, 2 / 3]))

    def _small(self, image: Any) -> Any:
        """Average voxels, so that the whole volume is measured quickly."""
        sizes = image.GetSize()
        factor = math.ceil((math.prod(sizes) / _MAX_MEASURED) ** (1 / 3))
        return self._itk.BinShrink(image, [max(1, min(factor, size // (2 * FEWEST))) for size in sizes])

    def measure(self, matrix: NDArray[np.floating]) -> float:
        """Return the mutual information at a transform; 0 without overlap."""
        transform = self._itk.AffineTransform(3)
        transform.SetMatrix(matrix[:3, :3].ravel().tolist())
        transform.SetTranslation(matrix[:3, 3].tolist())
        method = self._method(_SHRINK[-1:])
        method.SetInitialTransform(transform)
        try:
            return -float(method.MetricEvaluate(self._fixed, self._moving))
        except RuntimeError:  # all samples are outside of the other volume
            return 0.0

    def run(
        self, start: NDArray[np.float64], watch: Watch, levels: tuple[int, ...] = _SHRINK, seed: int = _SEED
    ) -> Answer | None:
        """Search from a transform; return the answer, None without overlap."""
        transform = self._itk.Euler3DTransform()
        transform.SetCenter(self._centre)
        transform.SetMatrix(start[:3, :3].ravel().tolist())
        middle = np.array([*self._centre, 1.0])
        transform.SetTranslation(((start @ middle) - middle)[:3].tolist())
        method = self._method(levels, seed)
        method.SetOptimizerAsRegularStepGradientDescent(
            learningRate=4.0, minStep=0.01, numberOfIterations=_ITERATIONS, relaxationFactor=0.6
        )
        method.SetOptimizerScalesFromPhysicalShift()
        method.SetInitialTransform(transform, inPlace=True)
        cancelled: list[Cancelled] = []

        def report() -> None:
            level, step = method.GetCurrentLevel(), method.GetOptimizerIteration()
            fraction = (level + step / _ITERATIONS) / len(levels)
            try:
                text = f"level {level + 1} of {len(levels)}"
                watch(min(fraction, 1.0), text, objective=-float(method.GetMetricValue()))
            except Cancelled as stop:  # an exception does not pass through SimpleITK
                cancelled.append(stop)
                method.StopRegistration()

        method.AddCommand(self._itk.sitkIterationEvent, report)
        try:
            method.Execute(self._fixed, self._moving)
        except RuntimeError:
            if cancelled:
                raise cancelled[0] from None
            return None
        if cancelled:
            raise cancelled[0]
        turn = np.array(transform.GetMatrix()).reshape(3, 3)
        matrix = np.eye(4)
        matrix[:3, :3] = turn
        matrix[:3, 3] = np.array(transform.TransformPoint((0.0, 0.0, 0.0)))
        return matrix, method.GetOptimizerIteration() < _ITERATIONS - 1, self.measure(matrix)

    def _method(self, shrink: tuple[int, ...], seed: int = _SEED) -> Any:
        """Make a registration with the metric, the samples and the levels."""
        method = self._itk.ImageRegistrationMethod()
        method.SetNumberOfThreads(1)  # sums of several threads differ from run to run
        method.SetMetricAsMattesMutualInformation(_BINS)
        if self.mask is not None:
            method.SetMetricFixedMask(self.mask)
        method.SetInterpolator(self._itk.sitkLinear)
        size = self._fixed.GetSize()
        spacing = max(self._fixed.GetSpacing())
        factors = [max(1, min(factor, min(size) // FEWEST)) for factor in shrink]
        voxels = [float(np.prod(size)) / factor**3 for factor in factors]
        method.SetMetricSamplingStrategy(method.RANDOM)
        method.SetMetricSamplingPercentagePerLevel([min(1.0, _SAMPLES / number) for number in voxels], seed)
        method.SetShrinkFactorsPerLevel(factors)
        method.SetSmoothingSigmasPerLevel([spacing * (factor - 1) / 2 for factor in shrink])
        method.SmoothingSigmasAreSpecifiedInPhysicalUnitsOn()
        return method
