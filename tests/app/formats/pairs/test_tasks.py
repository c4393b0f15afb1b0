"""Judgments of language models: prompts, answers, turns, and both games, as benchmarks write them."""

import json
from pathlib import Path

import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats.pairs import has_pairs, read_pairs
from raterscope.app.formats.pairs.writing import write_pairs
from raterscope.app.study import Study
from raterscope.app.study.labels import read_contents
from raterscope.app.study.pairs import add_pairs, pairs_of

SKY, SEA = "Why is the sky blue?", "Why is the sea salty?"


def battle(number, left, right, winner, prompt=SKY, judge="expert 1", turn=1):
    """Return a record as Chatbot Arena and MT-bench publish them."""
    sides = {
        f"conversation_{side}": [
            {"role": "user", "content": prompt}, {"role": "assistant", "content": f"{model} says so."},
        ]
        for side, model in (("a", left), ("b", right))
    }  # fmt: skip
    return {
        "question_id": number, "model_a": left, "model_b": right, "winner": winner, "judge": judge, **sides,
        "turn": turn, "tstamp": 1682351591.1,
    }  # fmt: skip


BATTLES = [
    battle(81, "gpt-4", "llama-13b", "model_a"), battle(81, "llama-13b", "gpt-4", "tie (bothbad)"),
    battle(82, "gpt-4", "llama-13b", "model_b", SEA), battle(82, "gpt-4", "llama-13b", "tie", SEA, turn=2),
]  # fmt: skip


