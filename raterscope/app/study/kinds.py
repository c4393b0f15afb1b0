"""The kinds of annotation, as far as the study stores them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.labels.result import LabelResult
from raterscope.algorithms.masks.fusion import CaseResult
from raterscope.algorithms.pairs.data import PairFusion
from raterscope.app.review import REVIEWED, ReviewedKind, reviewed
from raterscope.app.study.records import ImageEntry, Item, MaskLog, RunEntry
from raterscope.app.study.result_shapes import (
    mismatch_of_case,
    mismatch_of_fused_labels,
    mismatch_of_fused_pairs,
    mismatch_of_fusion,
)

if TYPE_CHECKING:
    from raterscope.app.study.study import Study


@dataclass(frozen=True)
class StoredKind:
    """A kind of annotation in the study.

    Attributes
    ----------
    review : ReviewedKind
        Its decisions; its name is that of the kind.
    result : type
        Dataclass of arrays that a run stores of each item.
    mismatch : callable
        ``mismatch(study, run, item, result)`` explains why a result does not fit its item as the run read it;
        None if it fits.
    newer : str
        SQL that selects a row where annotations of an item came after an import.
    annotated : str
        SQL that selects the images with annotations; empty where the items are questions.
    questions : callable, optional
        Lists the questions where these are the items.
    takes : callable
        Tells whether an image without any annotations is listed with those of the kind.
    log : type, optional
        What the log of a run must hold.
    has_controls : bool
        Whether images can be marked as positive or negative controls.
    """

    review: ReviewedKind
    result: type[Any]
    mismatch: Callable[[Study, RunEntry, int, Any], str | None]
    newer: str
    annotated: str = ""
    questions: Callable[[Study], tuple[Item, ...]] | None = None
    takes: Callable[[ImageEntry], bool] = lambda _entry: False
    log: type[Any] | None = None
    has_controls: bool = False

    @property
    def name(self) -> str:
        """The name: "clicks"."""
        return self.review.name

    @property
    def by_question(self) -> bool:
        """Whether the items are questions; else they are images."""
        return self.questions is not None


_VOTES = "SELECT 1 FROM votes WHERE question = ? AND import > ? AND truth = 0 LIMIT 1"

STORED: dict[str, StoredKind] = {
    kind.name: kind
    for kind in (
        StoredKind(
            REVIEWED["clicks"], Fusion, mismatch_of_fusion,
            "SELECT 1 FROM marks WHERE image = ? AND import > ? AND kind IN ('clicks', 'scores') LIMIT 1",
            annotated="SELECT DISTINCT image FROM marks WHERE kind IN ('clicks', 'truth', 'scores')",
            takes=lambda entry: entry.grid is None, has_controls=True,
        ),
        StoredKind(
            REVIEWED["masks"], CaseResult, mismatch_of_case,
            "SELECT 1 FROM masks WHERE image = ? AND import > ? AND annotator >= 0 LIMIT 1",
            annotated="SELECT DISTINCT image FROM masks",
            takes=lambda entry: entry.grid is not None, log=MaskLog,
        ),
        StoredKind(
            REVIEWED["labels"], LabelResult, mismatch_of_fused_labels, _VOTES,
            questions=lambda study: study.questions(),
        ),
        StoredKind(
            REVIEWED["pairs"], PairFusion, mismatch_of_fused_pairs, _VOTES,
            questions=lambda study: study.pair_questions(),
        ),
    )
}  # fmt: skip
"""The kinds that a study can hold, in the order of tabs and reports."""


@contextmanager
def stored(kind: StoredKind) -> Iterator[None]:
    """Store another kind for a while."""
    STORED[kind.name] = kind
    try:
        with reviewed(kind.review):
            yield
    finally:
        del STORED[kind.name]


def image_kinds() -> tuple[str, ...]:
    """List the kinds whose items are images."""
    return tuple(name for name, kind in STORED.items() if not kind.by_question)


def question_kinds() -> tuple[str, ...]:
    """List the kinds whose items are questions."""
    return tuple(name for name, kind in STORED.items() if kind.by_question)


def mismatch_of(study: Study, run: RunEntry, item: int, result: object) -> str | None:
    """Explain why a result does not fit its item as the run read it; None if it fits."""
    kind = STORED[run.kind]
    if not isinstance(result, kind.result):
        return f"it is no result of {run.kind}"
    return kind.mismatch(study, run, item, result)
