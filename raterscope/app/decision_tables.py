"""Tables of decisions, as `export --what decisions` and other programs write them, read into a study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from raterscope.algorithms.labels.class_tree import class_tree
from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import TableProblems, plain, plain_names
from raterscope.app.formats.output_files import DECISIONS, unescape_formula
from raterscope.app.formats.table_files import read_table
from raterscope.app.formats.tables import Table
from raterscope.app.review import (
    NAMED,
    VERBS,
    BiasSubject,
    CommentSubject,
    Decision,
    GoldSubject,
    GroupsSubject,
    ImageSubject,
    NameSubject,
    RegionSubject,
    RegistrationSubject,
    SampleSubject,
    SpotOf,
    SpotsSubject,
    SpotSubject,
    Subject,
    TaskSubject,
    WeightSubject,
    identities,
    known_voxels,
)
from raterscope.app.study.kinds import STORED
from raterscope.app.study.masks import read_masks, refuse_join, settle_by, settled_of
from raterscope.app.study.references import ImageNames
from raterscope.app.study.runs import make_renaming, original_names
from raterscope.app.study.study import Study

_OF_ANNOTATORS = ("exclude", "weigh", "include", "mark", "unmark", "program", "person", "join", "separate")
_HELD_BACK = "needs data that a table does not contain; `raterscope merge` copies it from a study"


def record_decisions(study: Study, path: Path, watch: Watch = silent) -> tuple[int, int]:
    """Record the decisions of a table, all or none; return the numbers of recorded and of known ones.

    `path`: a table with the columns verb and item, those that the verb needs, and any other of
        `output_files.DECISIONS`. Rows with the same number in the column decision are one decision on several
        spots. A region has the number that it has in the run shown.
    Decisions that the study has already are known.
    Raises `TableProblems` with every problem.
    Raises `InputError` if the table cannot be read.
    """
    reader = _Reader(study, read_table(path, watch))
    decisions = list(reader.decisions())
    if reader.problems:
        raise TableProblems(path, reader.problems, "; nothing was recorded")
    known = {key: number for number, key in identities(study.decisions())}
    numbers: dict[int, int] = {}
    recorded = 0
    with study.change():
        for decision, (number, key) in zip(decisions, identities(decisions), strict=True):
            if decision.at is not None and key in known:
                numbers[number] = known[key]
                continue
            if isinstance(decision.subject, NameSubject):
                decision = replace(decision, verb=_renaming_verb(study, decision.subject, path))
            undoes = None if decision.undoes is None else numbers[decision.undoes]
            about = numbers.get(decision.about or 0)
            numbers[number] = study.record(replace(decision, id=0, about=about, undoes=undoes)).id
            recorded += 1
    return recorded, len(decisions) - recorded


def _renaming_verb(study: Study, subject: NameSubject, path: Path) -> str:
    """Return the verb for a new name: rename or merge. Raises `TableProblems` if it cannot be given."""
    try:
        return make_renaming(study, subject.of, subject.name, subject.new).verb
    except ValueError as refusal:
        raise TableProblems(path, [str(refusal).rstrip(".")], "; nothing was recorded") from refusal


class _Problem(Exception):  # noqa: N818 - of a row, collected with the others
    """Problem in a row; the message states what was expected."""


class _Reader:
    """Reader of a table's decisions, and the problems in it."""

    def __init__(self, study: Study, table: Table) -> None:
        self.problems: list[str] = []
        self._study, self._table = study, table
        header = [name.strip().casefold() for name in table.header]
        unknown = [plain(name, 40) for name in table.header if name.strip().casefold() not in DECISIONS]
        if unknown or "verb" not in header:
            wrong = f"unknown column {unknown[0]}" if unknown else "the column verb is missing"
            self.problems.append(f"{wrong}; expected some of {', '.join(DECISIONS)}")
        self._columns = {name: table.columns[at] for at, name in enumerate(header)}
        self._images = ImageNames(study.images(), study.path.parent)
        self._questions = {(kind, name.casefold()): item for (kind, item), name in study.names().items()}
        self._annotators = set(study.annotators())
        self._new_names: set[str] = set()
        self._review = study.review_state()

    def decisions(self) -> Iterator[Decision]:
        """Yield the decisions, with their numbers in the table."""
        if self.problems:
            return
        stated = "decision" in self._columns
        rows = range(len(self._table))
        seen: dict[int, int] = {}
        for number, of in groupby(rows, key=lambda row: self._int("decision", row) if stated else row + 1):
            group = list(of)
            line = self._table.lines[group[0]]
            try:
                if number is None:
                    raise _Problem("decision is empty; expected a number")
                if number in seen:
                    raise _Problem(f"decision {number} is already on line {seen[number]}")
                decision = self._decision(group, number)
                if decision.undoes is not None and decision.undoes not in seen:
                    raise _Problem(f"undoes decision {decision.undoes}, which is not in a line above")
            except (_Problem, ValueError) as problem:
                self.problems.append(f"line {line}: {str(problem).rstrip('.')}")
                continue
            finally:
                if number is not None:
                    seen.setdefault(number, line)
            yield decision

    def _decision(self, rows: Sequence[int], number: int) -> Decision:
        row = rows[0]
        verb, kind = self._cell("verb", row), self._cell("kind", row)
        at = self._cell("at", row)
        common: dict[str, Any] = {
            "id": number, "verb": verb, "who": self._cell("who", row), "reason": self._cell("reason", row),
            "at": _time(at) if at else None, "about": self._int("about", row),
        }  # fmt: skip
        if verb not in VERBS:
            raise _Problem(f'verb is "{plain(verb, 40)}"; expected one of {", ".join(sorted(VERBS))}')
        if verb == "undo":
            return Decision(**common, undoes=self._int("undoes", row))
        if verb in _OF_ANNOTATORS:
            names = tuple(filter(None, map(str.strip, self._cell("annotators", row).split(";"))))
            unknown = [plain(name, 40) for name in names if name not in self._annotators]
            if unknown:
                raise _Problem(f"there is no annotator {unknown[0]}")
            if verb == "join" and (refusal := refuse_join(self._study, names)):
                raise _Problem(refusal)
            weight = WeightSubject(weight=self._number("weight", row)) if verb == "weigh" else None
            return Decision(**common, annotators=names, subject=weight)
        if verb in (*SampleSubject.verbs, *GroupsSubject.verbs, *RegistrationSubject.verbs):
            raise _Problem(f"to {verb} {_HELD_BACK}")
        if verb in NameSubject.verbs:
            return self._renaming(kind, row, common)
        make = {"clicks": self._on_clicks, "masks": self._on_masks, "labels": self._on_task,
                "pairs": self._on_pairs}.get(kind)  # fmt: skip
        if make is None:
            raise _Problem(f'kind is "{plain(kind, 40)}"; expected clicks, masks, labels or pairs')
        item = self._item(kind, self._cell("item", row))
        if verb in CommentSubject.verbs:
            return Decision(**common, item=item, subject=self._commented(kind, row))
        run = self._study.shown.run(item, kind)
        if "run" in self._columns and self._int("run", row) != run:
            run = None
        subject, settled = make(rows, item, run)
        return Decision(**common, item=item, run=run, subject=subject, settled=settled)

    def _renaming(self, kind: str, row: int, common: Mapping[str, Any]) -> Decision:
        if kind not in NAMED:
            raise _Problem(f'kind is "{plain(kind, 40)}"; expected {" or ".join(NAMED)}')
        subject = NameSubject(of=kind, name=self._cell("structure", row), new=self._cell("label", row))
        if subject.name not in {*original_names(self._study, kind), *self._new_names}:
            raise _Problem(f"there is no {NAMED[kind]} {plain(subject.name, 40)}")
        self._new_names.add(subject.new)
        return Decision(**common, subject=subject)

    def _commented(self, kind: str, row: int) -> CommentSubject:
        column = {"masks": "structure", "labels": "task", "pairs": "rater"}.get(kind, "")
        if kind == "masks" and self._cell("region", row):
            raise _Problem(f"to {self._cell('verb', row)} a region {_HELD_BACK}")
        is_spot = kind == "clicks" and bool(self._cell("x", row))
        x, y = (self._number(name, row) if is_spot else None for name in ("x", "y"))
        number = self._int("spot", row) if is_spot else None
        return CommentSubject(of=kind, name=self._cell(column, row), number=number, x=x, y=y)

    def _item(self, kind: str, name: str) -> int:
        by_question = STORED[kind].by_question
        if by_question:
            number = self._questions.get((kind, name.casefold()))
        else:
            image = self._images.find(name)
            number = None if image is None else image.id
        if number is None:
            noun = "question" if by_question else "image"
            names = [named for (own, _), named in self._study.names().items() if own == kind]
            expected = f"; expected one of {plain_names(names, 3, 40)}" if names else ""
            raise _Problem(
                f"there is no {noun} {plain(name, 60)}{expected}"
                if name
                else f"column item is empty; expected the {noun}"
            )
        return number

    def _on_clicks(self, rows: Sequence[int], item: int, run: int | None) -> tuple[Subject, None]:
        verb, blind = self._cell("verb", rows[0]), self._cell("blind", rows[0]) == "1"
        if verb in ImageSubject.verbs:
            return ImageSubject(name=self._study.image(item).name), None
        if verb not in SpotSubject.verbs:
            raise _Problem(f"to {plain(verb, 40)} {_HELD_BACK}")
        spots, label = [self._spot(row, run) for row in rows], self._cell("label", rows[0])
        if len(spots) > 1:
            return SpotsSubject(spots=tuple(spots), blind=blind, label=label), None
        moved = [self._number(name, rows[0]) if verb == "move" else None for name in ("from_x", "from_y")]
        spot = spots[0]
        return SpotSubject(
            x=spot.x, y=spot.y, number=spot.number, from_x=moved[0], from_y=moved[1], blind=blind, label=label
        ), None

    def _spot(self, row: int, run: int | None) -> SpotOf:
        image = self._study.image(self._item("clicks", self._cell("item", row)))
        x, y = self._number("x", row), self._number("y", row)
        if not (0 <= x <= image.width and 0 <= y <= image.height):
            size = f"{image.width:.0f} x {image.height:.0f}"
            raise _Problem(f"{x:g}, {y:g} is not on {plain(image.name, 60)}, which has {size} pixels")
        number = None if run is None else self._int("spot", row)
        return SpotOf(image=image.id, x=x, y=y, number=number, run=run)

    def _on_masks(self, rows: Sequence[int], item: int, run: int | None) -> tuple[Subject, Settled | None]:
        verb, structure = self._cell("verb", rows[0]), self._cell("structure", rows[0])
        number, rater = self._int("region", rows[0]), self._cell("rater", rows[0])
        if verb not in ("accept", "take", "skip", "reopen") or number is None:
            raise _Problem(f"to {plain(verb, 40)} without a region {_HELD_BACK}")
        result = None if run is None else self._study.runs.result(run, item)
        names = result.structures() if isinstance(result, CaseResult) else ()
        if not isinstance(result, CaseResult) or structure not in names:
            raise _Problem(f"the run shown has no consensus of {plain(structure, 40)} there")
        disputes = result.reports[names.index(structure)].disputes
        if not 1 <= number <= len(disputes):
            raise _Problem(f"region {number} of {plain(structure, 40)}; expected 1 to {len(disputes)}")
        dispute = disputes[number - 1]
        subject = RegionSubject(
            structure=structure, origin=dispute.origin, shape=dispute.shape, number=number, rater=rater,
            blind=self._cell("blind", rows[0]) == "1",
        )  # fmt: skip
        if verb in ("skip", "reopen"):
            return subject, None
        if verb == "accept":
            fusion = result.fusions[names.index(structure)]
            settled = settle_by(dispute, fusion.origin, fusion.mask[0])
        else:
            masks = read_masks(self._study, item, structure)
            if rater not in masks:
                raise _Problem(
                    f"{plain(rater, 40) or 'an unnamed rater'} did not mark {plain(structure, 40)} there"
                )
            settled = settle_by(dispute, masks[rater].origin, masks[rater].values)
        regions = self._review.regions(item)
        earlier = known_voxels(
            regions, settled_of(self._study, regions), structure, settled.origin, dispute.shape
        )
        if earlier is not None and verb == "accept":
            settled.value[earlier != OPEN] = OPEN
        return subject, settled

    def _on_task(self, rows: Sequence[int], item: int, _run: int | None) -> tuple[Subject, None]:
        task, label = self._cell("task", rows[0]), self._cell("label", rows[0])
        votes = self._study.vote_set(item)
        if task not in votes.task_index:
            raise _Problem(f"there is no task {plain(task, 60)}")
        tree = class_tree(votes.scheme.classes)
        is_gold = self._cell("verb", rows[0]) in GoldSubject.verbs
        parents = () if tree is None or is_gold else tree.nodes
        if label and label not in (*votes.scheme.classes, *parents):
            classes = ", ".join(plain(name, 40) for name in votes.scheme.classes[:9])
            raise _Problem(f"{plain(label, 40)} is no class; expected {classes}")
        subject = GoldSubject if is_gold else TaskSubject
        return subject(task=task, label=label), None

    def _on_pairs(self, rows: Sequence[int], _item: int, _run: int | None) -> tuple[Subject, None]:
        name = self._cell("rater", rows[0])
        if name not in self._annotators:
            raise _Problem(f"there is no annotator {plain(name, 40)}")
        return BiasSubject(annotator=name), None

    def _cell(self, name: str, row: int) -> str:
        """Return a cell without the apostrophe that exports put before formulas."""
        column = self._columns.get(name)
        return "" if column is None else unescape_formula(column[row].strip())

    def _number(self, name: str, row: int) -> float:
        cell = self._cell(name, row)
        try:
            return float(cell)
        except ValueError:
            raise _Problem(f'{name} is "{plain(cell, 40)}"; expected a number') from None

    def _int(self, name: str, row: int) -> int | None:
        cell = self._cell(name, row)
        if cell and not cell.isdecimal():
            raise _Problem(f'{name} is "{plain(cell, 40)}"; expected a whole number')
        return int(cell) if cell else None


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise _Problem(f'at is "{plain(text, 40)}"; expected a time such as 2026-03-01T12:00:00+00:00')
    return time
