"""Scene of the masks workspace: a case and its volume, its disputed regions, its line in the queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.data import OPEN, BoolArray, Float32Array, MaskFusion, Settled
from raterscope.algorithms.masks.disputes import Dispute
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.progress import Watch, part
from raterscope.app.assessment import MATTERS
from raterscope.app.errors import InputError, plain
from raterscope.app.formats.records import Volume
from raterscope.app.formats.volumes import find_volumes, load_volume
from raterscope.app.kinds.masks.excluded_raters import ExcludedRater, compare_excluded
from raterscope.app.review import CommentSubject, Region, ReviewState, known_voxels
from raterscope.app.session import Session
from raterscope.app.study import ImageEntry, RunEntry, Study, StudyError
from raterscope.app.study.masks import mask_entries, read_masks, read_program_masks, settled_of
from raterscope.app.study.records import MaskRecord
from raterscope.app.study.references import uneven_slices_note, volume_of
from raterscope.app.study.runs import present_structure
from raterscope.app.workspaces.navigation import FileProblem, find_file_problem
from raterscope.app.workspaces.review_order import Part

Box = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Scene:
    """One case: its masks, the run shown, and the settled voxels."""

    image: ImageEntry
    path: Path | None
    problem: FileProblem | None  # why its file cannot be shown
    # by structure: masks of raters that the run includes; without a run, all
    masks: Mapping[str, Mapping[str, MaskRecord]]
    truth: Mapping[str, MaskRecord]  # by structure
    run: RunEntry | None
    result: CaseResult | None
    votes: Mapping[str, Votes] = field(default_factory=dict)  # by structure
    # by `Region.voxels`: settled voxels of the decisions in effect
    settled: Mapping[int, Settled] = field(default_factory=dict)
    # by structure: annotators of the case who drew no voxel of it, in an empty mask or without a mask
    nothing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    programs: Mapping[str, Mapping[str, MaskRecord]] = field(default_factory=dict)  # by structure
    # by structure: masks of raters that the run excludes
    excluded: Mapping[str, Mapping[str, MaskRecord]] = field(default_factory=dict)
    # by structure: comparison of these raters with the consensus
    excluded_raters: Mapping[str, Mapping[str, ExcludedRater]] = field(default_factory=dict)

    def drawn(self, structure: str) -> Mapping[str, MaskRecord]:
        """Return the masks of raters and programs of a structure."""
        return {**self.masks.get(structure, {}), **self.programs.get(structure, {})}

    @property
    def item(self) -> ImageEntry:
        """The image."""
        return self.image

    @property
    def structures(self) -> tuple[str, ...]:
        """Names of the structures, in the order of import."""
        return tuple(self.masks)

    def fusion(self, structure: str) -> MaskFusion | None:
        """Return the fusion of a structure."""
        index = self._index(structure)
        return None if self.result is None or index is None else self.result.fusions[index]

    def report(self, structure: str) -> Report | None:
        """Return the report of a structure."""
        index = self._index(structure)
        return None if self.result is None or index is None else self.result.reports[index]

    def _index(self, structure: str) -> int | None:
        names = () if self.result is None else self.result.structures()
        return names.index(structure) if structure in names else None


MasksSession = Session[Scene, None]
"""Session of the masks workspace; its part is the structure under review."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Disagreement of the raters on a part of the image, from 0 (none) to 1 (half against half)."""

    origin: Box
    disagreement: Float32Array


@dataclass(frozen=True, eq=False)
class Piece:
    """A part of a mask, with its origin in the image."""

    origin: Box
    values: BoolArray

    def matches(self, other: Piece) -> bool:
        """Return whether another piece is the same part of the same mask."""
        return self.origin == other.origin and np.array_equal(self.values, other.values)


@dataclass(frozen=True, eq=False)
class LoadedVolume:
    """A volume's voxels, in the geometry of the study."""

    volume: Volume

    @property
    def nbytes(self) -> int:
        """Size of the voxels in memory."""
        return self.volume.values.nbytes


