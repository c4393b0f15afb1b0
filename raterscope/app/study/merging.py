"""Union of the decisions of several experts who reviewed copies of one study.

The journals are append-only, so their union is one journal: the decisions of the first study, then those that
the others added to it. A subject on which two experts decided differently is reopened. Of voxels that both
settled, those on which they agree remain settled.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.errors import StudyError, plain
from raterscope.app.program_files import user_name
from raterscope.app.review import (
    BiasSubject,
    Decision,
    RegionSubject,
    ReviewState,
    SampleSubject,
    ShapeSubject,
    SpotsSubject,
    SpotSubject,
    TaskSubject,
    View,
)
from raterscope.app.review.decision import one_by_one
from raterscope.app.study.arrays import write_object
from raterscope.app.study.expert_agreement import ExpertAgreement, Overlap, agreement_of, agreement_on_voxels
from raterscope.app.study.journal_comparison import (
    OF_NAMES,
    Conflict,
    Difference,
    Journals,
    compare_others,
    compare_spots,
    compare_voxels,
)
from raterscope.app.study.new_study import save_elsewhere
from raterscope.app.study.records import Read, RunEntry
from raterscope.app.study.rows import RUN, run_row
from raterscope.app.study.runs import Answers, Outline
from raterscope.app.study.study import Study


@dataclass(frozen=True)
class MergedStudy:
    """Result of merging one study into another."""

    path: Path  # the study whose decisions were added
    added: int  # its decisions that the other lacked
    conflicts: tuple[Conflict, ...]
    # by kind, the two verdicts on each subject that both experts decided
    both: dict[str, list[tuple[str, str]]]
    overlaps: list[Overlap]  # of the voxels that both settled, by case and structure
    # number of decisions by expert that only the study has, and that only the other study has
    experts: tuple[dict[str, int], dict[str, int]]
    # subjects that only the other expert decided: missing in the study, and missing in the other study
    undecided: tuple[int, int]

    def agreements(self) -> dict[str, ExpertAgreement]:
        """Return the agreement of the experts for each kind in which both made decisions."""
        of = {kind: agreement_of(verdicts) for kind, verdicts in self.both.items() if verdicts}
        return {**of, "masks": agreement_on_voxels(self.overlaps)} if self.overlaps else of


def merge_studies(
    paths: Sequence[Path], target: Path, watch: Watch = silent, *, incomplete: bool = False
) -> list[MergedStudy]:
    """Merge copies of one study into a new one, completely or not at all; return each merged study.

    Raises `StudyError` if a study is not a copy of the first, a blind second read is incomplete, or a file
    cannot be read or written.

    `paths`: two studies or more; annotations and runs are those of the first that is not a blind copy.
    `target`: file that does not exist yet.
    `incomplete`: whether a blind second read may be merged before both experts decided on the same subjects.
    The list has a result for each study after the first.
    """
    first, *others = sorted(paths, key=_is_blind)

    def add(path: Path) -> Callable[[Study, Watch], MergedStudy]:
        def work(merged: Study, watch: Watch) -> MergedStudy:
            with Study.open(path, to_read=True) as other:
                return add_decisions(merged, other, watch, name=first.name)

        return work

    with Study.open(first, to_read=True) as study:
        for path in others:
            with Study.open(path, to_read=True) as other:
                compared = compare_studies(study, other)
                blind = other.settings.second_read is not None
                missing = missing_in_words(compared) if blind and not incomplete else ""
                if missing:
                    raise StudyError(
                        f"is a blind second read. {missing} Complete both, or merge with --incomplete",
                        file=path,
                    )
        return save_elsewhere(study, target, [add(path) for path in others], watch)


def in_order(study: Study, other: Study) -> tuple[Study, Study]:
    """Return two studies in the order of their merge: a blind copy comes last."""
    swap = study.settings.second_read is not None and other.settings.second_read is None
    return (other, study) if swap else (study, other)


def merge_open(study: Study, other: Study, target: Path, watch: Watch = silent) -> MergedStudy:
    """Merge two open studies into a new one, completely or not at all, even if a read is incomplete.

    Raises `StudyError` if one is not a copy of the other, or the file cannot be written.
    """
    first, second = in_order(study, other)
    _refuse_other_data(first, second)
    work = partial(_add, second, first.path.name)
    merged: MergedStudy = save_elsewhere(first, target, [work], watch)[0]
    return merged


def _add(other: Study, name: str, merged: Study, watch: Watch) -> MergedStudy:
    return add_decisions(merged, other, watch, name=name)


def _is_blind(path: Path) -> bool:
    with Study.open(path, to_read=True) as study:
        return study.settings.second_read is not None


def missing_in_words(compared: MergedStudy) -> str:
    """Describe the subjects that only one of two experts decided; empty if there are none."""
    first, second = compared.undecided
    missing = [
        f"{second:,} in {compared.path.name}" if second else "",
        f"{first:,} in the other study" if first else "",
    ]
    listed = " and ".join(filter(None, missing))
    return f"Still to be decided are {listed}, which the other expert decided." if listed else ""


def _refuse_other_data(study: Study, other: Study) -> None:
    """Refuse the same file, and images, questions, annotators or imports that the first study lacks."""
    if other.path.samefile(study.path):
        raise StudyError(
            "is the same file as the other study; each expert reviews a separate copy",
            file=other.path,
        )
    parts: dict[str, Callable[[Study], Iterable[Hashable]]] = {
        "image": lambda copy: ((entry.id, entry.name, entry.digest) for entry in copy.images()),
        "question": lambda copy: ((entry.id, entry.name) for entry in copy.questions()),
        "question of pairs": lambda copy: ((entry.id, entry.name) for entry in copy.pair_questions()),
        "annotator": lambda copy: enumerate(copy.annotators()),
        "import": _imports,
    }
    for noun, list_of in parts.items():
        known = set(list_of(study))
        for entry in list_of(other):
            if entry not in known:
                assert isinstance(entry, tuple)
                raise StudyError(
                    f"is not a copy of {study.path.name}, which lacks its {noun} {plain(str(entry[1]), 60)}; "
                    "each expert reviews a copy of one study",
                    file=other.path,
                )


def _imports(study: Study) -> list[Hashable]:
    with study.reading() as connection:
        return [tuple(row) for row in connection.execute("SELECT id, file, kind, at FROM imports")]


def add_decisions(study: Study, other: Study, watch: Watch = silent, *, name: str = "") -> MergedStudy:
    """Append the decisions and views of a copy to a study's, and reopen items that both decided differently.

    Decisions that the study already has are omitted. A spot that both experts added is kept once.

    `study`: study that receives the decisions. `other`: a copy of it, or of the same study. `name`: name of
    the study's file, which distinguishes experts of the same name; by default its own.
    """
    journals = Journals(study, other, name or study.path.name)
    merged, differences, twice = _compare(journals)
    with study.change():
        numbers = _append(journals, part(watch, 0.0, 0.9))
        undone: set[int] = set()
        for difference in differences:
            own, theirs = difference.decisions
            for number in {*own, *(numbers[number] for number in theirs)} - undone:
                undone.add(number)
                study.record(Decision(verb="undo", undoes=number, reason=difference.conflict.reason))
            for decision in difference.instead:
                study.record(decision)
        contradicted = {difference.annotator for difference in differences}
        for decision in study.decisions():
            several = len(decision.annotators) > 1 and decision.verb not in OF_NAMES
            if decision.id in undone and several:
                left = tuple(name for name in decision.annotators if name not in contradicted)
                if left:
                    study.record(replace(decision, id=0, annotators=left))
        for number in twice:
            study.record(Decision(verb="undo", undoes=numbers[number], reason="both experts added this spot"))
        _append_views(journals)
        _record_read(journals, merged)
    return merged


def compare_studies(study: Study, other: Study) -> MergedStudy:
    """Return the result of merging another study, without changing the study.

    Raises `StudyError` if the other study is not a copy of it.
    """
    _refuse_other_data(study, other)
    return _compare(Journals(study, other, study.path.name))[0]


def _compare(journals: Journals) -> tuple[MergedStudy, list[Difference], list[int]]:
    """Compare the decisions: the decisions to merge, conflicts, and spots that both added."""
    spots, rest = compare_spots(journals), compare_others(journals)
    voxels, overlaps = compare_voxels(journals)
    differences = [*spots.differences, *rest.differences, *voxels]
    subjects = [
        _decided_subjects(state, new) for state, new in zip(journals.states, journals.new, strict=True)
    ]
    merged = MergedStudy(
        journals.studies[1].path,
        len(journals.added),
        tuple(difference.conflict for difference in differences),
        {**spots.both, **rest.both},
        overlaps,
        journals.experts,
        (len(subjects[1] - subjects[0]), len(subjects[0] - subjects[1])),
    )
    return merged, differences, spots.twice


def _decided_subjects(state: ReviewState, new: frozenset[int]) -> set[Hashable]:
    """Return the spots, tasks, annotators of pairs and disputed regions with new decisions."""
    subjects: set[Hashable] = set()
    for number in new:
        decision = state.decision(number)
        if decision is None or not state.stands(number) or decision.verb in ("add", "reopen"):
            continue
        for single in one_by_one(decision):
            subject = single.subject
            if isinstance(subject, TaskSubject):
                subjects.add(("labels", single.item, subject.task))
            elif isinstance(subject, BiasSubject):
                subjects.add(("pairs", single.item, subject.annotator))
            elif isinstance(subject, RegionSubject) and subject.number is not None:
                subjects.add(("masks", single.item, subject.structure, single.run, subject.number))
            elif isinstance(subject, SpotSubject):
                x = subject.x if subject.from_x is None else subject.from_x
                y = subject.y if subject.from_y is None else subject.from_y
                subjects.add(("clicks", single.item, round(x), round(y)))
    return subjects


def _record_read(journals: Journals, merged: MergedStudy) -> None:
    """Record the merged experts, time and user, and whether it was a blind second read."""
    study, other = journals.studies
    copied = other.settings.second_read
    read = Read(
        other.path.name, tuple(merged.experts[1]), user_name(), datetime.now(UTC), copied is not None,
        "" if copied is None else copied.by, None if copied is None else copied.at,
    )  # fmt: skip
    study.settings.reads = (*study.settings.reads, *other.settings.reads, read)


def _append(journals: Journals, watch: Watch) -> dict[int, int]:
    """Append the other's decisions; return the number of each of its decisions in the study.

    Runs that the study lacks are omitted; decisions on them apply by position.
    """
    study, other = journals.studies
    numbers, runs = dict(journals.shared), _same_runs(study, other)
    shapes: dict[tuple[int | None, int], int] = {}
    journal = study.decisions()
    for done, decision in enumerate(journals.added):
        watch(done / len(journals.added), "merging decisions")
        target = None if decision.undoes is None else numbers.get(decision.undoes)
        if decision.undoes is not None and not _can_undo(journals, decision.undoes, target):
            continue
        subject = decision.subject
        if isinstance(subject, SpotsSubject):
            spots = (
                replace(spot, run=runs.get(spot.run), about=numbers.get(spot.about or 0))
                for spot in subject.spots
            )
            subject = replace(subject, spots=tuple(spots))
        elif isinstance(subject, RegionSubject) and decision.run not in runs:
            subject = replace(subject, number=None)
        elif isinstance(subject, SampleSubject):
            items = (replace(sampled, run=runs.get(sampled.run)) for sampled in subject.items)
            subject = replace(subject, items=tuple(items))
        elif isinstance(subject, ShapeSubject):
            key = decision.item, subject.number
            if decision.verb == "measure":
                used = [
                    earlier.subject.number
                    for earlier in journal
                    if isinstance(earlier.subject, ShapeSubject) and earlier.item == decision.item
                ]
                shapes[key] = max(used, default=0) + 1
            subject = replace(subject, number=shapes.get(key, subject.number))
        recorded = study.record(
            replace(
                decision,
                id=0,
                subject=subject,
                run=runs.get(decision.run),
                undoes=target,
                voxels=None,
                about=numbers.get(decision.about or 0),
                settled=None if decision.voxels is None else other.settled(decision.voxels),
            )
        )
        numbers[decision.id] = recorded.id
        journal.append(recorded)
    return numbers


def _can_undo(journals: Journals, undoes: int, target: int | None) -> bool:
    """Return whether a decision can be undone: both experts may have undone a common decision."""
    return target is not None and (undoes not in journals.shared or journals.states[0].stands(target))


def _same_runs(study: Study, other: Study) -> dict[int | None, int]:
    known = {(run.id, run.started, run.digest) for run in study.runs.all()}
    return {run.id: run.id for run in other.runs.all() if (run.id, run.started, run.digest) in known}


def _append_views(journals: Journals) -> None:
    study, other = journals.studies
    runs = _same_runs(study, other)

    def views_of(opened: Study) -> Iterator[View]:
        return (view for views in opened.views.by_image().values() for view in views)

    def key(view: View) -> Hashable:
        return view.at, view.who, view.image, view.x, view.y

    known = {key(view) for view in views_of(study)}
    new = [replace(view, id=0, run=runs.get(view.run)) for view in views_of(other) if key(view) not in known]
    study.views.record(sorted(new, key=lambda view: str(view.at)))


CASES = "cases"
"""Key in a run's log of the number of cases."""


