"""Acceptance sampling in the journal: the sample that an expert re-reads, and the errors found so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from raterscope.algorithms.annotators.acceptance import SequentialSampling, SingleSampling, Verdict, decide
from raterscope.app.nouns import NOUNS
from raterscope.text import counted

NO_SAMPLE = (
    "has no acceptance sample: draw it in the window (Review, Start an acceptance plan) or by "
    "`raterscope plan sample`"
)
_VERDICTS: dict[Verdict, str] = {"accept": "accepted", "reject": "rejected", "continue": "continue"}


@dataclass(frozen=True, kw_only=True)
class SampledItem:
    """An answer to re-read: a detection, a disputed region, a task, an annotator of pairs."""

    item: int  # number of the image or question in the study
    name: str = ""  # name of the structure, task or annotator; empty for a detection
    answer: str = ""  # the class of a task; flag or clear for an annotator
    # number, run: number of a detection or region on screen, and its run
    number: int | None = None
    run: int | None = None
    # x, y: position of a detection, pixels
    x: float | None = None
    y: float | None = None

    def in_words(self) -> str:
        """Describe the item: "spot 12", "liver, region 3", "task t7"."""
        if self.x is not None:
            return f"spot {self.number}"
        return self.name if self.number is None else f"{self.name}, region {self.number}"


@dataclass(frozen=True, kw_only=True)
class SampleSubject:
    """A sample of the answers of one kind, with the plan by which it is accepted or rejected."""

    form: ClassVar[str] = "sample"
    verbs: ClassVar[tuple[str, ...]] = ("sample", "close")

    of: str  # kind of annotation
    items: tuple[SampledItem, ...] = ()  # in the order of the queue; empty for the verb close
    total: int = 0  # answers from which the sample was drawn
    seed: int = 0
    # single, sequential: the plan; one of them is None
    single: SingleSampling | None = None
    sequential: SequentialSampling | None = None

    def __post_init__(self) -> None:
        if self.of not in NOUNS:
            raise ValueError(f"a sample of {self.of!r}; expected one of {', '.join(NOUNS)}.")
        if self.items and (self.single is None) == (self.sequential is None):
            raise ValueError("a sample needs a single or a sequential plan.")

    @property
    def kind(self) -> str:
        """Kind of annotation."""
        return self.of

    @property
    def plan(self) -> SingleSampling | SequentialSampling:
        """The plan."""
        plan = self.single or self.sequential
        assert plan is not None
        return plan

    def refuse(self, verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return "items" if verb == "sample" and not self.items else None

    def in_words(self, verb: str) -> str:
        """Describe the decision: "re-read 32 of 840 tasks, accept with at most 2 errors"."""
        if verb == "close":
            return f"end the acceptance plan for {NOUNS[self.of].detail}s"
        of = f"of {counted(self.total, NOUNS[self.of].detail)}"
        if self.single is not None:
            return f"re-read {len(self.items):,} {of}, accept with at most {_errors(self.single.accept)}"
        return f"re-read up to {len(self.items):,} {of}, decide after each"


def _errors(number: int) -> str:
    return counted(number, "error")


@dataclass(frozen=True, eq=False)
class SampleProgress:
    """Result of a sample so far."""

    decision: int  # number of the decision that drew the sample
    subject: SampleSubject
    # index in the sample to the decision on the re-read item, and whether it confirms the answer
    right: Mapping[int, tuple[int, bool]]

    @property
    def errors(self) -> int:
        """Number of answers that the expert changed."""
        return sum(not right for _, right in self.right.values())

    @cached_property
    def verdict(self) -> Verdict:
        """Verdict of the plan: the first one reached in the order of re-reading."""
        errors = 0
        for checked, (_, right) in enumerate(sorted(self.right.values()), start=1):
            errors += not right
            verdict = decide(self.subject.plan, checked, errors)
            if verdict != "continue":
                return verdict
        return "continue"

    def count_in_words(self) -> str:
        """Describe the progress: "12 of 32 re-read, 1 error, at most 2"."""
        checked, plan = len(self.right), self.subject
        if plan.single is not None:
            limit = f"at most {plan.single.accept:,}"
        else:
            accept, reject = plan.plan.limits(checked)
            limit = f"reject from {reject:,}"
            if accept >= 0:
                limit = f"accept with at most {accept:,}, {limit}"
        return f"{checked:,} of {len(plan.items):,} re-read, {_errors(self.errors)}, {limit}"

    def verdict_in_words(self) -> str:
        """Name the verdict: "Accepted", "Rejected"; empty while it is open."""
        return "" if self.verdict == "continue" else _VERDICTS[self.verdict].capitalize()

    def in_words(self) -> str:
        """Describe plan, count and verdict in a sentence."""
        verdict = self.verdict_in_words() or "Not decided yet"
        text = self.subject.in_words("sample").capitalize()
        return f"{text} (seed {self.subject.seed}): {self.count_in_words()}. {verdict}."
