"""`raterscope fuse pairs` on files."""

import json

import numpy as np
import pytest

from raterscope.app.cli import main
from tests.app.kinds.pairs.made import BAD, BIASED, GOOD, HEADER, ITEMS, PEOPLE, UGLY, answers
from tests.app.tables import rows_of, write

COLUMNS = ["annotator", "left", "right", "ties", "bias", "statistic", "entered", "flagged", "behaviour"]
RANKS = ["item", "score", "rank", "score_corrected", "rank_corrected"]
QUICK = ("--set", "rule=knockoffs", "draws=1")
"""For tests of files and options: the default rule takes four times as long."""


@pytest.fixture
def crowd(tmp_path):
    return write(tmp_path / "crowd.csv", HEADER, answers())


@pytest.fixture(scope="session")
def crowd_results(tmp_path_factory):
    """Return quick results of the crowd, to compare with."""
    folder = tmp_path_factory.mktemp("crowd")
    path = write(folder / "crowd.csv", HEADER, answers())
    assert main(["fuse", "pairs", str(path), "-o", str(folder / "out"), *QUICK]) == 0
    return folder / "out"


def flagged(folder):
    return {row["annotator"] for row in rows_of(folder / "annotators.csv") if row["flagged"] == "1"}


def record(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


def test_the_tables_hold_what_was_planted(fuse, crowd):
    out, output = fuse(crowd)
    rows = rows_of(out / "annotators.csv")
    assert list(rows[0])[: len(COLUMNS)] == COLUMNS
    people = {row["annotator"]: row for row in rows}
    assert list(people) == list(PEOPLE)
    found_flags = flagged(out)
    assert found_flags >= BIASED
    assert len(found_flags - BIASED) <= 0.2 * len(found_flags)
    for name in BAD:
        assert people[name]["behaviour"] == "bad"
        assert (people[name]["left"], people[name]["right"]) == ("0", "120")
        assert float(people[name]["bias_low"]) <= float(people[name]["bias"]) < 0
        assert float(people[name]["q_value"]) < 1e-6
    assert {people[name]["behaviour"] for name in UGLY} == {"ugly"}
    assert all(float(people[name]["bias"]) > 0 for name in UGLY)
    assert all(
        (people[name]["behaviour"] == "good") == (people[name]["decidable"] == "1")
        for name in set(GOOD) - found_flags
    )
    assert all(0 < float(row["detectable_bias"]) < 1 for row in rows)
    sides = [int(row["left"]) + int(row["right"]) + int(row["ties"]) for row in rows]
    assert sides == [120] * len(PEOPLE)

    ranking = rows_of(out / "ranking.csv")
    assert list(ranking[0])[: len(RANKS)] == RANKS
    best = ITEMS[::-1]
    assert all(abs(best.index(row["item"]) - at) <= 2 for at, row in enumerate(ranking))
    assert [row["rank_corrected"] for row in ranking] == [str(n) for n in range(1, len(ITEMS) + 1)]
    assert sum(float(row["score_corrected"]) for row in ranking) == pytest.approx(0, abs=1e-4)

    path = rows_of(out / "path.csv")
    assert list(path[0]) == ["at", *PEOPLE]
    surest = max(people.values(), key=lambda row: float(row["entered"]))["annotator"]
    first = next(row for row in path if any(float(row[name]) for name in PEOPLE))
    assert float(first[surest]) != 0
    assert f"6,600 comparisons by {len(PEOPLE)} annotators of 16 items" in output
    assert "on average at most 10 % of them falsely" in output


def test_the_record_holds_settings_and_input(fuse, crowd):
    out, _ = fuse(crowd, "--path", "lasso", "--fdr", "0.2", "--set", "draws=10", "seed=3")
    run_record = record(out)
    assert run_record["settings"]["algorithm"] == "lasso"
    assert run_record["settings"]["settings"]["rate"] == 0.2
    assert run_record["seed"] == 3
    assert run_record["inputs"][0]["file"] == "crowd.csv"
    assert run_record["digest"].startswith("sha256:")
    assert {"numpy", "raterscope"} <= set(run_record["versions"])
    (question,) = run_record["questions"]
    left_count = sum(row[3] == "left" for row in answers())
    assert question["share_of_left"] == pytest.approx(left_count / 6600)
    assert question["degrees_of_freedom"] == 6600 - len(PEOPLE) - (len(ITEMS) - 1)
    assert question["components"] == 1
    shares = (question[name] for name in ("explained_by_ranking", "disagreement", "cyclic"))
    assert sum(shares) == pytest.approx(1)
    assert question["inconsistency"] == pytest.approx(question["disagreement"] + question["cyclic"])
    assert question["bradley_terry_correlation"] > 0.95


@pytest.mark.parametrize(
    ("settings", "words"),
    [(["plus=no"], "the plain knockoff"), (["share=0.3"], "30 % of the draws"), (["draws=1"], None)],
)
def test_the_rate_is_promised_only_where_it_holds(fuse, crowd, settings, words):
    out, output = fuse(crowd, "--set", "rule=knockoffs", *settings)
    assert ("on average at most 10 % of them falsely" in output) == (words is None)
    assert ("is not guaranteed" in output) == (words is not None)
    run_record = record(out)
    assert run_record["rate_promised"] == (words is None)
    assert run_record["questions"][0]["rule"] == "knockoffs"
    if words is not None:
        assert words in output
        assert words in run_record["rate_not_promised_because"]


def test_what_is_done_with_too_few_comparisons_is_reported(fuse, tmp_path):
    rows = [("w1", "a", "b", "left"), ("w2", "b", "a", "left"), ("w3", "a", "b", "right")]
    out, output = fuse(write(tmp_path / "few.csv", HEADER, rows))
    assert "no annotator could be tested: none is flagged" in output
    assert "too few comparisons" in output
    assert [row["flagged"] for row in rows_of(out / "annotators.csv")] == ["0", "0", "0"]
    assert {row["bias"] for row in rows_of(out / "annotators.csv")} == {""}


def test_ties_alone_rank_nothing(fuse, tmp_path):
    rows = [(f"w{k}", f"i{n}", f"i{(n + 1) % 6}", "tie") for k in range(3) for n in range(6)]
    _, output = fuse(write(tmp_path / "ties.csv", HEADER, rows))
    assert "all choices are ties" in output
    assert "explains" not in output


def test_command_and_report_state_where_the_t_test_is_not_defined(fuse, tmp_path):
    table = write(tmp_path / "left.csv", HEADER, [(*row[:3], "left") for row in answers()])
    out, output = fuse(table)
    assert record(out)["questions"][0]["t_test"] is None
    words = "Benjamini-Hochberg at 10 % is not defined: scores and biases explain every choice"
    assert words in output
    study, page = tmp_path / "left.rscope", tmp_path / "left.html"
    assert main(["import", str(study), str(table)]) == 0
    assert main(["run", str(study), "iss"]) == 0
    assert main(["report", str(study), "-o", str(page)]) == 0
    assert words in page.read_text(encoding="utf-8").replace("\xa0", " ")


def test_comparisons_of_two_files_are_one_crowd_and_fused_as_before(fuse, crowd_results, tmp_path):
    rows = answers()
    halves = [
        write(tmp_path / f"half{n}.csv", HEADER, part) for n, part in enumerate((rows[:3001], rows[3001:]))
    ]
    out, output = fuse(*halves, halves[0], *QUICK)
    assert "6,600 comparisons" in output
    for name in ("annotators.csv", "ranking.csv", "path.csv"):
        assert (out / name).read_bytes() == (crowd_results / name).read_bytes()


def test_a_file_without_a_question_joins_the_only_one_on_the_same_items(fuse, tmp_path):
    rows = answers()
    named = write(tmp_path / "named.csv", (*HEADER, "question"), [(*row, "older?") for row in rows[:4000]])
    remaining = write(tmp_path / "rest.csv", HEADER, rows[4000:])
    second = write(tmp_path / "other.csv", HEADER, [(a, x + "'", y + "'", c) for a, x, y, c in rows[:2000]])
    _, output = fuse(named, remaining, *QUICK)
    assert "6,600 comparisons by 55 annotators of 16 items, fused" in output
    _, output = fuse(named, second, *QUICK)
    assert "of 2 questions" in output


def test_each_of_several_questions_has_a_folder(fuse, tmp_path):
    rows = [(*row, q) for q in ("older?", "sharper?") for row in answers()]
    path = write(tmp_path / "two.csv", (*HEADER, "question"), rows)
    out, output = fuse(path, *QUICK)
    assert "of 2 questions" in output
    folders = sorted(path for path in out.iterdir() if path.is_dir())
    assert len(folders) == 2
    assert flagged(folders[0]) == flagged(folders[1]) >= BIASED
    out, output = fuse(path, "--question", "OLDER?", *QUICK, folder="only")
    assert record(out)["questions"][0]["question"] == "older?"
    assert flagged(out) >= BIASED


def test_excluded_annotators_are_as_if_they_had_not_been_there(fuse, crowd, tmp_path):
    left_out = {UGLY[0], BAD[3]}
    remaining = write(tmp_path / "rest.csv", HEADER, [row for row in answers() if row[0] not in left_out])
    out, _ = fuse(crowd, "--exclude", *left_out, *QUICK)
    expected, _ = fuse(remaining, *QUICK, folder="rest")
    for name in ("annotators.csv", "ranking.csv"):
        assert (out / name).read_bytes() == (expected / name).read_bytes()
    assert record(out)["excluded"] == sorted(left_out)


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        (("worker", "left", "right", "label"), lambda a, x, y, c: (a, x, y, x if c == "left" else y)),
        (
            ("model_a", "model_b", "winner", "judge"),
            lambda a, x, y, c: (x, y, "model_a" if c == "left" else "model_b", a),
        ),
        (HEADER, lambda a, x, y, c: (a, x, y, "1" if c == "left" else "-1")),
    ],
    ids=["crowd-kit", "arena", "numbers"],
)  # fmt: skip
def test_other_layouts_give_the_same(fuse, crowd_results, tmp_path, header, cells):
    same = write(tmp_path / "same.csv", header, [cells(*row) for row in answers()])
    out, _ = fuse(same, *QUICK)
    for name in ("annotators.csv", "ranking.csv"):
        assert (out / name).read_bytes() == (crowd_results / name).read_bytes()


