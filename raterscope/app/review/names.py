"""New names of structures and of classes of clicks, which the expert gave after the import.

The stored annotations keep the names under which they came. What is read from the study has the new names,
and names that became one name are one structure or class.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from raterscope.app.review.decision import Decision

NOUNS = {"masks": "structure", "clicks": "class"}
Names = Mapping[str, str]
"""The present name of each renamed structure or class, by its name in the files."""


@dataclass(frozen=True, kw_only=True)
class NameSubject:
    """Name of a structure or of a class of clicks in all images: change it, or merge it with another."""

    form: ClassVar[str] = "name"
    verbs: ClassVar[tuple[str, ...]] = ("rename", "merge")

    of: str  # kind of annotation: masks or clicks
    name: str  # present name
    new: str  # new name; the name of another structure or class if both are merged

    def __post_init__(self) -> None:
        if self.of not in NOUNS:
            raise ValueError(f"a name of {self.of!r}; expected one of {', '.join(NOUNS)}.")

    @property
    def kind(self) -> str:
        """Kind of annotation."""
        return self.of

    def refuse(self, _verb: str) -> str | None:
        """Name the missing field for a verb; None if complete."""
        return None if self.name and self.new and self.name != self.new else "another name"

    def in_words(self, verb: str) -> str:
        """Describe the decision: "rename structure gtv to GTV"."""
        return f"{verb} {NOUNS[self.of]} {self.name} {'to' if verb == 'rename' else 'with'} {self.new}"


def read_names(
    decisions: Iterable[Decision], dead: Collection[int] = ()
) -> tuple[dict[str, dict[str, str]], frozenset[int]]:
    """Return the present name of each renamed structure and class by kind, and the mergers in effect.

    `dead`: collection of int, decisions that were undone.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> first = NameSubject(of="masks", name="GTVp", new="GTV")
    >>> second = NameSubject(of="masks", name="GTV", new="tumour")
    >>> journal = [Decision(verb="merge", id=1, subject=first), Decision(verb="rename", id=2, subject=second)]
    >>> read_names(journal)
    ({'masks': {'GTVp': 'tumour', 'GTV': 'tumour'}}, frozenset({1}))
    """
    names: dict[str, dict[str, str]] = {}
    merged = set()
    for decision in decisions:
        subject = decision.subject
        if not isinstance(subject, NameSubject) or decision.id in dead:
            continue
        of_kind = names.setdefault(subject.of, {})
        of_kind.setdefault(subject.name, subject.name)
        names[subject.of] = {
            original: subject.new if name == subject.name else name for original, name in of_kind.items()
        }
        if decision.verb == "merge":
            merged.add(decision.id)
    renamed = {of: {name: new for name, new in each.items() if name != new} for of, each in names.items()}
    return {of: each for of, each in renamed.items() if each}, frozenset(merged)
