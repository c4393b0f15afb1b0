"""Agreement of a question's annotators, as file and in the report."""

import pytest

from raterscope.algorithms.progress import silent
from raterscope.app.kinds.labels.annotators import agreement
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.tables import rows_of, write

GRADES = {"a": "1234512345", "b": "1234412345", "c": "2234512344"}


@pytest.fixture
def study(tmp_path, capsys):
    rows = [(who, f"t{at}", grade) for who, grades in GRADES.items() for at, grade in enumerate(grades)]
    rows += [("robot", f"t{at}", "1") for at in range(10)]
    votes = write(tmp_path / "votes.csv", ("annotator", "task", "label"), rows)
    assert run("import", tmp_path / "s.rscope", votes) == 0
    capsys.readouterr()
    return tmp_path / "s.rscope"


def test_the_table_has_every_scale_and_every_answer(study, tmp_path):
    assert run("export", study, "--what", "agreement", "-o", tmp_path / "a.csv") == 0
    rows = rows_of(tmp_path / "a.csv")
    assert {row["scale"] for row in rows if not row["answer"]} == {"nominal", "ordinal", "linear", "interval"}
    assert {row["answer"] for row in rows} == {"", *"12345"}
    for row in rows:
        if row["low"]:
            assert float(row["low"]) <= float(row["value"]) <= float(row["high"])
        assert (row["tasks"], row["votes"]) == ("10", "40")


def test_excluded_annotators_do_not_count(study, tmp_path):
    decisions = write(tmp_path / "d.csv", ("verb", "annotators"), [("exclude", "robot")])
    assert run("decide", study, decisions) == 0
    assert run("export", study, "--what", "agreement", "-o", tmp_path / "a.csv") == 0
    first = rows_of(tmp_path / "a.csv")[0]
    pairs = sum(
        (GRADES[one][at] == GRADES[other][at]) for one, other in ("ab", "ac", "bc") for at in range(10)
    )  # fmt: skip
    assert float(first["value"]) == pytest.approx(pairs / 30)
    assert first["votes"] == "30"


def test_joined_names_are_one_annotator_in_file_and_window(study, tmp_path):
    rows = [("exclude", "robot"), ("join", "a;b")]
    decisions = write(tmp_path / "d.csv", ("verb", "annotators"), rows)
    assert run("decide", study, decisions) == 0
    assert run("export", study, "--what", "agreement", "-o", tmp_path / "a.csv") == 0
    values = [
        float(row["value"])
        for row in rows_of(tmp_path / "a.csv")
        if (row["answer"], row["scale"], row["coefficient"]) == ("", "nominal", "Krippendorff's alpha")
    ]
    with Study.open(study) as opened:
        (shown,) = agreement(opened, (), silent)
    assert values == [pytest.approx(shown.alpha.value)]


def test_the_report_has_it(study, tmp_path):
    assert run("run", study, "majority") == 0
    assert run("report", study, "-o", tmp_path / "r.html") == 0
    text = (tmp_path / "r.html").read_text()
    assert "Agreement of the annotators" in text
    assert "40 votes on 10 tasks" in text
