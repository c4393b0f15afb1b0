"""Changes of an item of labels from one run to the next."""

from __future__ import annotations

from raterscope.algorithms.labels import OPEN
from raterscope.algorithms.labels.result import LabelResult
from raterscope.app.comparison import ComparedItem, Differences, share_in_words, step_in_words
from raterscope.app.disputes import disputed_tasks
from raterscope.app.errors import plain


def compare_runs(at: ComparedItem, found: Differences) -> None:
    """Compare the item by two runs and fill in the differences."""
    then, now = at.then, at.now
    assert isinstance(then, LabelResult)
    assert isinstance(now, LabelResult)
    before, after = then.fusion, now.fusion
    old_names = at.study.vote_set(at.item, at.earlier.imported).tasks
    new_names = at.study.vote_set(at.item, at.later.imported).tasks
    old_disputed, new_disputed = (disputed_tasks(one) for one in (before, after))
    found.disputed_before += int(old_disputed.sum())
    found.disputed_after += int(new_disputed.sum())
    number = {name: task for task, name in enumerate(old_names)}
    was, now_is = before.label(), after.label()
    decided = at.state.tasks(at.item)
    for task, name in enumerate(new_names[: len(now_is)]):
        earlier = number.get(name)
        settled = after.known[task] != OPEN or name in decided
        if settled and earlier is not None and earlier < len(was) and old_disputed[earlier]:
            found.decided += 1
        if settled or earlier is None or earlier >= len(was):
            continue
        old, new = before.classes[was[earlier]], after.classes[now_is[task]]
        shares = float(before.posterior[earlier, was[earlier]]), float(after.posterior[task, now_is[task]])
        if old != new:
            classes = f"{plain(old)} \N{RIGHTWARDS ARROW} {plain(new)}"
            words = f"{classes} ({share_in_words(shares[1])}): {plain(name)}"
            found.changes.append(at.change(words, 1 + shares[1], name=name))
        elif new_disputed[task] and not old_disputed[earlier]:
            found.newly_disputed += 1
            words = f"{step_in_words(*shares)}, {plain(new)}, disputed now: {plain(name)}"
            found.changes.append(at.change(words, shares[0] - shares[1], name=name))
