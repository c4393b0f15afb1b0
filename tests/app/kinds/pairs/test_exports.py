"""Exports of pairs, read as the next program reads them."""

import numpy as np
import pytest

from raterscope.app.formats.pairs import read_pairs
from raterscope.app.review import BiasSubject, Decision
from raterscope.app.study import Study
from raterscope.app.study.pairs import pairs_of
from tests.app.commands import run
from tests.app.kinds.pairs.made import BAD, BIASED, GOOD, HEADER, ITEMS, PEOPLE, answers
from tests.app.tables import rows_of, write


@pytest.fixture
def unfused(tmp_path):
    path = tmp_path / "s.rscope"
    assert run("import", path, write(tmp_path / "crowd.csv", HEADER, answers())) == 0
    return path


@pytest.fixture
def study(unfused):
    assert run("run", unfused, "iss", "--set", "draws=9") == 0
    return unfused


@pytest.fixture
def export(tmp_path, capsys):
    def leave(study, kind, *more):
        out = tmp_path / f"{kind}.csv"
        assert run("export", study, "--what", kind, *more, "-o", out) == 0, capsys.readouterr().err
        return out

    return leave


def decide(path, verbs):
    with Study.open(path) as study:
        (question,) = study.pair_questions()
        for name, verb in verbs.items():
            subject = BiasSubject(annotator=name)
            study.record(Decision(verb=verb, item=question.id, subject=subject, reason="=looked at"))


def flagged(path):
    return {row["annotator"] for row in rows_of(path) if row["flagged"] == "1"}


def corrected(path, side="score_corrected"):
    return np.array([float(row[side]) for row in sorted(rows_of(path), key=lambda row: row["item"])])


def test_what_was_planted_is_found_and_leaves(study, export):
    assert len(flagged(export(study, "annotators")) & BIASED) >= len(BIASED) - 2
    rows = rows_of(export(study, "ranking"))
    assert {row["item"] for row in rows} == set(ITEMS)
    assert [int(row["rank_corrected"]) for row in rows] == list(range(1, len(ITEMS) + 1))
    best, worst = rows[0]["item"], rows[-1]["item"]
    assert ITEMS.index(best) > len(ITEMS) - 4
    assert ITEMS.index(worst) < 3
    assert set(rows_of(export(study, "path"))[0]) == {"at", *PEOPLE}


def test_decisions_and_a_fusion_after_them_leave_the_others_as_they_were(study, export):
    """Decisions only sharpen: correct ones never flag or clear anybody else."""
    rows_before = {row["annotator"]: row for row in rows_of(export(study, "annotators"))}
    decisions = {BAD[0]: "flag", BAD[1]: "flag", GOOD[0]: "clear", GOOD[1]: "clear"}
    decide(study, decisions)
    assert run("run", study, "iss", "--set", "draws=9") == 0
    rows_after = {row["annotator"]: row for row in rows_of(export(study, "annotators"))}
    for name in set(PEOPLE) - set(decisions):
        assert rows_after[name] == rows_before[name]
    flagged_after = {name for name, row in rows_after.items() if row["flagged"] == "1"}
    flagged_before = {name for name, row in rows_before.items() if row["flagged"] == "1"}
    assert len(flagged_after ^ BIASED) <= len(flagged_before ^ BIASED)


def test_the_experts_word_counts_for_flags_and_ranking(study, export):
    found_flags = flagged(export(study, "annotators"))
    plain = corrected(export(study, "ranking"))
    (cleared, *_), (accused, *_) = sorted(found_flags), sorted(set(GOOD) - found_flags)
    decide(study, {cleared: "clear", accused: "flag"})
    assert flagged(export(study, "annotators")) == found_flags - {cleared} | {accused}
    behaviour = {row["annotator"]: row["behaviour"] for row in rows_of(export(study, "annotators"))}
    assert behaviour[cleared] in {"good", "not decidable"}
    assert behaviour[accused] == "ugly"
    assert not np.allclose(corrected(export(study, "ranking")), plain)


