"""Which decision has the last word on each subject of an item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator

__all__ = ["SKIP", "LastWords"]

SKIP = "skip"


class LastWords:
    """The decisions on the subjects of one item, in the order in which they were made.

    A subject is what a decision is about: a spot, a region of a run, a task, an annotator.
    """

    def __init__(self) -> None:
        self._said: dict[Hashable, dict[int, str]] = {}
        self._subjects: Counter[int] = Counter()
        """On how many subjects each decision is still in effect."""
        self._idle: set[int] = set()

    def add(self, subject: Hashable, decision: int, verb: str, over: Collection[str] | None = None) -> None:
        """Put a decision on top of those before it on the same subject.

        To skip a subject that is settled changes nothing.

        Parameters
        ----------
        subject : hashable
        decision : int
        verb : str
        over : collection of str, optional
            The verbs of earlier decisions that it supersedes; None for all.
        """
        said = self._said.setdefault(subject, {})
        if verb == SKIP and any(earlier != SKIP for earlier in said.values()):
            self._idle.add(decision)
            return
        superseded = [one for one, earlier in said.items() if over is None or earlier in over]
        for one in superseded:
            del said[one]
            self._subjects[one] -= 1
        if decision not in said:
            self._subjects[decision] += 1
        said[decision] = verb

    def supersede(self, subjects: Collection[Hashable]) -> None:
        """Let no decision on some subjects be in effect any longer."""
        for subject in subjects:
            for one in self._said.pop(subject, {}):
                self._subjects[one] -= 1

    def subjects(self) -> list[Hashable]:
        """List the subjects."""
        return list(self._said)

    def settled(self) -> Iterator[Hashable]:
        """Give the subjects on which more was decided than to skip them."""
        return (subject for subject, said in self._said.items() if any(one != SKIP for one in said.values()))

    def verbs(self, subject: Hashable) -> Collection[str]:
        """Give the verbs in effect on a subject."""
        return self._said.get(subject, {}).values()

    def standing(self, decision: int) -> str:
        """Tell whether a decision is in effect, superseded, or had no effect."""
        if self._subjects[decision] > 0:
            return "in effect"
        return "no effect" if decision in self._idle else "superseded"