def read_scene(image: int, run: int | None, study: Study, watch: Watch) -> Scene:
    """Read a scene from the study, with the result of a run, by default the latest run of the case."""
    watch(0.0, "reading")
    entry = study.image(image)
    run_shown, result = study.shown.run_and_result(image, "masks", run)
    state = study.review_state()
    entries = mask_entries(study, image, run_shown)
    structures = dict.fromkeys(mask.structure for mask in entries if mask.annotator is not None)
    truths = dict.fromkeys(mask.structure for mask in entries if mask.annotator is None)
    masks = {name: read_masks(study, image, name, run_shown) for name in structures}
    excluded: dict[str, dict[str, MaskRecord]] = {}
    if run_shown is not None:
        if run_shown.excluded:
            every = replace(run_shown, excluded=())
            drawn = {name: read_masks(study, image, name, every) for name in structures}
            excluded = {name: _of(set(run_shown.excluded), records) for name, records in drawn.items()}
        programs = {name: read_program_masks(study, image, name, run_shown) for name in structures}
    else:
        programs = {name: _of(state.programs, drawn) for name, drawn in masks.items()}
        masks = {name: _of(drawn.keys() - state.programs, drawn) for name, drawn in masks.items()}
    return Scene(
        image=entry,
        path=study.locate(entry),
        problem=find_file_problem(entry, study),
        masks=masks,
        truth={name: read_masks(study, image, name, truth=True)["truth"] for name in truths},
        run=run_shown,
        result=result,
        votes={name: _votes(masks[name]) for name in structures},
        settled=settled_of(study, state.regions(image)),
        nothing={name: _nothing(name, masks) for name in structures},
        programs=programs,
        excluded=excluded,
        excluded_raters={
            fusion.structures[0]: compare_excluded(study, image, run_shown, fusion, entry.lattice, watch)
            for fusion in (() if result is None else result.fusions)
            if run_shown is not None
        },
    )


def _of(names: Set[str], masks: Mapping[str, MaskRecord]) -> dict[str, MaskRecord]:
    return {name: mask for name, mask in masks.items() if name in names}


def _nothing(structure: str, masks: Mapping[str, Mapping[str, MaskRecord]]) -> tuple[str, ...]:
    """List the annotators of a case who drew no voxel of a structure."""
    drawn = masks[structure]
    drew = {name for name, mask in drawn.items() if mask.values.size and (mask.values > 0.5).any()}
    all_raters = dict.fromkeys(name for each in masks.values() for name in each)
    return tuple(name for name in all_raters if name not in drew)


def _votes(masks: Mapping[str, MaskRecord]) -> Votes:
    sized = [mask for mask in masks.values() if mask.values.size]
    if not sized:
        return Votes((0, 0, 0), np.zeros((1, 1, 1), dtype=np.float32))
    low = np.min([mask.origin for mask in sized], axis=0)
    high = np.max([np.add(mask.origin, mask.values.shape) for mask in sized], axis=0)
    share = np.zeros(tuple(high - low), dtype=np.float32)
    for mask in sized:
        corner = np.subtract(mask.origin, low)
        share[tuple(slice(at, at + n) for at, n in zip(corner, mask.values.shape, strict=True))] += (
            mask.values
        )
    share /= len(masks)
    origin = int(low[0]), int(low[1]), int(low[2])
    return Votes(origin, np.asarray(1 - np.abs(2 * share - 1), dtype=np.float32))


def read_settled(voxels: int, study: Study, watch: Watch) -> Settled:
    """Read the voxels settled by one decision."""
    watch(0.0, "reading")
    return study.settled(voxels)


def load_pixels(entry: ImageEntry, path: Path, watch: Watch) -> LoadedVolume:
    """Load a case's voxels, after a check of the geometry."""
    volumes = find_volumes(path, part(watch, 0.0, 0.2))
    volume = volume_of(entry, volumes)
    if volume is None:
        shapes = " or ".join(volume.grid.in_words() for volume in volumes[:2]) or "no volume"
        raise StudyError(
            f"{plain(entry.name)} is no longer the volume that was added: expected "
            f"{entry.lattice.in_words()}, found {shapes}{uneven_slices_note(entry, volumes)}",
            file=path,
        )
    try:
        return LoadedVolume(load_volume(volume, part(watch, 0.2, 1.0)))
    except MemoryError as error:
        raise InputError("is too large for this computer's memory", file=path) from error