@pytest.mark.parametrize("graded", ["yes", "no"])
def test_with_no_annotator_flagged_the_ranking_is_that_before(tmp_path, export, graded):
    rows = [
        (annotator, first, second, 2 if side == "left" else -1)
        for annotator, first, second, side in answers()
    ]
    path = tmp_path / "graded.rscope"
    assert run("import", path, write(tmp_path / "graded.csv", HEADER, rows)) == 0
    assert run("run", path, "lasso", "--set", "draws=5", f"graded={graded}") == 0
    found_flags = flagged(export(path, "annotators"))
    assert found_flags
    decide(path, dict.fromkeys(found_flags, "clear"))
    assert not flagged(export(path, "annotators"))
    ranking = export(path, "ranking")
    np.testing.assert_allclose(corrected(ranking), corrected(ranking, "score"))


def test_comparisons_are_read_back_as_they_were(study, export):
    (table,) = read_pairs(export(study, "pairs"))
    with Study.open(study) as opened:
        (question,) = opened.pair_questions()
        pairs = pairs_of(opened, question.id)
    assert table.items == pairs.items
    for name in ("annotator", "left", "right", "choice"):
        np.testing.assert_array_equal(getattr(table, name), getattr(pairs, name))


def test_decisions_have_annotator_and_reason_and_no_formulas(study, export):
    decide(study, {BAD[0]: "flag", GOOD[0]: "clear"})
    first, second = rows_of(export(study, "decisions", "--kind", "pairs"))
    assert (first["kind"], first["verb"], first["item"], first["rater"]) == ("pairs", "flag", "pairs", BAD[0])
    assert (second["verb"], second["rater"]) == ("clear", GOOD[0])
    assert first["reason"] == "'=looked at"


def test_who_is_excluded_leaves_without_answers(unfused, export):
    decide(unfused, {BAD[0]: "flag"})
    with Study.open(unfused) as opened:
        opened.record(Decision(verb="exclude", annotators=(BAD[0],), reason="biased"))
    assert run("run", unfused, "iss", "--set", "draws=5") == 0
    (row,) = [row for row in rows_of(export(unfused, "annotators")) if row["annotator"] == BAD[0]]
    assert (row["left"], row["right"], row["flagged"]) == ("0", "0", "0")
    assert (row["behaviour"], row["decidable"]) == ("", "")


def test_several_questions_go_into_a_folder(study, export, tmp_path):
    rows = [("ann", "a", "b", "left"), ("bob", "b", "a", "right"), ("bob", "a", "b", "left")]
    more = write(tmp_path / "more.csv", (*HEADER, "question"), [(*row, "older?") for row in rows])
    assert run("import", study, more) == 0
    folder = export(study, "pairs").with_suffix("")  # no folder is called as a table is
    assert len(list(folder.iterdir())) == 2
    assert len(rows_of(export(study, "ranking"))) == len(ITEMS)
    single = tmp_path / "single.csv"
    assert run("export", study, "--what", "pairs", "--item", "OLDER?", "-o", single) == 0
    assert len(rows_of(single)) == 3


def test_what_is_not_there_is_reported_in_a_sentence(unfused, refusal, tmp_path):
    out = tmp_path / "out.csv"
    assert "contains no run of pairs yet" in refusal("export", unfused, "--what", "ranking", "-o", out)
    assert "there is no confusion of pairs" in refusal(
        "export", unfused, "--what", "confusion", "--kind", "pairs", "-o", out
    )
    assert "contains no question where" in refusal(
        "export", unfused, "--what", "ranking", "--item", "where", "-o", out
    )
    with Study.create(tmp_path / "empty.rscope"):
        pass
    empty = refusal("export", tmp_path / "empty.rscope", "--what", "pairs", "-o", out)
    assert "contains no pairs; `raterscope import` reads them" in empty
    assert not out.exists()
