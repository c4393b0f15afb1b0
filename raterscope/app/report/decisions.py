"""The expert's decisions in a report: who, when, what, and whether it stands."""

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


def told_of(
    decisions: Sequence[Decision], items: Mapping[tuple[str, int], str], state: ReviewState
) -> list[tuple[Decision, str]]:
    """Choose the decisions on some items, and on annotators, each with the names of its items.

    Parameters
    ----------
    decisions : sequence of Decision
        The whole journal.
    items : mapping of an item's kind and number to its name
    state : ReviewState
        What the journal amounts to.
    """
    found = []
    for one in decisions:
        target = _target(one, state)
        names = []
        if target.subject is not None and target.items:
            names = [items.get((target.subject.kind, number), "") for number in target.items]
            if not any(names):
                continue
        found.append((one, ", ".join(filter(None, names))))
    return found


def decisions_section(
    told: Sequence[tuple[Decision, str]],
    state: ReviewState,
    views: Mapping[int, Sequence[View]] | None = None,
) -> Section:
    """Sum decisions up by who made them, and list them in the order in which they were made.

    Parameters
    ----------
    told : sequence of decision and name of its items
        See `told_of`.
    state : ReviewState
    views : mapping of image to views, optional
        Of the spots of clicks on the images of the report.
    """
    title = "The expert's decisions"
    viewed = [*_controls(told, state), *_viewed(views or {}, state)]
    if not told:
        none: list[Block] = [Prose([("", "No decision has been made.")])]
        return Section(title, none + viewed)
    blocks: list[Block] = [_by_whom([one for one, _ in told], state), *viewed]
    notable = sorted(range(len(told)), key=lambda at: _is_plain(told[at][0]))[:_MOST]
    shown = [told[at] for at in sorted(notable)]
    rows = [_row(one, items, state) for one, items in shown]
    columns = ("No.", "When (UTC)", "Who", "Case", "Structure", "What", "Why", "Standing")
    kept = [at for at in range(len(columns)) if at not in (3, 4, 6) or any(row[at] for row in rows)]
    note = ""
    if len(shown) < len(told):
        note = (
            f"Of {len(told):,} decisions {len(shown):,} are listed, first those with a reason and those on "
            "annotators; `raterscope export --what decisions` writes all."
        )
    blocks.append(
        Table(
            "One by one", [columns[at] for at in kept], [[row[at] for at in kept] for row in rows], note,
            frozenset(range(len(kept))),
        )
    )  # fmt: skip
    return Section(title, blocks)


def _viewed(views: Mapping[int, Sequence[View]], state: ReviewState) -> list[Block]:
    """Say how many spots were viewed and left without a decision."""
    found = {image: len(viewed_places(some, state.spots(image))) for image, some in views.items()}
    many, images = sum(found.values()), sum(number > 0 for number in found.values())
    if not many:
        return []
    words = (
        f"{counted(many, 'spot')} on {counted(images, 'image')} {'was' if many == 1 else 'were'} in sight "
        f"for {LONG_ENOUGH:g} s or longer and left without a decision: selected, or in the grid of spots "
        "while others were decided. Skipped spots are not counted."
    )
    return [Prose([("Viewed and left undecided", words)])]


def _controls(told: Sequence[tuple[Decision, str]], state: ReviewState) -> list[Block]:
    """Name the control images, and those whose mark an accepted spot contradicts."""
    found: dict[str, list[str]] = {}
    for one, name in told:
        mark = state.control_mark(one.item) if isinstance(one.subject, ImageSubject) and one.item else None
        if mark is None or mark.decision != one.id or one.item is None:
            continue
        counts = state.control(one.item) is not None
        words = f"{mark.in_words().capitalize()}s" if counts else "Not used, as a spot on them is accepted"
        found.setdefault(words, []).append(plain(name, 40))
    words = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in sorted(found.items()))
    return [Prose([("Control images", f"{words}.")])] if words else []


def _by_whom(decisions: Sequence[Decision], state: ReviewState) -> Table:
    rows = []
    for who in dict.fromkeys(one.who for one in decisions):
        own = [one for one in decisions if one.who == who]
        verbs = Counter(one.verb for one in own)
        times = [one.at for one in own if one.at is not None]
        rows.append(
            (
                plain(who, 40) or NONE,
                f"{len(own):,}",
                f"{sum(one.verb != 'undo' and state.in_effect(one.id) for one in own):,}",
                _minute(min(times, default=None)),
                _minute(max(times, default=None)),
                ", ".join(f"{verb} {count:,}" for verb, count in verbs.most_common()),
            )
        )
    columns = ("Who", "Decisions", "In effect", "First (UTC)", "Last (UTC)", "What")
    return Table("By whom", columns, rows, words=frozenset({3, 4, 5}))


def _row(one: Decision, items: str, state: ReviewState) -> Sequence[str]:
    return (
        str(one.id),
        NONE if one.at is None else one.at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"),
        plain(one.who, 40),
        plain(items),
        plain(getattr(_target(one, state).subject, "structure", "")),
        plain(state.in_words(one), 160),
        "" if one.annotators else plain(one.reason, 160),  # the words have it
        "" if one.verb == "undo" else state.standing(one.id),
    )


def _is_plain(one: Decision) -> bool:
    return not (one.reason or one.annotators)


def _target(one: Decision, state: ReviewState) -> Decision:
    """Return what an undo is about in the end."""
    return target_of(one, state.decision)[0] or one


def _minute(at: datetime | None) -> str:
    return NONE if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
