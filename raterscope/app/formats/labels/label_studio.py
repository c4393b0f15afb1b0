"""Label Studio: choices in JSON, several annotators a task; each set of choices is a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import InputError
from raterscope.app.formats.clicks import seconds_or_nan
from raterscope.app.formats.labels.gathering import Gathering, answer_text, joined
from raterscope.app.formats.labels.records import LabelTable, TrueLabels
from raterscope.app.formats.masks.label_studio import annotations_of, item_of
from raterscope.app.formats.strangers import entries, is_number, text_of

__all__ = ["has_choices", "read_choices"]

_PLACES = {"x", "points", "rle", "start"}


def has_choices(content: Any, *, alone: bool) -> bool:
    """Tell whether there are choices; `alone` if there are no marks on pictures."""
    choices = 0
    for task in entries(content):
        for made in (task.get("annotations"), task.get("completions")):
            for one in entries(made):
                for region in entries(one.get("result")):
                    if alone and "original_width" in region:
                        return False
                    choices += _answer(region) is not None
    return choices > 0


def read_choices(
    path: Path, content: Any, annotator: str, watch: Watch = silent
) -> tuple[LabelTable | TrueLabels, ...]:
    """Read choices and ratings.

    Cancelled annotations are left out. What a model predicted is the vote of an annotator of the model's
    name; what is marked as ground truth counts as that, and not as a vote.

    Raises
    ------
    InputError
        For a task that cannot be read, and a file without choices.
    """
    gathering = Gathering(path)
    items = [item_of(task, at) if isinstance(task, dict) else "" for at, task in enumerate(content)]
    several = {item for item in items if items.count(item) > 1} if len(set(items)) < len(items) else set()
    for at, task in enumerate(content):
        watch(at / len(content), "reading tasks")
        if not isinstance(task, dict):
            raise InputError("is no task", file=path, field=f"task {at + 1}")
        item = items[at]
        name = f"{item} (task {text_of(task.get('id')) or at + 1})" if item in several else item
        for one in annotations_of(task, gathering.left_out):
            for region in one.regions:
                answer = _answer(region)
                if answer is None:
                    gathering.left_out["marks that are no choices"] += 1
                    continue
                question = text_of(region.get("from_name"))
                if one.truth:
                    gathering.add_truth(question, name, answer)
                    continue
                gathering.add(
                    question, one.annotator or annotator, name, answer, time=seconds_or_nan(one.made),
                    picture=item if not item.startswith("task ") else "",
                )  # fmt: skip
    return gathering.tables()


def _answer(region: Any) -> str | None:
    value = region.get("value") if isinstance(region, dict) else None
    if not isinstance(value, dict) or not _PLACES.isdisjoint(value):
        return None  # what is said of a region is not said of the task
    choices = value.get("choices")
    if isinstance(choices, list):
        # The choices of a tree are lists from its root.
        paths = [one if isinstance(one, list) else [one] for one in choices]
        return joined([" / ".join(map(answer_text, one)) for one in paths])
    rating = value.get("rating")
    return text_of(rating) if is_number(rating) else None
