"""Decisions in a report: expert, time, content, and status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from raterscope.app.errors import counted, plain
from raterscope.app.page.contents import Block, Prose, Section, Table
from raterscope.app.page.units import NONE
from raterscope.app.review import LONG_ENOUGH, Decision, ImageSubject, ReviewState, View, viewed_places
from raterscope.app.review.decision import target_of

_MOST = 200
"""Decisions that are listed one by one: of an afternoon there are thousands."""


def decisions_on(
    decisions: Sequence[Decision], items: Mapping[tuple[str, int], str], state: ReviewState
) -> list[tuple[Decision, str]]:
    """Select the decisions on some items, and on annotators, each with the names of its items.

    Parameters
    ----------
    decisions : sequence of Decision
        The whole journal.
    items : mapping of an item's kind and number to its name
    state : ReviewState
        State that follows from the journal.
    """
    selected = []
    for decision in decisions:
        target = _target(decision, state)
        names = []
        if target.subject is not None and target.items:
            names = [items.get((target.subject.kind, number), "") for number in target.items]
            if not any(names):
                continue
        selected.append((decision, ", ".join(filter(None, names))))
    return selected


def decisions_section(
    entries: Sequence[tuple[Decision, str]],
    state: ReviewState,
    views: Mapping[int, Sequence[View]] | None = None,
) -> Section:
    """Summarise decisions by expert, and list them in their order.

    Parameters
    ----------
    entries : sequence of decision and name of its items
        See `decisions_on`.
    state : ReviewState
    views : mapping of image to views, optional
        Of the spots of clicks on the images of the report.
    """
    title = "The expert's decisions"
    viewed = [*_controls(entries, state), *_viewed(views or {}, state)]
    if not entries:
        none: list[Block] = [Prose([("", "No decision has been made.")])]
        return Section(title, none + viewed)
    blocks: list[Block] = [_by_whom([decision for decision, _ in entries], state), *viewed]
    notable = sorted(range(len(entries)), key=lambda index: _is_plain(entries[index][0]))[:_MOST]
    listed = [entries[index] for index in sorted(notable)]
    rows = [_row(one, items, state) for one, items in listed]
    columns = ("No.", "When (UTC)", "Who", "Case", "Structure", "What", "Why", "Standing")
    used = [
        index for index in range(len(columns)) if index not in (3, 4, 6) or any(row[index] for row in rows)
    ]
    note = ""
    if len(listed) < len(entries):
        note = (
            f"Of {len(entries):,} decisions {len(listed):,} are listed, first those with a reason and those "
            "on annotators; `raterscope export --what decisions` writes all."
        )
    blocks.append(
        Table(
            "One by one", [columns[index] for index in used],
            [[row[index] for index in used] for row in rows], note, frozenset(range(len(used))),
        )
    )  # fmt: skip
    return Section(title, blocks)


def _viewed(views: Mapping[int, Sequence[View]], state: ReviewState) -> list[Block]:
    """Describe the number of spots viewed and left without a decision."""
    viewed = {image: len(viewed_places(some, state.spots(image))) for image, some in views.items()}
    spot_count, images = sum(viewed.values()), sum(number > 0 for number in viewed.values())
    if not spot_count:
        return []
    words = (
        f"{counted(spot_count, 'spot')} on {counted(images, 'image')} {'was' if spot_count == 1 else 'were'} "
        f"in sight for {LONG_ENOUGH:g} s or longer and left without a decision: selected, or in the grid of "
        "spots while others were decided. Skipped spots are not counted."
    )
    return [Prose([("Viewed and left undecided", words)])]


def _controls(entries: Sequence[tuple[Decision, str]], state: ReviewState) -> list[Block]:
    """Name the control images, and those whose mark an accepted spot contradicts."""
    marks: dict[str, list[str]] = {}
    for decision, name in entries:
        mark = (
            state.control_mark(decision.item)
            if isinstance(decision.subject, ImageSubject) and decision.item
            else None
        )
        if mark is None or mark.decision != decision.id or decision.item is None:
            continue
        counts = state.control(decision.item) is not None
        words = f"{mark.in_words().capitalize()}s" if counts else "Not used, as a spot on them is accepted"
        marks.setdefault(words, []).append(plain(name, 40))
    words = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(marks.items()))
    return [Prose([("Control images", f"{words}.")])] if words else []


def _by_whom(decisions: Sequence[Decision], state: ReviewState) -> Table:
    rows = []
    for expert in dict.fromkeys(decision.who for decision in decisions):
        own = [decision for decision in decisions if decision.who == expert]
        verbs = Counter(decision.verb for decision in own)
        times = [decision.at for decision in own if decision.at is not None]
        rows.append(
            (
                plain(expert, 40) or NONE,
                f"{len(own):,}",
                f"{sum(decision.verb != 'undo' and state.in_effect(decision.id) for decision in own):,}",
                _minute(min(times, default=None)),
                _minute(max(times, default=None)),
                ", ".join(f"{verb} {count:,}" for verb, count in verbs.most_common()),
            )
        )
    columns = ("Who", "Decisions", "In effect", "First (UTC)", "Last (UTC)", "What")
    return Table("By whom", columns, rows, words=frozenset({3, 4, 5}))


def _row(decision: Decision, items: str, state: ReviewState) -> Sequence[str]:
    return (
        str(decision.id),
        NONE if decision.at is None else decision.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        plain(decision.who, 40),
        plain(items),
        plain(getattr(_target(decision, state).subject, "structure", "")),
        plain(state.in_words(decision), 160),
        "" if decision.annotators else plain(decision.reason, 160),  # the words have it
        "" if decision.verb == "undo" else state.standing(decision.id),
    )


def _is_plain(decision: Decision) -> bool:
    return not (decision.reason or decision.annotators)


def _target(decision: Decision, state: ReviewState) -> Decision:
    """Return the target of a chain of undos."""
    return target_of(decision, state.decision)[0] or decision


def _minute(time: datetime | None) -> str:
    return NONE if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
