"""Label Studio: a choice a task, what an expert decided as annotation, what a model says as prediction.

The layout is Label Studio's own JSON for tasks (https://labelstud.io/guide/task_format) and for predictions
(https://labelstud.io/guide/predictions). A choice belongs to a project's labelling interface by the names of
two tags, so that the interface is written beside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from raterscope.algorithms.labels.data import ClassArray, FloatArray
from raterscope.algorithms.progress import Watch, silent
from raterscope.app.errors import plain
from raterscope.app.formats.export import replacing
from raterscope.app.formats.labels.writing import DecidedLabel

__all__ = ["write_label_studio"]

_CONTROL, _OBJECT = "label", "task"
"""The names of the two tags."""

_BLOCK = 2000
_LONGEST = 10_000


def write_label_studio(
    path: Path,
    tasks: Sequence[str],
    classes: Sequence[str],
    posterior: FloatArray,
    label: ClassArray,
    *,
    model: str,
    decided: Mapping[int, DecidedLabel] | None = None,
    pictures: Mapping[int, str] | None = None,
    watch: Watch = silent,
) -> list[Path]:
    """Write tasks for Label Studio, and beside them, as .xml, the labelling interface to import them into.

    Annotations name nobody in the place for Label Studio's users, whom only the importing project knows: they
    become the importing person's. Who decided, and why, is among the task's data.

    Parameters
    ----------
    path : Path
        The JSON file.
    tasks, classes : sequence of N and J names
    posterior : (N, J) float64
    label : (N,) int16
        Index into `classes`, what the model says; below 0 for nothing.
    model : str
        What the predictions are told to come from.
    decided : mapping of task index to DecidedLabel, optional
        An empty label becomes an annotation without a choice.
    pictures : mapping of task index to a file name or address, optional
        Without any, a task is shown as a text: its name.
    watch : Watch

    Returns
    -------
    list of Path
        The tasks and the interface.

    Raises
    ------
    InputError
        When a file cannot be written.
    """
    pictures, decided = pictures or {}, decided or {}
    key = "image" if pictures else "text"
    # The interface's XML holds nothing that cannot be printed, and both files must name the classes alike.
    choices = [plain(name, _LONGEST) for name in classes]
    with replacing(path) as file:
        file.write("[")
        for at, name in enumerate(tasks):
            if at % _BLOCK == 0:
                watch(at / len(tasks), "writing tasks")
            shares = posterior[at].tolist()
            data: dict[str, object] = {key: pictures.get(at, name)}
            if pictures:
                data["task"] = name
            data["probabilities"] = {one: round(share, 9) for one, share in zip(choices, shares, strict=True)}
            task: dict[str, object] = {"data": data, "annotations": [], "predictions": []}
            if label[at] >= 0:
                result = _choice(at, choices[label[at]])
                score = round(shares[label[at]], 9)
                task["predictions"] = [{"model_version": model, "score": score, "result": result}]
            if at in decided:
                one = decided[at]
                data |= {"decided_by": one.who, "reason": one.reason}
                annotation: dict[str, object] = {
                    "ground_truth": True,
                    "result": _choice(at, plain(one.label, _LONGEST)),
                }
                if one.when is not None:
                    annotation["created_at"] = one.when.isoformat(timespec="seconds")
                task["annotations"] = [annotation]
            file.write(",\n" if at else "\n")
            file.write(json.dumps(task))
        file.write("\n]\n")
    interface = path.with_suffix(".xml")
    with replacing(interface) as file:
        file.write(_interface(choices, key))
    return [path, interface]


def _choice(at: int, label: str) -> list[dict[str, object]]:
    if not label:
        return []
    value = {"choices": [label]}
    name = f"task-{at + 1}"
    return [{"id": name, "from_name": _CONTROL, "to_name": _OBJECT, "type": "choices", "value": value}]


def _interface(classes: Sequence[str], key: str) -> str:
    """Give the labelling interface: a picture or a text, and a choice of one class with its key."""
    shown = "Image" if key == "image" else "Text"
    choices = "".join(
        f"    <Choice value={quoteattr(name)}" + (f' hotkey="{number}"' if number < 10 else "") + "/>\n"
        for number, name in enumerate(classes, start=1)
    )
    return (
        f'<View>\n  <{shown} name="{_OBJECT}" value="${key}"/>\n'
        f'  <Choices name="{_CONTROL}" toName="{_OBJECT}" choice="single">\n{choices}  </Choices>\n</View>\n'
    )
