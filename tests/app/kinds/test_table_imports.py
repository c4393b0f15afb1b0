"""Imports of tables of labels and of comparisons: damaged files, and cancelling."""

import pytest

from raterscope.algorithms.progress import Cancelled
from raterscope.app.cli import main
from raterscope.app.importing import read_files, store
from tests.app.kinds.tables import study

__all__ = ["study"]

LABELS, TRUTHS, PAIRS = "annotator,task,label", "task,label", "annotator,left,right,choice"


@pytest.mark.parametrize(
    ("kind", "lines", "words"),
    [
        ("labels", (LABELS, "ann,c0"), "line 2"),
        ("labels", (LABELS,), "has a header but no rows"),
        ("labels", (LABELS, ",c0,cat"), "annotator"),
        ("labels", (LABELS, "ann,c0,"), "label"),
        ("labels", (TRUTHS, "c0,cat", "c0,dog"), "another true label"),
        ("pairs", (PAIRS,), "has a header but no rows"),
        ("pairs", (PAIRS, "ann,c0,c0,left"), "compares an item with itself"),
        ("pairs", (PAIRS, "ann,c0,c1,perhaps"), "is not a choice"),
        ("pairs", (PAIRS, ",c0,c1,left"), "annotator"),
    ],
)
def test_bad_files_are_one_sentence_and_leave_no_study(tmp_path, capsys, kind, lines, words):
    path, study = tmp_path / "table.csv", tmp_path / "new.rscope"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["import", str(study), str(path), *(["--kind", "pairs"] if kind == "pairs" else [])]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    assert line.startswith("raterscope: ")
    assert "table.csv" in line
    assert words in line
    assert "internal error" not in line
    assert not study.exists()


def test_files_that_cannot_be_read_are_skipped_and_named(tmp_path, capsys):
    texts = {
        "labels.csv": f"{LABELS}\nann,c0,cat\nbob,c0,dog\n",
        "pairs.csv": f"{PAIRS}\nann,c0,c1,left\n",
        "uneven.csv": f"{LABELS}\nann,c0\n",
        "bad_pairs.csv": f"{PAIRS}\nann,c0,c0,left\n",
        "notes.txt": "Notes\nof Tuesday\n",
        "cut.json": '{"images": [',
        "cut.xml": "<annotations><image>",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "empty").mkdir()
    study = tmp_path / "new.rscope"
    assert main(["import", str(study), *(str(tmp_path / name) for name in (*texts, "empty"))]) == 1
    output = capsys.readouterr()
    assert "2 votes by 2 annotators" in output.out
    assert "pairs.csv: 1 comparison" in output.out
    assert "nothing was imported" not in output.out
    assert "6 of 8 files could not be read, the others were imported: " in output.err
    assert main(["import", str(study), str(tmp_path / "notes.txt"), str(tmp_path / "cut.xml")]) == 1
    assert capsys.readouterr().err.startswith("raterscope: notes.txt: ")


@pytest.mark.parametrize("lines", [(LABELS, "ann,c0,cat", "bob,c0,dog"), (PAIRS, "ann,c0,c1,left")])
def test_cancelling_leaves_the_study_as_it_was(study, tmp_path, lines):
    def watch(_share, words="", **_):
        if words.startswith("storing"):
            raise Cancelled

    path = tmp_path / "table.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(Cancelled):
        store(read_files([path]), study, watch)
    assert not study.questions()
    assert not study.pair_questions()
    assert not study.annotators()