def consensus_of(scene: Scene, structure: str, regions: list[Region]) -> Piece | None:
    """Return the consensus with the expert's decisions applied; None without either."""
    fusion = scene.fusion(structure)
    numbers = [region.voxels for region in regions if region.subject.structure == structure]
    settled = [scene.settled[voxels] for voxels in numbers if voxels is not None and voxels in scene.settled]
    pieces: list[tuple[Box, tuple[int, ...]]] = [(piece.origin, piece.value.shape) for piece in settled]
    if fusion is not None:
        pieces.append((fusion.origin, fusion.shape))
    if not pieces:
        return None
    low = np.min([origin for origin, _ in pieces], axis=0)
    high = np.max([np.add(origin, shape) for origin, shape in pieces], axis=0)
    origin = int(low[0]), int(low[1]), int(low[2])
    values: NDArray[np.bool_] = np.zeros(tuple(high - low), dtype=np.bool_)
    if fusion is not None:
        corner = np.subtract(fusion.origin, origin)
        box = tuple(slice(at, at + n) for at, n in zip(corner, fusion.shape, strict=True))
        values[box] = fusion.mask[0]
    for piece in settled:  # later decisions override earlier ones
        corner = np.subtract(piece.origin, origin)
        box = tuple(slice(at, at + n) for at, n in zip(corner, piece.value.shape, strict=True))
        np.copyto(values[box], piece.value == 1, where=piece.value != OPEN)
    return Piece(origin, values)


State = Literal["undecided", "accepted", "taken", "mended", "skipped"]

