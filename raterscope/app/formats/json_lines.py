"""JSON lines: one record per line, read as a table; records of labelling tools become one row per vote.

Nested objects become columns with a dot in their name, and a list of values becomes one cell with the values
joined by " + ". Prodigy, Argilla and doccano store votes inside a record; these become rows with the columns
annotator, text, label, time and question.

References
----------
Explosion, "Prodigy: annotation task formats", https://prodi.gy/docs/api-interfaces.
Argilla, "Import and export records", https://docs.argilla.io/latest/how_to_guides/import_export/.
doccano, "Tutorial: export", https://doccano.github.io/doccano/tutorial/.
Zheng, L., Chiang, W.-L., Sheng, Y. and others, "Judging LLM-as-a-judge with MT-bench and Chatbot Arena",
Advances in Neural Information Processing Systems 36, 2023. https://doi.org/10.48550/arXiv.2306.05685
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raterscope.app.errors import InputError
from raterscope.app.formats.annotations import find_annotator, join_choices
from raterscope.app.formats.tables import Table
from raterscope.app.formats.untrusted import decode_json, entries, is_number, json_content, read_bytes

_LINES = (".jsonl", ".ndjson")
_MAX_COLUMNS = 1000
_DEEPEST = 8
_CONTENT = ("text", "image", "audio", "video", "html", "url", "prompt", "content")
"""Fields of Prodigy with the content shown to annotators, the most probable first."""

Row = Mapping[str, str]


def is_json_lines(path: Path, start: bytes) -> bool:
    """Return whether a file holds JSON lines, by its name or its first bytes."""
    suffix = path.suffix.casefold()
    begin = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return suffix in _LINES or (begin == b"{" and suffix not in (".json", ".geojson"))


def read_records(path: Path) -> Table:
    """Read JSON lines, or a JSON list of records, as a table.

    Raises `InputError` for a line that is not a JSON object, and for a file without records.
    """
    content = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
    columns: dict[str, list[str]] = {}
    lines: list[int] = []
    for line, record in _records(path, content):
        for row in _rows(path, record):
            for name, cell in row.items():
                column = columns.get(name)
                if column is None:
                    if len(columns) == _MAX_COLUMNS:
                        raise InputError(
                            f"has more than {_MAX_COLUMNS:,} different fields; expected a table",
                            file=path, line=line,
                        )  # fmt: skip
                    column = columns[name] = []
                column.extend([""] * (len(lines) - len(column)))
                column.append(cell)
            lines.append(line)
    if len(columns) < 2:
        raise InputError("contains no records with two fields or more; expected a table", file=path)
    for column in columns.values():
        column.extend([""] * (len(lines) - len(column)))
    return Table(path, tuple(columns), tuple(columns.values()), lines)


def _records(path: Path, content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each record with its line or, in a JSON list, its number."""
    if content.lstrip()[:1] == b"[":
        for number, record in enumerate(entries(json_content(path, content)), 1):
            yield number, record
        return
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = decode_json(line)
        except ValueError as error:
            raise InputError(f"{str(error).removeprefix('it ')}; expected one JSON object a line",
                             file=path, line=number) from None  # fmt: skip
        if not isinstance(record, dict):
            raise InputError("is not a JSON object; expected one a line", file=path, line=number)
        yield number, record


def _rows(path: Path, record: dict[str, Any]) -> list[Row]:
    """Return the rows of a record: a labelling tool's votes, otherwise the record itself."""
    if record.get("answer") in ("accept", "reject", "ignore") and any(
        key in record for key in ("_annotator_id", "_session_id", "_task_hash", "_input_hash")
    ):
        return [_prodigy_row(path, record)]
    if isinstance(record.get("fields"), dict) and "responses" in record:
        return _argilla_rows(record)
    if _is_studio_task(record):
        return list(_compared_rows(path, record))
    if {"model_1", "model_2", "g1_winner", "g2_winner"} <= record.keys():
        return _judged_twice(record)
    if len(record) > 2 and all(isinstance(value, list) for value in record.values()):
        raise InputError("has a list in every field; expected one JSON object per vote", file=path)
    row = dict(_cells(record))
    if isinstance(record.get("label"), list) and find_annotator(record) is None:
        row["annotator"] = path.stem  # doccano writes one file per annotator
    return [row]


def _judged_twice(record: dict[str, Any]) -> list[Row]:
    """Return both games of an MT-bench judgment; the second shows the models in the other order."""
    row = dict(_cells({name: value for name, value in record.items() if not name.startswith(("g1_", "g2_"))}))
    first, second = row.pop("model_1", ""), row.pop("model_2", "")
    models = {"model_1": first, "model_2": second}
    return [
        {**row, "model_a": left, "model_b": right, "winner": models.get(winner, winner)}
        for left, right, winner in (
            (first, second, _text(record["g1_winner"])), (second, first, _text(record["g2_winner"])),
        )
    ]  # fmt: skip


