"""Report of pairs: planted annotators, the ranking, the expert's reasons, and the promised rate."""

from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile

import pytest

from raterscope.algorithms.pairs.catalogue import PairPlan
from raterscope.app.cli import main
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.kinds.pairs import runs
from raterscope.app.kinds.pairs.evaluation import trust_in_pairs
from raterscope.app.review import BiasSubject, Decision
from raterscope.app.study import Study
from raterscope.app.study.pairs import add_pairs
from tests.app.kinds.pairs.made import BAD, BIASED, GOOD, HEADER, ITEMS, UGLY, answers
from tests.app.report.conftest import write_page
from tests.app.tables import write

COLUMNS = 10
"""Columns of the table of annotators; one more with a decision of the expert."""

QUICK = {"rule": "knockoffs", "draws": "1"}


def fuse(study, **texts):
    inputs = runs.gather([question.id for question in study.pair_questions()], study)
    return runs.keep(runs.fuse_inputs(inputs, PairPlan.make("iss", texts)), study)


@contextmanager
def make_study(folder):
    path = write(folder / "pairs.csv", HEADER, answers())
    with Study.create(folder / "crowd.rscope") as study:
        add_pairs(study, read_pairs(path)[0])
        yield study


@pytest.fixture
def compared(tmp_path):
    with make_study(tmp_path) as study:
        yield study


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of the crowd, fused by the defaults."""
    folder = tmp_path_factory.mktemp("report")
    with make_study(folder) as study:
        fuse(study)
        return write_page(study, folder)


def decide(study, verb, name, reason):
    (question,) = study.pair_questions()
    study.record(
        Decision(verb=verb, item=question.id, subject=BiasSubject(annotator=name), reason=reason, run=1)
    )


def rows_under(report, columns):
    return [[" ".join(cell.split()) for cell in row] for row in report.rows if len(row) == columns]


def ranking_of(report):
    rows = rows_under(report, 6)
    start = next(at for at, row in enumerate(rows) if row[:2] == ["Item", "Rank before"]) + 1
    return list(takewhile(lambda row: row[0] != "Item", rows[start:]))


def test_those_who_were_planted_are_listed_with_what_was_counted(report):
    listed = {row[0]: row for row in rows_under(report, COLUMNS)}
    assert set(listed) >= BIASED
    pairs = len(ITEMS) * (len(ITEMS) - 1) // 2
    for name in BAD:
        assert listed[name][1:3] == ["0", str(pairs)]
        assert listed[name][3].startswith("\N{MINUS SIGN}")
        assert listed[name][7] == "one-sided, right"
    for name in UGLY:
        assert int(listed[name][1]) + int(listed[name][2]) == pairs
        assert listed[name][7] == "leaning, left"


def test_the_ranking_has_both_ends_in_order(report):
    ranking = [row for row in ranking_of(report) if "between" not in row[0]]
    assert {row[0] for row in ranking} <= set(ITEMS)
    assert [row[0] for row in ranking[:3]] == list(ITEMS[:-4:-1])
    assert [int(row[2]) for row in ranking] == sorted(int(row[2]) for row in ranking)


def test_the_experts_decisions_on_annotators_are_listed_and_change_the_ranking(compared, page):
    fuse(compared)
    rows_before = {row[0]: row for row in ranking_of(page(compared))}
    for name in BAD + UGLY:
        decide(compared, "clear", name, "<i>known to me</i>")
    decide(compared, "flag", GOOD[3], "asleep")
    report = page(compared)
    listed = {row[0]: row for row in rows_under(report, COLUMNS + 1)}
    assert listed[BAD[0]][-1] == "cleared: <i>known to me</i>"
    assert listed[BAD[0]][7] == "\N{EN DASH}"
    assert listed[GOOD[3]][-1] == "flagged: asleep"
    assert "1 more flagged and 15 cleared" in report.text
    rows_after = {row[0]: row for row in ranking_of(report)}
    assert any(
        rows_after[name][5] != rows_before[name][5]
        for name in ITEMS
        if name in rows_before and name in rows_after
    )


def test_it_states_what_the_error_rate_covers(report, compared, page):
    assert "On average at most 10 % of the flags are false" in report.text
    fuse(compared, rule="knockoffs", plus="no")
    text = page(compared).text
    assert "is not guaranteed: the plain knockoff keeps the rate only approximately" in text
    assert "On average at most" not in text


def test_who_was_excluded_is_named_with_the_reason(compared, page):
    compared.record(Decision(verb="exclude", annotators=(BAD[0],), reason="a robot"))
    fuse(compared)
    report = page(compared)
    assert report.row(BAD[0], COLUMNS + 1)[1:] == ["\N{EN DASH}"] * (COLUMNS - 1) + ["excluded: a robot"]


def test_comparisons_that_came_later_are_reported(compared, page, tmp_path):
    fuse(compared, **QUICK)
    more = write(tmp_path / "more.csv", HEADER, [("late", ITEMS[0], ITEMS[1], "left")] * 3)
    add_pairs(compared, read_pairs(more)[0])
    report = page(compared)
    assert "3 comparisons came after run 1" in report.text
    assert f"{len(answers()):,} comparisons by" in report.text


def test_a_crowd_of_which_nothing_can_be_reported_has_a_report(tmp_path, page):
    path = write(tmp_path / "few.csv", HEADER, [("a", "x", "y", "left"), ("b", "x", "y", "right"),
                                                ("a", "y", "z", "tie"), ("b", "u", "w", "left")])  # fmt: skip
    with Study.create(tmp_path / "few.rscope") as study:
        add_pairs(study, read_pairs(path)[0])
        fuse(study)
        text = page(study).text
    assert "No annotator is flagged" in text
    assert "2 groups that no comparison links" in text


def test_the_command_takes_a_question_of_pairs(compared, tmp_path, capsys):
    rows = [(*row, "Which is older?") for row in answers()]
    path = write(tmp_path / "older.csv", (*HEADER, "question"), rows)
    add_pairs(compared, read_pairs(path)[0])
    fuse(compared, **QUICK)
    name = compared.path
    compared.close()
    out = tmp_path / "one.html"
    assert main(["report", str(name), "--item", "which is older?", "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert text.count("Flagged annotators") == 1
    assert "Which is older?" in text
    assert main(["report", str(name), "--item", "which is younger?", "-o", str(out)]) != 0
    assert "no image or question" in capsys.readouterr().err


def test_the_report_gives_the_reliability_of_the_flags(report):
    text = report.text
    assert "How far to trust this" in text
    assert "With the sides of these comparisons drawn again 20 times" in text
    assert "You decided on no flagged annotator." in text
    assert "On the nearest crowd measured (" in text


def test_clearing_the_flagged_contradicts_the_rate(compared):
    fuse(compared, rate="0.05")
    trust = trust_in_pairs(compared, 1)
    assert (trust.confirmed, trust.cleared, trust.contradicted) == (0, 0, False)
    assert trust.share_below == pytest.approx(0.05, abs=0.03)
    assert trust.accused <= 3  # of 20 draws
    study = compared
    for name in (*BAD, *UGLY[:3]):
        decide(study, "flag", name, "")
    for name in UGLY[3:]:
        decide(study, "clear", name, "")
    trust = trust_in_pairs(study, 1)
    assert (trust.confirmed, trust.cleared, trust.contradicted) == (9, 6, False)
    words = trust.in_words()
    assert "you cleared 6 (40 %, 95 % interval 20 % to 64 %); the rate allows 5 % on average." in words
    assert "That is too few to judge." in words
    assert trust.doubt_in_words() == ""
    larger = replace(trust, confirmed=12, cleared=8)
    assert larger.contradicted
    assert "More flags are false than the rate allows." in larger.in_words()
    assert larger.doubt_in_words() == "You cleared more of the flagged than the rate of 5 % allows."


def test_sides_that_were_not_drawn_contradict_the_rate(tmp_path):
    rows = [
        (
            annotator,
            max(first, second),
            min(first, second),
            "left" if (first > second) == (side == "left") else "right",
        )
        for annotator, first, second, side in answers()
    ]
    path = write(tmp_path / "pairs.csv", HEADER, rows)
    with Study.create(tmp_path / "crowd.rscope") as study:
        add_pairs(study, read_pairs(path)[0])
        fuse(study)
        trust = trust_in_pairs(study, 1)
    assert trust.contradicted
    assert trust.in_words().startswith("Sides were not drawn at random: the better item was on the left")
