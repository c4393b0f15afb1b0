"""Disputed regions of a case, their state, and its line in the queue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np

from raterscope.algorithms.masks.data import OPEN
from raterscope.algorithms.masks.disputes import Dispute
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch
from raterscope.app.assessment import MATTERS
from raterscope.app.review import Region, ReviewState, known_voxels
from raterscope.app.study import RunEntry, Study
from raterscope.app.workspaces.masks.scene import Scene
from raterscope.app.workspaces.review_order import Part

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
    contested: str = ""  # what several experts decided differently; empty for other regions

    @property
    def unsettled(self) -> bool:
        """Whether it is still to be settled."""
        return self.state in ("undecided", "skipped")


@dataclass(frozen=True)
class CaseSummary:
    """Summary of a case for its line in the queue; `doubt` is the disputed volume that is left, in ml."""

    raters: int
    fused: bool
    regions: int
    disputed: int
    doubt: float
    unit: str = "ml"
    parts: tuple[Part, ...] = ()
    contested: int = 0
    comments: int = 0
    flag: ClassVar[None] = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers by which the queue can be filtered."""
        return {"comments": self.comments}

    @property
    def done(self) -> bool:
        """Whether nothing is left to settle."""
        return self.fused and not self.disputed

    def in_words(self) -> str:
        """Describe the case in a line."""
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
        """The disputed amount that is left; volumes in ml, so that lines can be compared."""
        amount = self.doubt if self.unit == "ml" else 1000 * self.doubt
        figure = f"{amount:.3f}" if amount < 0.1 else f"{amount:.2f}" if amount < 100 else f"{amount:,.0f}"
        return f"{figure} {self.unit}"


def regions_of(scene: Scene, structure: str, decided: Sequence[Region]) -> tuple[DisputedRegion, ...]:
    """List a structure's disputed regions with the expert's decisions on the run shown."""
    report = scene.report(structure)
    if report is None or scene.run is None:
        return ()
    last = _last_words(decided, structure, scene.run.id)
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
    """Yield the voxels outside disputed regions on which two experts differed, with decisions since."""
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
    """Return by number the decisions that reopened voxels outside the disputed regions of a run."""
    run_id = run.id if isinstance(run, RunEntry) else run
    reopened: dict[int, Region] = {}
    for region in decided:
        number = region.subject.number
        own = region.subject.structure == structure and region.run == run_id
        if own and region.verb == "reopen" and number is not None and number > regions:
            reopened.setdefault(number, region)
    return dict(sorted(reopened.items()))


_FEW = 100
"""Number of cases up to which they are read one by one; more of them are faster together with all others."""


def read_summaries(images: Sequence[int], study: Study, watch: Watch) -> dict[int, Any]:
    """Read for the queue the log of the runs shown, without maps."""
    from raterscope.app.study.masks import mask_entries

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
        summaries[entry.id] = (len(raters.get(entry.id, ())), unit_of(entry.lattice), number, structures)
    return summaries


def _present(study: Study, run: RunEntry, image: int, structures: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the structures in the log of a run under their present names, without merged ones."""
    from raterscope.app.study.renaming import present_structure

    names = [present_structure(study, run, image, str(each.get("structure", ""))) for each in structures]
    return [{**each, "structure": name} for name, each in zip(names, structures, strict=True) if name]


def summarize(image: int, result: Any, state: ReviewState) -> CaseSummary:
    """Summarize a case for its line in the queue; see `read_summaries`."""
    return replace(_summarize(image, result, state), comments=len(state.comments("masks", image)))


def _summarize(image: int, result: Any, state: ReviewState) -> CaseSummary:
    if result is None:
        return CaseSummary(0, False, 0, 0, 0.0)
    raters, unit, run, structures = result
    if run is None:
        return CaseSummary(raters, False, 0, 0, 0.0, unit)
    decided = state.regions(image)
    parts: list[Part] = []
    doubt, contested = 0.0, 0
    for structure in structures:
        name = str(structure.get("structure", ""))
        last = _last_words(decided, name, run)
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
        doubt += sum(float(volumes[number - 1]) for number in left)
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


def _last_words(decided: Sequence[Region], structure: str, run: int) -> dict[int | None, Region]:
    """Find the last decision on each numbered region of a run; skipping a settled one changes nothing.

    The key None is the decision on the whole structure, which applies to every region without a later one.
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


def unit_of(grid: Grid) -> str:
    """Return the unit of disputed amounts: ml, mm² for a 2D image, voxels or pixels without calibration."""
    if not grid.flat:
        return "ml" if grid.calibrated else "voxels"
    return "mm²" if grid.calibrated else "px"


def length_unit(grid: Grid) -> str:
    """Return the unit of lengths: mm, or pixels without calibration."""
    return "mm" if grid.calibrated else "px"


def amount_of(doubt_ml: float, unit: str) -> tuple[float, str]:
    """Convert a disputed amount to its unit; small volumes to mm³."""
    if unit == "ml":
        return (doubt_ml, "ml") if doubt_ml >= 0.1 else (1000 * doubt_ml, "mm³")
    return 1000 * doubt_ml, unit
