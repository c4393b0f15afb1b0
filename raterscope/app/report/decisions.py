"""The expert's decisions in a report: who, when, what, and whether it stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC

from raterscope.app.errors import plain
from raterscope.app.report.contents import Section, Table
from raterscope.app.report.units import NONE
from raterscope.app.review import Decision, fold

__all__ = ["decisions_section"]


def decisions_section(decisions: Sequence[Decision], items: Mapping[tuple[str, int], str]) -> Section:
    """List decisions in the order in which they were made.

    Parameters
    ----------
    decisions : sequence of Decision
        The whole journal.
    items : mapping of an item's kind and number to its name
        Those that are told of; decisions on others are left out.
    """
    state = fold(decisions)
    rows = []
    for one in decisions:
        target = one
        while target.verb == "undo" and target.undoes is not None:
            earlier = state.decision(target.undoes)
            if earlier is None:
                break
            target = earlier
        item = ""
        if target.subject is not None and target.items:
            names = [items.get((target.subject.kind, number), "") for number in target.items]
            if not any(names):
                continue
            item = ", ".join(name for name in names if name)
        when = NONE if one.at is None else one.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
        structure = getattr(target.subject, "structure", "")
        rows.append(
            (
                str(one.id),
                when,
                plain(one.who, 40),
                plain(item),
                plain(structure),
                plain(state.in_words(one), 160),
                "" if one.annotators else plain(one.reason, 160),  # the words have it
                "" if one.verb == "undo" else "yes" if state.in_effect(one.id) else "undone",
            )
        )
    columns = ("No.", "When (UTC)", "Who", "Case", "Structure", "What", "Why", "In effect")
    empty = {at for at in (3, 4, 6) if not any(row[at] for row in rows)}
    kept = [at for at in range(len(columns)) if at not in empty]
    if not rows:
        return Section("The expert's decisions", [Table("", ("No decision has been made.",), [])])
    table = Table(
        "",
        [columns[at] for at in kept],
        [[row[at] for at in kept] for row in rows],
        words=frozenset(range(len(kept))),
    )
    return Section("The expert's decisions", [table])
