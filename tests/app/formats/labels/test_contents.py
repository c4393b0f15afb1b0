"""Contents of tasks: columns of a table of votes, and tables of tasks alone."""

from __future__ import annotations

from pathlib import Path

from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.records import LabelTable, TaskContents
from raterscope.app.kinds.labels.imports import read_label_files, store_labels
from raterscope.app.study import Study
from raterscope.app.study.labels import read_contents


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def contents_in(path: Path) -> TaskContents:
    (contents,) = (table for table in read_labels(path) if isinstance(table, TaskContents))
    return contents


def test_a_table_of_tasks_and_texts_holds_contents(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks.csv", "id,task,prompt,response_a\n1,t1,Why?,Because\n2,t2,How?,\n")
    assert find_labels(path) == "contents"
    assert contents_in(path).fields == {
        "prompt": {"t1": "Why?", "t2": "How?"},
        "response_a": {"t1": "Because"},
    }


def test_columns_of_text_beside_votes_are_contents(tmp_path: Path) -> None:
    rows = "t1,kim,yes,Is it red?\nt1,lee,no,Is it red?\nt2,kim,no,\nt2,lee,no,Is it blue?\n"
    path = write(tmp_path / "votes.csv", "task,annotator,label,text\n" + rows)
    assert contents_in(path).fields == {"text": {"t1": "Is it red?", "t2": "Is it blue?"}}


def test_a_long_text_as_a_task_gets_a_short_name_and_stays_whole(tmp_path: Path) -> None:
    long = [f"{'word ' * 200}{end}" for end in ("a", "b")]
    path = write(
        tmp_path / "votes.csv", "text,annotator,label\n" + "".join(f"{text},kim,yes\n" for text in long)
    )
    table, contents = read_labels(path)
    assert isinstance(table, LabelTable)
    assert isinstance(contents, TaskContents)
    assert len(set(table.tasks)) == 2
    assert max(map(len, table.tasks)) < 150
    assert [contents.fields["text"][task] for task in table.tasks] == long


def test_contents_are_stored_once_and_the_last_import_counts(tmp_path: Path) -> None:
    votes = write(tmp_path / "votes.csv", "task,annotator,label\nt1,kim,yes\n")
    first = write(tmp_path / "tasks.csv", "task,text,url\nt1,old,https://example.org\n")
    later = write(tmp_path / "tasks2.csv", "task,text\nt1,new\n")
    with Study.create(tmp_path / "study.rscope") as study:
        sentences = store_labels(read_label_files([first, votes]), study)
        store_labels(read_label_files([later]), study)
        question = study.questions()[0].id
        assert read_contents(study, question, "t1") == {"text": "new", "url": "https://example.org"}
        assert read_contents(study, question, "t2") == {}
    assert any("contents of 1 task" in sentence for sentence in sentences)