def test_grades_count_unless_the_side_alone_shall(fuse, crowd, crowd_results, tmp_path):
    rng = np.random.default_rng(3)
    rows = answers()
    grade = rng.choice([1, 2, 3], len(rows)).tolist()
    graded = [
        (a, x, y, size if c == "left" else -size) for (a, x, y, c), size in zip(rows, grade, strict=True)
    ]
    path = write(tmp_path / "graded.csv", HEADER, graded)
    out, _ = fuse(path, *QUICK, "graded=no", folder="sides")
    run_record = record(out)["questions"][0]
    assert run_record["inconsistency"] == pytest.approx(run_record["disagreement"] + run_record["cyclic"])
    for name in ("annotators.csv", "ranking.csv"):
        assert (out / name).read_bytes() == (crowd_results / name).read_bytes()
    out, _ = fuse(path, *QUICK)
    assert rows_of(out / "ranking.csv")[0]["score"] != rows_of(crowd_results / "ranking.csv")[0]["score"]
    _, output = fuse(path, crowd, *QUICK)
    assert "graded.csv has graded choices and crowd.csv none above 1" in output


def test_a_path_too_large_to_open_is_skipped_with_a_notice(fuse, crowd, crowd_results, monkeypatch):
    assert (crowd_results / "path.csv").exists()
    monkeypatch.setattr("raterscope.app.kinds.pairs.exports.MAX_ENTRIES", 43)
    out, output = fuse(crowd, *QUICK)
    assert "path.csv is left out" in output
    assert not (out / "path.csv").exists()


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--path", "oem"], "oem is no path for pairs; expected one of iss, lasso, lbi"),
            (["--fdr", "often"], "rate"),
            (["--fdr", "0.9"], "0.25"),
            (["--fdr", "0.2", "--set", "rate=0.1"], "exclude each other"),
            (["--set", "kappa=2"], "kappa"),
            (["--exclude", "nobody"], "there is no annotator nobody to exclude; expected one of good 00"),
            (["--exclude", *PEOPLE], "no comparisons are left"),
            (["--question", "which?"], "there is no question which?; expected one of pairs"),
        ],
    )  # fmt: skip
    def test_options_that_do_not_fit(self, refusal, crowd, arguments, words):
        assert words in refusal(crowd, *arguments)

    @pytest.mark.parametrize(
        ("rows", "words"),
        [
            ([], "has a header but no rows"),
            ([("a", "x", "x", "left")], "compares an item with itself"),
            ([("a", "x", "y", "banana")], '"banana" is not a choice'),
            ([("a", "x", "y", "nan")], '"nan" is not a choice'),
            ([("", "x", "y", "left")], "field annotator"),
            ([("a", "x", "y", "left")], "too few to estimate the noise"),
            ([("a", f"i{n}", f"i{n + 1}", "left") for n in range(9)], "too few to estimate the noise"),
        ],
    )  # fmt: skip
    def test_files_that_do_not_fit(self, refusal, tmp_path, rows, words):
        output = refusal(write(tmp_path / "odd.csv", HEADER, rows))
        assert output.startswith("odd.csv")
        assert words in output

    def test_the_question_of_which_nothing_is_left(self, refusal, tmp_path):
        rows = [(*row, "older?") for row in answers()] + [("alone", "x", "y", "left", "sharper?")]
        path = write(tmp_path / "two.csv", (*HEADER, "question"), rows)
        output = refusal(path, "--exclude", "alone")
        assert output.startswith("field sharper?: no comparisons are left")

    def test_columns_are_named_by_hand(self, refusal, fuse, tmp_path):
        path = write(tmp_path / "odd.csv", ("wer", "l", "r", "wie"), answers())
        assert "by --map column=field" in refusal(path)
        out, _ = fuse(path, "--map", "wer=annotator", "l=left", "r=right", "wie=choice", *QUICK)
        assert flagged(out) >= BIASED

    def test_a_question_that_fails_leaves_the_others(self, tmp_path, capsys):
        rows = [(*row, "older?") for row in answers()] + [("a", "x", "y", "left", "lonely?")]
        path = write(tmp_path / "two.csv", (*HEADER, "question"), rows)
        assert main(["fuse", "pairs", str(path), "-o", str(tmp_path / "out"), *QUICK]) == 1
        err = capsys.readouterr().err.splitlines()[-1]
        assert "1 of 2 could not be fused, the others were; lonely?: " in err
        assert len(list((tmp_path / "out").rglob("run.json"))) == 1


def test_help_and_settings_are_those_of_pairs_alone(capsys):
    assert main(["fuse", "pairs", "--help"]) == 0
    output = capsys.readouterr().out
    assert "iss: inverse scale space" in output
    assert "staple" not in output
    assert main(["fuse", "pairs", "--list-settings"]) == 0
    assert "share=0.5" in capsys.readouterr().out


class TestRealCrowds:
    """Figures of an independent implementation, and of the position bias paper."""

    @pytest.mark.parametrize(
        ("name", "freedom", "variance", "by_t_test", "many"),
        [("lf_quality", 26215, 0.7103822956, 18, 20), ("music_sigir2010", 2619, 0.3525731598, 8, 0)],
    )
    def test_what_is_found(self, fuse, real_data, name, freedom, variance, by_t_test, many):
        out, _ = fuse(real_data / "pairs" / f"{name}.csv", "--set", "min_comparisons=1", "rule=knockoffs")
        run_record = record(out)["questions"][0]
        assert run_record["degrees_of_freedom"] == freedom
        assert run_record["noise_variance"] == pytest.approx(variance, rel=1e-9)
        assert run_record["t_test"] == by_t_test
        assert abs(len(flagged(out)) - many) <= 1
