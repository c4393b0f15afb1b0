"""Labels as the next program reads them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from raterscope.algorithms.labels.data import Drift, Labels
from raterscope.algorithms.labels.rates import Rates
from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats.label_studio import write_label_studio
from raterscope.app.formats.labels import writing
from raterscope.app.formats.labels.writing import (
    DecidedLabel,
    write_annotators,
    write_confusion,
    write_crowdkit_confusion,
    write_crowdkit_probabilities,
    write_crowdkit_truth,
    write_crowdkit_votes,
    write_decisions,
    write_labels,
    write_votes,
)
from tests.app.tables import header_of, rows_of

TASKS = ("cell 1", '=HYPERLINK("x"), "y"', "Zelle ü\nzwei")
CLASSES = ("no", "yes")


def some_votes(time: bool = True) -> Labels:
    return Labels(
        task=np.array([0, 0, 1, 2, 1]),
        annotator=np.array([0, 1, 0, 1, 1]),
        label=np.array([0, 1, 2, 2, 0]),
        tasks=TASKS,
        annotators=("ann", "-cmd"),
        outputs=("-1", "1", "3"),
        classes=CLASSES,
        meaning=np.array([0, 1, 1]),
        time=np.array([1.7e9 + 0.25, 5, np.nan, 7, 8]) if time else None,
    )


def some_rates(people: int, rng: np.random.Generator) -> Rates:
    counts = rng.gamma(2.0, 3.0, (people, 2, 3))
    votes = counts.sum(axis=(1, 2))
    prior = np.broadcast_to([[0.6, 0.2, 0.2], [0.1, 0.2, 0.7]], counts.shape)
    right, doubt = 0.7 * votes, 0.05 * votes
    return Rates(
        counts, 0.05 * counts, 0.1 * counts, prior, 2.0, votes, votes, right, doubt, doubt, (0.7, 5.0)
    )


def test_labels_hold_what_was_found_of_every_task(tmp_path: Path) -> None:
    posterior = np.array([[1 - 1e-9, 1e-9], [1 / 3, 2 / 3], [0.5, 0.5]])
    path = write_labels(
        tmp_path / "labels.csv",
        TASKS,
        CLASSES,
        posterior,
        np.array([0, 1, -1]),
        np.array([0.0, 0.918295834, np.nan]),
        np.array([4, 2, 0]),
    )
    assert header_of(path) == ["task", "label", "no", "yes", "entropy", "votes"]
    rows = rows_of(path)
    assert [row["task"] for row in rows] == [TASKS[0], "'" + TASKS[1], TASKS[2]]
    assert [row["label"] for row in rows] == ["no", "yes", ""]
    result = np.array([[float(row[name]) for name in CLASSES] for row in rows])
    np.testing.assert_allclose(result, posterior, rtol=1e-11)
    assert [row["entropy"] for row in rows] == ["0", "0.918296", ""]
    assert [row["votes"] for row in rows] == ["4", "2", "0"]


def test_classes_named_as_a_column_have_one_of_their_own(tmp_path: Path) -> None:
    posterior = np.array([[0.25, 0.75]])
    path = write_labels(
        tmp_path / "labels.csv",
        ["a"],
        ["votes", "=1+1"],
        posterior,
        np.array([0]),
        np.array([0.8]),
        np.array([9]),
    )
    assert rows_of(path) == [
        {
            "task": "a", "label": "votes", "votes (class)": "0.25", "'=1+1": "0.75",
            "entropy": "0.8", "votes": "9",
        }
    ]  # fmt: skip


def test_many_tasks_are_all_written_and_in_order(tmp_path: Path) -> None:
    count = 40_000
    tasks = tuple(f"t{number}" for number in range(count))
    rng = np.random.default_rng(1)
    posterior = rng.dirichlet([1.0, 1.0], count)
    reported: list[float] = []
    path = write_crowdkit_probabilities(
        tmp_path / "p.csv",
        tasks,
        CLASSES,
        posterior,
        lambda fraction, words, **more: reported.append(fraction),
    )
    rows = rows_of(path)
    assert [row["task"] for row in rows] == list(tasks)
    np.testing.assert_allclose([float(row["yes"]) for row in rows], posterior[:, 1], rtol=1e-11)
    assert len(reported) > 1
    assert reported == sorted(reported)


@pytest.mark.parametrize("compiled_from", [0, 1 << 60])
def test_numbers_have_twelve_digits_at_all_magnitudes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiled_from: int
) -> None:
    monkeypatch.setattr(writing, "_COMPILED_FROM", compiled_from)
    generator = np.random.default_rng(0)
    posterior = np.concatenate([
        generator.random((200, 3)), 10.0 ** generator.uniform(-11, 0, (200, 3)),
        [[0.0, 1.0, 0.5], [1e-6, 1e-7, 9.9999995e-7], [np.nan, np.inf, 1 - 1e-16], [1e-300, 0.25, 2e12]],
    ])  # fmt: skip
    count = len(posterior)
    label, number = np.zeros(count, dtype=np.int16), np.ones(count)
    path = write_labels(
        tmp_path / "l.csv", list(map(str, range(count))), "abc", posterior, label, number, label
    )
    for row, values in zip(rows_of(path), posterior, strict=True):
        for cell, value in zip((row[name] for name in "abc"), values, strict=True):
            assert cell == "" if not np.isfinite(value) else float(cell) == float(f"{value:.12g}")


def test_compiled_code_writes_large_tables_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    count = 2000
    posterior = np.concatenate([
        generator.random((count - 2, 3)) * 10.0 ** generator.integers(-10, 14, (count - 2, 3)),
        [[-0.0, np.inf, 0.9999995], [1 - 1e-16, 9.9999999999999e-7, -2.5]],
    ])  # fmt: skip
    labels = generator.integers(-1, 3, count).astype(np.int16)
    rates = some_rates(9, generator)
    written = []
    for least in (0, 1 << 60):
        monkeypatch.setattr(writing, "_COMPILED_FROM", least)
        names = [f"task {number}, ü" for number in range(count)]
        path = write_labels(tmp_path / "l.csv", names, "abc", posterior, labels, posterior[:, 0], labels)
        votes = np.full(9, 7)
        matrices = write_confusion(tmp_path / "c.csv", list("123456789"), "abc", CLASSES, rates, votes)
        written.append((path.read_bytes(), matrices.read_bytes()))
    assert written[0] == written[1]


def test_cancelled_writing_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("before")

    def cancel(fraction: float, words: str, **more: object) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        write_votes(path, some_votes(), cancel)
    with pytest.raises(Cancelled):
        write_label_studio(
            path, TASKS, CLASSES, np.full((3, 2), 0.5), np.zeros(3, dtype=np.int16), model="m", watch=cancel
        )
    assert path.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^votes\.csv: cannot be written: there is no folder .*nowhere\.$"):
        write_votes(tmp_path / "nowhere" / "votes.csv", some_votes())


def test_annotators(tmp_path: Path) -> None:
    nan = np.nan
    accuracy = (np.array([0.75, nan, 1.0]), np.array([0.5, nan, 0.9]), np.array([0.9, nan, 1.0]))
    path = write_annotators(
        tmp_path / "a.csv", ("ann", "@bob", "carl"), np.array([3, 0, 12]), accuracy,
        community=("1", "", "2"), change=np.array([0.04, nan, 0.5]), copies=("", "", "1"),
        excluded=np.array([0, 7, 0]),
    )  # fmt: skip
    assert [list(row.values()) for row in rows_of(path)] == [
        ["ann", "3", "0.75", "0.5", "0.9", "1", "0.04", "", "0"],
        ["'@bob", "0", "", "", "", "", "", "", "7"],
        ["carl", "12", "1", "0.9", "1", "2", "0.5", "1", "0"],
    ]


def test_confusion_of_a_model_that_stands_still(tmp_path: Path) -> None:
    rates = some_rates(300, np.random.default_rng(2))
    names = [f"a{number}" for number in range(300)]
    votes = np.arange(300)
    path = write_confusion(tmp_path / "c.csv", names, ("-1", "1", "3"), CLASSES, rates, votes)
    low, high = rates.interval()
    rows = rows_of(path)
    assert len(rows) == 300 * 6
    for row in rows[:60] + rows[-60:]:
        k, j = names.index(row["annotator"]), CLASSES.index(row["true"])
        label = ("-1", "1", "3").index(row["given"])
        expected = [rates.mean[k, j, label], low[k, j, label], high[k, j, label]]
        assert int(row["step"]) == votes[k]
        figures = [float(row[name]) for name in ("probability", "low", "high")]
        np.testing.assert_allclose(figures, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (1, {"a": [5], "b": [0], "c": [2]}),
        (2, {"a": [1, 5], "b": [0], "c": [1, 2]}),
        (3, {"a": [1, 3, 5], "b": [0], "c": [1, 2]}),
        (4, {"a": [1, 2, 4, 5], "b": [0], "c": [1, 2]}),
        (None, {"a": [1, 2, 3, 4, 5], "b": [0], "c": [1, 2]}),
    ],
)
def test_confusion_after_some_votes(
    tmp_path: Path, steps: int | None, expected: dict[str, list[int]]
) -> None:
    rng = np.random.default_rng(3)
    rates = some_rates(3, rng)
    moved = rng.gamma(2.0, 3.0, (7, 2, 3)).astype(np.float32) + np.float32(1)
    drift = Drift(np.array([0, 5, 5, 7]), np.arange(7, dtype=np.int32), moved)
    votes = np.array([5, 0, 2])
    path = write_confusion(
        tmp_path / "c.csv", "abc", ("-1", "1", "3"), CLASSES, rates, votes, drift=drift, steps=steps
    )
    result: dict[str, list[int]] = {}
    for row in rows_of(path):
        if (row["true"], row["given"]) != ("yes", "3"):
            continue
        step = int(row["step"])
        result.setdefault(row["annotator"], []).append(step)
        k = "abc".index(row["annotator"])
        alpha = moved[drift.start[k] + step - 1, 1] if step else np.ones(3)
        mean = rates.mean[k, 1, 2] if step == votes[k] else alpha[2] / alpha.sum()
        assert float(row["probability"]) == pytest.approx(mean, rel=1e-5)
        assert float(row["low"]) < float(row["probability"]) < float(row["high"])
    assert result == expected


def test_votes_with_and_without_time(tmp_path: Path) -> None:
    rows = rows_of(write_votes(tmp_path / "v.csv", some_votes()))
    assert [row["task"] for row in rows] == [TASKS[0], TASKS[0], "'" + TASKS[1], TASKS[2], "'" + TASKS[1]]
    assert [row["annotator"] for row in rows] == ["ann", "'-cmd", "ann", "'-cmd", "'-cmd"]
    assert [row["label"] for row in rows] == ["-1", "1", "3", "3", "-1"]
    assert [row["time"] for row in rows] == ["1700000000.25", "5", "", "7", "8"]
    assert header_of(write_votes(tmp_path / "w.csv", some_votes(False))) == ["task", "annotator", "label"]


def test_decided_labels(tmp_path: Path) -> None:
    when = datetime(2026, 3, 1, 12, 0, 5, 700, tzinfo=UTC)
    decided = [DecidedLabel("cell 1", "yes", "Ann", when, "=plain"), DecidedLabel("cell 2", "")]
    rows = rows_of(write_decisions(tmp_path / "d.csv", decided))
    assert [list(row.values()) for row in rows] == [
        ["cell 1", "yes", "Ann", "2026-03-01T12:00:05+00:00", "'=plain"],
        ["cell 2", "", "", "", ""],
    ]


def crowd() -> Labels:
    """Fifteen annotators, one of which lies, on two hundred tasks of three classes."""
    rng = np.random.default_rng(4)
    truth = rng.integers(3, size=200)
    task, annotator = (part.ravel() for part in np.meshgrid(np.arange(200), np.arange(15), indexing="ij"))
    right = rng.random(len(task)) < np.where(annotator == 0, 0.05, 0.8)
    wrong = (truth[task] + rng.integers(1, 3, len(task))) % 3
    return Labels(
        task=task, annotator=annotator, label=np.where(right, truth[task], wrong),
        tasks=tuple(f"t{number}" for number in range(200)),
        annotators=tuple(f"w{number}" for number in range(15)),
        outputs=("cat", "dog", "owl"), classes=("cat", "dog", "owl"), known=truth.astype(np.int16),
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # crowd-kit calls pandas in ways that pandas gives up
def test_crowdkit_reads_its_layouts(tmp_path: Path) -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation")
    pandas = pytest.importorskip("pandas")
    labels = crowd()
    votes = pandas.read_csv(write_crowdkit_votes(tmp_path / "votes.csv", labels))
    truth = pandas.read_csv(
        write_crowdkit_truth(tmp_path / "truth.csv", labels.tasks, labels.classes, labels.known)
    ).set_index("task")["label"]
    model = aggregation.DawidSkene(20)
    proba = model.fit_predict_proba(votes)
    assert (model.labels_ == truth.loc[model.labels_.index]).mean() > 0.97

    # What crowd-kit found comes back from the files just as it gave it.
    order = list(labels.classes)
    posterior = proba.loc[list(labels.tasks), order].to_numpy()
    path = write_crowdkit_probabilities(tmp_path / "proba.csv", labels.tasks, labels.classes, posterior)
    proba.loc[list(labels.tasks), order].to_csv(tmp_path / "theirs.csv")
    pandas.testing.assert_frame_equal(pandas.read_csv(path), pandas.read_csv(tmp_path / "theirs.csv"))

    errors = model.errors_.sort_index()[order]
    mean = np.stack([errors.loc[name].loc[order].to_numpy().T for name in labels.annotators])
    path = write_crowdkit_confusion(
        tmp_path / "errors.csv", labels.annotators, labels.outputs, labels.classes, mean
    )
    ours = pandas.read_csv(path, index_col=["worker", "label"])
    pandas.testing.assert_frame_equal(ours.sort_index(), errors, check_names=False)
    second = aggregation.DawidSkene(1).fit(votes, initial_error=ours)
    assert (second.labels_ == truth.loc[second.labels_.index]).mean() > 0.97


def test_crowdkit_truth_leaves_out_what_is_not_known(tmp_path: Path) -> None:
    path = write_crowdkit_truth(tmp_path / "t.csv", TASKS, CLASSES, np.array([1, -1, 0]))
    assert rows_of(path) == [{"task": TASKS[0], "label": "yes"}, {"task": TASKS[2], "label": "no"}]


@pytest.mark.parametrize("pictures", [None, {0: "cell-1.png", 2: "https://example.org/3.png"}])
def test_label_studio_finds_a_choice_of_its_interface_in_every_task(
    tmp_path: Path, pictures: dict[int, str] | None
) -> None:
    classes = ('"no" <&>', "yes\n")
    posterior = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    when = datetime(2026, 3, 1, 12, tzinfo=UTC)
    decided = {1: DecidedLabel(TASKS[1], classes[0], "Änn", when, "seen"), 2: DecidedLabel(TASKS[2], "")}
    files = write_label_studio(
        tmp_path / "tasks.json", TASKS, classes, posterior, np.array([0, 1, -1]),
        model="ibcc", decided=decided, pictures=pictures,
    )  # fmt: skip
    tasks = json.loads(files[0].read_text(encoding="utf-8"))
    view = ElementTree.fromstring(files[1].read_text(encoding="utf-8"))
    shown = view.find("Image" if pictures else "Text")
    control = view.find("Choices")
    assert shown is not None
    assert control is not None
    offered = [choice.get("value") for choice in control.findall("Choice")]
    assert control.get("toName") == shown.get("name")
    key = shown.get("value").removeprefix("$")
    assert [task["data"][key] for task in tasks] == [
        (pictures or {}).get(number, name) for number, name in enumerate(TASKS)
    ]
    for task, row in zip(tasks, posterior, strict=True):
        assert list(task["data"]["probabilities"]) == offered
        assert list(task["data"]["probabilities"].values()) == row.tolist()
        for result in [r for entry in task["predictions"] + task["annotations"] for r in entry["result"]]:
            assert (result["from_name"], result["to_name"]) == (control.get("name"), shown.get("name"))
            assert result["type"] == "choices"

    def chosen(part: str) -> list[list[list[int]]]:
        return [
            [
                [offered.index(c) for r in entry["result"] for c in r["value"]["choices"]]
                for entry in task[part]
            ]
            for task in tasks
        ]

    assert chosen("predictions") == [[[0]], [[1]], []]
    assert chosen("annotations") == [[], [[0]], [[]]]
    assert [entry["score"] for task in tasks for entry in task["predictions"]] == [0.9, 0.8]
    assert {entry["model_version"] for task in tasks for entry in task["predictions"]} == {"ibcc"}
    assert [task["data"].get("decided_by") for task in tasks] == [None, "Änn", ""]
    assert tasks[1]["annotations"][0]["created_at"] == "2026-03-01T12:00:00+00:00"
    # Label Studio refuses annotators that it does not know.
    assert not any("completed_by" in entry for task in tasks for entry in task["annotations"])
