"""Columns of the result tables of crowd platforms: MTurk, Toloka, Appen.

References
----------
Amazon Web Services, "Amazon Mechanical Turk: results files",
https://docs.aws.amazon.com/AWSMechTurk/latest/RequesterUI/.
Toloka, "Results file", https://toloka.ai/docs/guide/result-of-eval/.
Appen, "Guide to: Reports page", https://success.appen.com/hc/en-us/articles/202703075.
"""

from __future__ import annotations

from collections.abc import Sequence

_PICTURES = ("image", "picture", "photo", "img", "file")


def platform_columns(header: Sequence[str]) -> dict[str, str]:
    """Assign the columns of a platform's table to fields; empty for any other table.

    Each column of answers is "label": with several, each is a question. The columns that are not assigned are
    "ignore".

    Examples
    --------
    >>> columns = platform_columns(["HITId", "WorkerId", "Input.url", "Answer.animal", "SubmitTime"])
    >>> {name: field for name, field in columns.items() if field != "ignore"}
    {'WorkerId': 'annotator', 'Input.url': 'task', 'Answer.animal': 'label'}
    """
    names = set(header)
    if {"HITId", "WorkerId"} <= names:
        return _assigned(header, "WorkerId", "HITId", "Input.", "Answer.")
    if {"ASSIGNMENT:worker_id", "ASSIGNMENT:task_id"} <= names:
        fields = _assigned(header, "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "INPUT:", "OUTPUT:")
        golden = [name for name in header if name.startswith("GOLDEN:")]
        if list(fields.values()).count("label") == len(golden) == 1:
            fields[golden[0]] = "truth"
        return fields | ({"ASSIGNMENT:submitted": "time"} if "ASSIGNMENT:submitted" in names else {})
    if {"_unit_id", "_worker_id"} <= names:
        answers = [name for name in header if f"{name}_gold" in names]
        fields = dict.fromkeys(header, "ignore") | {"_unit_id": "task", "_worker_id": "annotator"}
        fields |= dict.fromkeys(answers, "label")
        if len(answers) == 1:
            fields[f"{answers[0]}_gold"] = "truth"
        return fields | ({"_created_at": "time"} if "_created_at" in names else {})
    return {}


def _assigned(header: Sequence[str], annotator: str, task: str, given: str, answer: str) -> dict[str, str]:
    """Assign columns by their prefixes: what was given names the task if it is one column."""
    fields = dict.fromkeys(header, "ignore") | {annotator: "annotator"}
    fields |= {name: "status" for name in ("AssignmentStatus", "ASSIGNMENT:status") if name in fields}
    fields |= {name: "label" for name in header if name.startswith(answer)}
    shown = [name for name in header if name.startswith(given)]
    fields[shown[0] if len(shown) == 1 else task] = "task"
    pictures = [name for name in shown if name.removeprefix(given).casefold().startswith(_PICTURES)]
    if len(shown) > 1 and pictures:
        fields[pictures[0]] = "picture"
    return fields