def _is_studio_task(record: dict[str, Any]) -> bool:
    annotations = record.get("annotations")
    return (
        isinstance(record.get("data"), dict)
        and isinstance(annotations, list)
        and all(isinstance(annotation.get("result"), list) for annotation in entries(annotations))
    )


def _compared_rows(path: Path, task: dict[str, Any]) -> Iterator[Row]:
    """Yield the comparisons of a task of Label Studio: the value of `Pairwise` of each annotation."""
    from raterscope.app.formats.label_studio import annotator_name

    data = task["data"]
    for annotation in entries(task["annotations"]):
        results = [] if annotation.get("was_cancelled") is True else entries(annotation.get("result"))
        for result in results:
            value = result.get("value")
            if result.get("type") != "pairwise" or not isinstance(value, dict):
                continue
            sides = _text(result.get("to_name")).split(",")
            keys = [_data_key(data, name.strip()) for name in sides]
            if len(keys) != 2 or None in keys or keys[0] == keys[1]:
                raise InputError(
                    "compares objects that no field of its data is named after; name the fields as in toName",
                    file=path, field=f"task {_text(task.get('id'))}",
                )  # fmt: skip
            shown = {name: cell for name, cell in _cells(data) if name not in keys}
            yield shown | {
                "annotator": annotator_name(annotation.get("completed_by")) or path.stem,
                "left": _text(data[keys[0]]), "right": _text(data[keys[1]]),
                "choice": _text(value.get("selected")), "time": _text(annotation.get("created_at")),
            }  # fmt: skip


def _data_key(data: dict[str, Any], name: str) -> str | None:
    """Return the field that an object shows: that of its name, or the only one with its last letter."""
    if name in data:
        return name
    ends = [key for key in data if key[-1:].casefold() == name[-1:].casefold()]
    return ends[0] if len(ends) == 1 else None


def _prodigy_row(path: Path, record: dict[str, Any]) -> Row:
    """Return the vote of a Prodigy record: a chosen option, or accept or reject of one label."""
    row = {
        "annotator": _text(record.get("_annotator_id") or record.get("_session_id")) or path.stem,
        "text": next((_text(record[name]) for name in _CONTENT if record.get(name)), ""),
        "label": "",
    }
    answer, options = record["answer"], record.get("accept")
    if isinstance(options, list):
        row["label"] = _joined(options) if answer == "accept" else ""
        row["answer status"] = "" if answer == "accept" else "rejected"
    elif "label" in record:
        row["question"] = _text(record["label"])
        row["label"] = answer if answer != "ignore" else ""
    elif "spans" not in record:
        row["label"] = answer if answer != "ignore" else ""
    if is_number(record.get("_timestamp")):
        row["time"] = _date(record["_timestamp"])
    return row


def _argilla_rows(record: dict[str, Any]) -> list[Row]:
    """Return the submitted responses of an Argilla record, of either version of its export."""
    shown = {name: value for name, value in record["fields"].items() if isinstance(value, str)}
    rows: list[Row] = []
    responses = record["responses"]
    if isinstance(responses, dict):
        for question, values in responses.items():
            rows += [_argilla_row(shown, question, value, value) for value in entries(values)]
    for response in entries(responses):
        values = response.get("values")
        if response.get("status", "submitted") == "submitted" and isinstance(values, dict):
            rows += [_argilla_row(shown, question, response, value) for question, value in values.items()]
    return rows


def _argilla_row(shown: Row, question: str, response: dict[str, Any], value: Any) -> Row:
    answer = value.get("value") if isinstance(value, dict) else value
    return {
        **(shown if len(shown) > 1 else {}),
        "annotator": _text(response.get("user_id")) or "annotator",
        "text": "\n\n".join(shown.values()),
        "label": _joined(answer) if isinstance(answer, list) else _text(answer),
        "question": question,
    }


def _cells(record: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the cells of a record; lists of records have none."""
    for name, value in record.items():
        if isinstance(value, dict):
            if depth < _DEEPEST:
                yield from _cells(value, f"{prefix}{name}.", depth + 1)
        elif isinstance(value, list):
            if cell := text_of_value(value):
                yield prefix + name, cell
        else:
            yield prefix + name, _text(value)


def text_of_value(value: Any) -> str:
    """Return a value as a cell: a list of values joined, and the messages of a conversation; else as text."""
    if not isinstance(value, list) or not value:
        return _text(value)
    if all(isinstance(entry, dict) and "content" in entry for entry in value):
        return _conversation(value)
    return "" if any(isinstance(entry, dict | list) for entry in value) else _joined(value)


def _conversation(messages: list[dict[str, Any]]) -> str:
    """Return the messages of a conversation as text, with the author of each if there are several."""
    texts = [(_text(message.get("role")), _text(message["content"])) for message in messages]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"{role}: {text}" if role else text for role, text in texts)


def _joined(values: list[Any]) -> str:
    return join_choices([text for value in values if (text := _text(value))])


def _text(value: Any) -> str:
    """Convert a value to a cell: "true" or "false", a number or text; empty for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isnan(value):  # a missing value
        return ""
    return str(value) if isinstance(value, str | int | float) else ""


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