@dataclass
class _Run:
    """Merged run: its current entry, and the answers of its images of clicks."""

    entry: RunEntry
    changed: bool = True
    answers: dict[int, Answers] = field(default_factory=dict)


class MergedRuns:
    """Runs of a study that receive the results of cases.

    Cases share a run if they have the same kind, algorithm, settings, seed and versions. A run that depends
    on decisions, or only on a part of the annotations, remains separate.

    `first`: number of the first run that may receive results; earlier runs are complete.
    """

    def __init__(self, study: Study, first: int = 1) -> None:
        self._study = study
        self._runs: dict[str, _Run] = {}
        self._case: dict[str, _Run | None] = {}
        """Runs that the current case changed, in their previous state."""
        self._images: list[int] = []
        """Images of clicks of the current case."""
        for entry in study.runs.all():
            if entry.id >= first and entry.log.get(CASES):
                grows = not (entry.known or entry.excluded)
                self._runs[_key(entry) if grows else str(entry.id)] = _Run(entry, False)

    def begin(self) -> None:
        """Begin a case; see `rollback`."""
        self._case, self._images = {}, []

    def rollback(self) -> None:
        """Discard the additions of the current case."""
        for key, before in self._case.items():
            if before is None:
                del self._runs[key]
            else:
                self._runs[key] = before
                for image in self._images:
                    before.answers.pop(image, None)

    def add(self, entry: RunEntry, *, complete: bool, imported: int, answers: Mapping[int, Answers]) -> int:
        """Add the run of a case, within the current change, and return the number of the merged run.

        `complete`: whether the run used all annotations of the case. `imported`: the last import of the case
        that the run used, as the study numbers it. `answers`: answers by image.
        """
        grows = complete and not (
            entry.known
            or entry.excluded
            or entry.weights
            or entry.aliases
            or entry.programs
            or {"last_view", "others"} & entry.log.keys()
        )
        key = _key(entry) if grows else f"{entry.digest} {len(self._runs)}"
        before = self._runs.get(key)
        log = entry.log | ({} if key in self._case else {CASES: 1})
        self._case.setdefault(key, before)
        self._images += answers
        if before is None:
            merged = replace(entry, id=0, items=(), imported=imported, log=log)
            with self._study.change() as connection:
                (number,) = connection.execute(
                    f"INSERT INTO runs({', '.join(RUN)}) VALUES ({', '.join('?' * len(RUN))}) RETURNING id",
                    run_row(replace(merged, log={CASES: 1})),
                ).fetchone()
            merged = replace(merged, id=number)
            self._runs[key] = _Run(merged, answers=dict(answers))
            return int(number)
        earlier = before.entry
        merged = replace(
            earlier,
            started=min(earlier.started, entry.started),
            seconds=earlier.seconds + entry.seconds,
            digest=_joined(earlier.digest, entry.digest),
            imported=imported,
            log=_merged(earlier.log, log),
        )
        before.answers.update(answers)
        self._runs[key] = _Run(merged, answers=before.answers)
        return merged.id

    def set_known(self, last: int) -> None:
        """Set the last decision that the runs of the current case used, if any."""
        for key in self._case:
            run = self._runs[key]
            if run.entry.known:
                run.entry = replace(run.entry, known=last)

    def flush(self, connection: sqlite3.Connection) -> None:
        """Store the changed runs, within the current change."""
        for run in self._runs.values():
            if run.changed:
                values = dict(zip(RUN, run_row(run.entry), strict=True))
                connection.execute(
                    f"UPDATE runs SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?",
                    (*values.values(), run.entry.id),
                )
                run.changed = False

    def finish(self, connection: sqlite3.Connection) -> None:
        """Store runs and the outlines of clicks, within the current change."""
        self.flush(connection)
        study = self._study
        for run in self._runs.values():
            if run.entry.kind != "clicks":
                continue
            number, answers = run.entry.id, {}
            for (image,) in connection.execute(
                "SELECT item FROM results WHERE run = ? ORDER BY item", (number,)
            ).fetchall():
                answers[image] = run.answers.get(image) or Answers.of(study.runs.result(number, image))
            connection.execute("DELETE FROM outlines WHERE run = ?", (number,))
            outline = write_object(connection, Outline.of_answers(answers))
            connection.execute("INSERT INTO outlines VALUES (?, ?)", (number, outline))


def _key(run: RunEntry) -> str:
    plan = (run.kind, run.algorithm, run.settings, run.seed, run.versions, run.log.get("truth_held"))
    return json.dumps(plan, sort_keys=True)


def _joined(digest: str, other: str) -> str:
    return f"sha256:{hashlib.sha256(f'{digest} {other}'.encode()).hexdigest()}"


def _merged(log: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge two logs: lists are appended, counts added, and other values kept."""
    merged = dict(log)
    for name, value in other.items():
        present = merged.get(name)
        if isinstance(present, list) and isinstance(value, list):
            merged[name] = [*present, *value]
        elif isinstance(present, dict) and isinstance(value, dict):
            merged[name] = _merged(present, value)
        elif type(present) is int and type(value) is int:
            merged[name] = present + value
        elif present is None:
            merged[name] = value
    return merged