@pytest.fixture(params=["lines.jsonl", "list.json"])
def arena(request, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    lines = [json.dumps(record) for record in BATTLES]
    path.write_text("\n".join(lines) if path.suffix == ".jsonl" else f"[{','.join(lines)}]", encoding="utf-8")
    return path


def test_battles_of_models_have_tasks_and_conversations(arena: Path) -> None:
    assert has_pairs(arena)
    (table,) = read_pairs(arena)
    assert table.items == ("gpt-4", "llama-13b")
    assert table.choice.tolist() == [1.0, 0.0, -1.0, 0.0]
    assert [table.tasks[task] for task in table.task] == ["81, turn 1"] * 2 + ["82, turn 1", "82, turn 2"]
    assert table.time is not None
    answer = table.contents.fields["llama-13b"]["82, turn 1"]
    assert answer == f"user: {SEA}\n\nassistant: llama-13b says so."


def test_a_table_of_judgments_shows_prompts_and_answers(tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    path.write_text(
        "judge,question,model_a,model_b,response_a,response_b,winner\n"
        f"j1,{SKY},m1,m2,Rayleigh,Paint,A\nj1,{SKY},m2,m1,Paint,Rayleigh,A\n"
        f"j2,{SEA},m1,m2,Rivers,{'x' * 900},B\n",
        encoding="utf-8",
    )
    (table,) = read_pairs(path)
    assert table.question == ""  # it is no question that all were asked
    assert table.task.tolist() == [0, 0, 1]
    assert [dict(table.contents.fields[name]) for name in ("question", "m1", "m2")] == [
        {"task 1": SKY, "task 2": SEA},
        {"task 1": "Rayleigh", "task 2": "Rivers"},
        {"task 1": "Paint", "task 2": "x" * 900},
    ]
    with Study.create(tmp_path / "judged.rscope") as study:
        add_pairs(study, table)
        again = add_pairs(study, table)
        assert "all 3" in again
        comparisons = study.comparison_set(study.pair_questions()[0].id)
        assert comparisons.tasks == ("task 1", "task 2")
        assert comparisons.task.tolist() == [0, 0, 1, 0, 0, 1]
        stored = read_contents(study, study.pair_questions()[0].id, "task 2")
        assert stored == {"question": SEA, "m1": "Rivers", "m2": "x" * 900}


def test_exported_comparisons_keep_their_tasks(arena: Path, tmp_path: Path) -> None:
    (table,) = read_pairs(arena)
    with Study.create(tmp_path / "arena.rscope") as study:
        add_pairs(study, table)
        pairs = pairs_of(study, study.pair_questions()[0].id)
    (again,) = read_pairs(write_pairs(tmp_path / "pairs.csv", pairs, tasks=table.tasks))
    assert [again.tasks[at] for at in again.task] == [table.tasks[at] for at in table.task]
    assert again.choice.tolist() == table.choice.tolist()


def test_answers_that_differ_on_one_prompt_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "sampled.csv"
    path.write_text(
        "judge,prompt,model_a,model_b,response_a,response_b,winner\n"
        "j1,p,m1,m2,one,two,A\nj2,p,m1,m2,three,two,A\n",
        encoding="utf-8",
    )
    (table,) = read_pairs(path)
    assert table.contents.fields["m1"] == {"task 1": "one"}
    assert table.contents.notices[0].startswith("1 answer ")


def test_both_games_of_a_judgment_are_comparisons_with_sides_swapped(tmp_path: Path) -> None:
    path = tmp_path / "gpt-4_pair.jsonl"
    record = {
        "question_id": 81, "model_1": "alpaca", "model_2": "vicuna", "g1_winner": "model_2",
        "g2_winner": "tie", "judge": ["gpt-4", "pair-v2"], "g1_user_prompt": "long", "turn": 1,
    }  # fmt: skip
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    (table,) = read_pairs(path)
    rows = [
        (table.items[left], table.items[right], choice)
        for left, right, choice in zip(table.left, table.right, table.choice, strict=True)
    ]
    assert rows == [("alpaca", "vicuna", -1.0), ("vicuna", "alpaca", 0.0)]
    assert table.annotators == ("gpt-4 + pair-v2",)


def test_a_column_question_still_separates_questions_without_answers(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("annotator,left,right,choice,question\na,x,y,left,Better?\na,x,y,left,Sharper?\n")
    assert [table.question for table in read_pairs(path)] == ["Better?", "Sharper?"]
    assert all(table.task is None for table in read_pairs(path))


def test_a_judgment_without_names_of_models_is_refused(tmp_path):
    path = tmp_path / "judgment.jsonl"
    record = {
        "model_1": {"name": "a"},
        "model_2": "b",
        "g1_winner": "model_1",
        "g2_winner": "tie",
        "judge": "j",
    }
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(InputError, match="model_a: is empty"):
        read_pairs(path)


def studio_task(number, data, *selected, compared="text1,text2"):
    """Return a task of Label Studio with a comparison by each annotator; None for one who skipped it."""
    marks = [
        {"value": {"selected": side}, "from_name": "pw", "to_name": compared, "type": "pairwise"}
        for side in selected
    ]
    annotations = [
        {"completed_by": user, "result": [mark] if mark["value"]["selected"] else [],
         "created_at": "2024-03-01T10:00:00Z", "was_cancelled": False}
        for user, mark in enumerate(marks, 1)
    ]  # fmt: skip
    return {"id": number, "data": data, "annotations": annotations, "predictions": []}


@pytest.mark.parametrize("compared", ["text1,text2", "txt-1,txt-2"])
def test_comparisons_of_label_studio(tmp_path: Path, compared: str) -> None:
    path = tmp_path / "studio.json"
    tasks = [
        studio_task(1, {"text1": "a", "text2": "b", "prompt": SKY}, "left", "right", compared=compared),
        studio_task(2, {"text1": "c", "text2": "a", "prompt": SEA}, None, "left", compared=compared),
    ]
    path.write_text(json.dumps(tasks))
    assert has_pairs(path)
    (table,) = read_pairs(path)
    assert table.annotators == ("annotator 1", "annotator 2")
    assert [table.items[at] for at in table.left] == ["a", "a", "c"]
    assert [table.items[at] for at in table.right] == ["b", "b", "a"]
    assert table.choice.tolist() == [1, -1, 1]
    path.write_text(json.dumps([studio_task(7, {"left": "a", "other": "b"}, "left", compared=compared)]))
    with pytest.raises(InputError, match="field task 7: compares objects that no field"):
        read_pairs(path)