_STATES: dict[str, State] = {
    "accept": "accepted", "take": "taken", "paint": "mended", "skip": "skipped", "reopen": "undecided"
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class DisputedRegion:
    """A disputed region with the expert's decision."""

    number: int  # from 1 within its structure, the most disputed first
    structure: str
    dispute: Dispute
    state: State = "undecided"  # undecided, accepted, taken, mended or skipped
    rater: str = ""  # rater whose mask was taken
    decision: int | None = None  # the last decision on it
    contested: str = ""  # conflicting decisions of experts; empty for other regions

    @property
    def subject(self) -> CommentSubject:
        """Subject of a comment or bookmark on the region."""
        return CommentSubject(
            of="masks", name=self.structure, number=self.number, origin=self.dispute.origin,
            shape=self.dispute.shape,
        )  # fmt: skip

    @property
    def unsettled(self) -> bool:
        """Whether the region is undecided."""
        return self.state in ("undecided", "skipped")


@dataclass(frozen=True)
class CaseSummary:
    """Summary of a case for its line in the queue; `doubt` is the remaining disputed volume, in mm³.

    Without a voxel size, `doubt` is in the unit of the case: voxels or pixels.
    """

    raters: int
    fused: bool
    regions: int
    disputed: int
    doubt: float
    unit: str = "ml"
    parts: tuple[Part, ...] = ()
    contested: int = 0
    comments: int = 0
    bookmarks: int = 0
    flag: ClassVar[None] = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for the filters of the queue."""
        decided = self.regions - self.disputed
        return {"decided": decided, "comments": self.comments, "bookmarks": self.bookmarks}

    @property
    def done(self) -> bool:
        """Whether no disputed region remains."""
        return self.fused and not self.disputed

    def in_words(self) -> str:
        """Describe the case in one line."""
        if not self.raters:
            return "no masks yet"
        if not self.fused:
            return f"{self.raters} rater{'' if self.raters == 1 else 's'}, not fused yet"
        if not self.regions:
            return "nothing disputed"
        if not self.disputed:
            return f"settled, {self.regions} region{'' if self.regions == 1 else 's'}"
        if self.contested:
            return f"{self.contested} contested, {self.disputed} disputed"
        return f"{self.disputed} disputed region{'' if self.disputed == 1 else 's'}"

    @property
    def amount(self) -> str:
        """Remaining disputed amount; volumes in ml, for comparison of lines."""
        if self.unit != "ml":
            return f"{self.doubt:,.{1 if self.doubt < 10 else 0}f} {self.unit}"
        amount = self.doubt / 1000
        figure = f"{amount:.3f}" if amount < 0.1 else f"{amount:.2f}" if amount < 100 else f"{amount:,.0f}"
        return f"{figure} {self.unit}"


def regions_of(scene: Scene, structure: str, decided: Sequence[Region]) -> tuple[DisputedRegion, ...]:
    """List a structure's disputed regions with the expert's decisions on the run shown."""
    report = scene.report(structure)
    if report is None or scene.run is None:
        return ()
    last = _last_decisions(decided, structure, scene.run.id)
    regions = []
    for number, dispute in enumerate(report.disputes, start=1):
        decision = last.get(number, last.get(None))
        region = DisputedRegion(number, structure, dispute)
        if decision is not None:
            region = DisputedRegion(
                number, structure, dispute, _STATES[decision.verb], decision.subject.rater, decision.decision,
                decision.reason if decision.verb == "reopen" else "",
            )  # fmt: skip
        regions.append(region)
    return (*regions, *_reopened_beside(scene, structure, decided, last, len(regions)))


def _reopened_beside(
    scene: Scene, structure: str, decided: Sequence[Region], last: Mapping[int | None, Region], first: int
) -> Iterator[DisputedRegion]:
    """Yield voxels outside disputed regions with conflicting decisions of experts, and later decisions."""
    fusion = scene.fusion(structure)
    for number, region in _outside(decided, structure, scene.run, first).items():
        subject = region.subject
        before = [other for other in decided if other.decision < region.decision]
        known = known_voxels(before, scene.settled, structure, subject.origin, subject.shape)
        voxels = np.ones(subject.shape, dtype=bool) if known is None else known == OPEN
        volume = 0.0 if fusion is None else float(voxels.sum()) * fusion.voxel_volume / 1000
        unknown = float("nan")
        dispute = Dispute(
            0,
            subject.origin,
            subject.shape,
            np.packbits(voxels),
            volume,
            volume,
            (),
            (),
            -1,
            unknown,
            unknown,
        )
        decision = last.get(number, last.get(None, region))
        yield DisputedRegion(
            number, structure, dispute, _STATES[decision.verb], decision.subject.rater, decision.decision,
            decision.reason if decision.verb == "reopen" else "",
        )  # fmt: skip


def _outside(
    decided: Sequence[Region], structure: str, run: RunEntry | int | None, regions: int
) -> dict[int, Region]:
    """Return, by number, the decisions that reopened voxels outside the disputed regions of a run."""
    run_id = run.id if isinstance(run, RunEntry) else run
    reopened: dict[int, Region] = {}
    for region in decided:
        number = region.subject.number
        own = region.subject.structure == structure and region.run == run_id
        if own and region.verb == "reopen" and number is not None and number > regions:
            reopened.setdefault(number, region)
    return dict(sorted(reopened.items()))


_FEW = 100
"""Maximum number of cases to read one by one; for more, reading all cases of the study is faster."""


def read_summaries(images: Sequence[int], study: Study, watch: Watch) -> dict[int, Any]:
    """Read for the queue the log of the runs shown, without maps."""
    some = set(images)
    is_few = len(images) <= _FEW
    entries = [study.image(image) for image in images] if is_few else study.images()
    masks = chain.from_iterable(mask_entries(study, image) for image in (images if is_few else [None]))
    raters: dict[int, set[str]] = {}
    for mask in masks:
        if mask.annotator is not None:
            raters.setdefault(mask.image, set()).add(mask.annotator)
    chosen = study.shown.chosen().get("masks")
    logs: dict[int, dict[str, Any]] = {}
    summaries: dict[int, Any] = {}
    for done, entry in enumerate(entry for entry in entries if entry.id in some):
        watch(done / len(images), "reading results")
        number = study.shown.run(entry.id, "masks", chosen)
        if number is not None and number not in logs:
            logged: Iterable[Any] = study.runs.get(number).log.get("images", ())
            logs[number] = {case.get("image"): case for case in logged}
        case = logs[number].get(entry.name, {}) if number is not None else {}
        structures = case.get("structures", [])
        if number is not None and study.has_new_names:
            structures = _present(study, study.runs.get(number), entry.id, structures)
        names = frozenset(raters.get(entry.id, ()))
        summaries[entry.id] = (names, entry.lattice.size_unit, number, structures)
    return summaries


def _present(study: Study, run: RunEntry, image: int, structures: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the structures in the log of a run by their current names, without merged ones."""
    names = [present_structure(study, run, image, str(each.get("structure", ""))) for each in structures]
    return [{**each, "structure": name} for name, each in zip(names, structures, strict=True) if name]


def summarize(image: int, result: Any, state: ReviewState) -> CaseSummary:
    """Summarize a case for its line in the queue; see `read_summaries`."""
    comments, bookmarks = len(state.comments("masks", image)), len(state.bookmarks("masks", image))
    return replace(_summarize(image, result, state), comments=comments, bookmarks=bookmarks)


def _summarize(image: int, result: Any, state: ReviewState) -> CaseSummary:
    if result is None:
        return CaseSummary(0, False, 0, 0, 0.0)
    names, unit, run, structures = result
    raters = len(names - state.programs)
    if run is None:
        return CaseSummary(raters, False, 0, 0, 0.0, unit)
    decided = state.regions(image)
    parts: list[Part] = []
    doubt, contested = 0.0, 0
    for structure in structures:
        name = str(structure.get("structure", ""))
        last = _last_decisions(decided, name, run)
        volumes = structure.get("disputed_ml", [])
        outside = _outside(decided, name, run, len(volumes))
        numbers = (*range(1, len(volumes) + 1), *outside)
        verbs = {number: last.get(number, last.get(None)) for number in numbers}
        reopened = {
            number for number, decision in verbs.items() if decision is not None and decision.verb == "reopen"
        }
        contested += len(reopened)
        opened = [number for number, decision in verbs.items() if decision is None or number in reopened]
        skipped = [
            number for number, decision in verbs.items() if decision is not None and decision.verb == "skip"
        ]
        left = [number for number in (*opened, *skipped) if number <= len(volumes)]
        doubt += 1000 * sum(float(volumes[number - 1]) for number in left)
        wrong = structure.get("disputed_wrong", [])
        matter = None
        if len(wrong) == len(volumes):
            matter = sum(
                number in reopened or number > len(wrong) or float(wrong[number - 1]) >= MATTERS
                for number in (*opened, *skipped)
            )
        parts.append(Part(name, len(numbers), len(opened), len(skipped), matter))
    total, remaining = sum(part.total for part in parts), sum(part.remaining for part in parts)
    return CaseSummary(raters, True, total, remaining, doubt, unit, tuple(parts), contested)


def _last_decisions(decided: Sequence[Region], structure: str, run: int) -> dict[int | None, Region]:
    """Find the last decision on each numbered region of a run; skipping a settled one changes nothing.

    The key None is the decision on the whole structure, which applies to every region without a later
    decision.
    """
    last: dict[int | None, Region] = {}
    for region in decided:
        number = region.subject.number
        if region.subject.structure != structure:
            continue
        if region.subject.whole:
            last = {None: region}
        elif region.run != run or number is None:
            continue
        elif region.verb != "skip" or not (number in last or None in last):
            last[number] = region
    return last


def drawn_whole(decided: Sequence[Region], structure: str) -> bool:
    """Return whether the expert settled the whole structure as drawn."""
    return any(region.subject.whole and region.subject.structure == structure for region in decided)


def amount_of(doubt_ml: float, unit: str) -> tuple[float, str]:
    """Return a disputed area or volume in the unit shown; small volumes in mm³."""
    if unit == "ml":
        return (doubt_ml, "ml") if doubt_ml >= 0.1 else (1000 * doubt_ml, "mm³")
    return 1000 * doubt_ml, unit
