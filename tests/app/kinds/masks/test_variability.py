"""Variability of raters' volumes over cases, as file and in the report."""

import numpy as np
import pytest

from raterscope.app.kinds.masks.variability import mean_of
from tests.app.commands import run
from tests.app.kinds.masks.made import SPACING, a_ball, write
from tests.app.tables import rows_of

OFFSETS = {"anna": 0.0, "ben": 0.6, "carl": -0.4}


@pytest.fixture
def study(tmp_path, capsys):
    files = []
    for case, radius in enumerate((5.0, 6.0, 7.0, 8.0)):
        for name, offset in OFFSETS.items():
            if (case, name) != (3, "carl"):
                ball = a_ball(radius=radius + offset)
                files.append(write(tmp_path / f"c{case}_{name}.nii.gz", ball))
    assert run("import", tmp_path / "s.rscope", *files) == 0
    capsys.readouterr()
    return tmp_path / "s.rscope"


def ml(radius):
    return a_ball(radius=radius).sum() * float(np.prod(SPACING)) / 1000


def test_the_table(study, tmp_path):
    assert run("export", study, "--what", "variability", "-o", tmp_path / "v.csv") == 0
    rows = {(row["statistic"], row["first"], row["second"]): row for row in rows_of(tmp_path / "v.csv")}
    bias = rows["bias", "anna", "ben"]
    expected = np.mean([ml(radius) - ml(radius + 0.6) for radius in (5, 6, 7, 8)])
    assert float(bias["value"]) == pytest.approx(expected, rel=1e-6)
    assert (bias["unit"], bias["cases"]) == ("ml", "4")
    assert rows["bias", "anna", "carl"]["cases"] == "3"
    icc = rows["ICC(2,1)", "", ""]
    assert (icc["cases"], icc["raters"]) == (
        "3",
        "3",
    )  # 9 volumes; two raters would give 8
    assert float(icc["low"]) < float(icc["value"]) < float(icc["high"])


def test_intervals_of_distances_and_shares_end_where_the_values_do():
    few = {1: 0.0, 2: 0.9, 3: 0.1}
    assert mean_of("hausdorff_95", few).low == 0
    assert mean_of("hausdorff_95", few).high > 1
    assert (mean_of("dice", few).low, mean_of("dice", few).high) == (0, 1)


def test_an_excluded_rater_is_left_out_and_names_can_be_hidden(study, tmp_path):
    (tmp_path / "d.csv").write_text("verb,annotators\nexclude,carl\n")
    assert run("decide", study, tmp_path / "d.csv") == 0
    assert run("export", study, "--what", "variability", "--deidentify", "-o", tmp_path / "v.csv") == 0
    text = (tmp_path / "v.csv").read_text()
    assert "rater-1,rater-2" in text
    assert not any(name in text for name in OFFSETS)
    assert {row["cases"] for row in rows_of(tmp_path / "v.csv")} == {"4"}


def test_the_report_has_it(study, tmp_path):
    assert run("run", study, "majority") == 0
    assert run("report", study, "-o", tmp_path / "r.html") == 0
    assert "Variability of the volumes" in (tmp_path / "r.html").read_text()


def test_one_case_has_differences_of_outlines_alone(tmp_path):
    files = [write(tmp_path / f"c_{name}.nii.gz", a_ball(radius=6 + o)) for name, o in OFFSETS.items()]
    assert run("import", tmp_path / "s.rscope", *files) == 0
    assert run("export", tmp_path / "s.rscope", "--what", "variability", "-o", tmp_path / "v.csv") == 0
    statistics = {row["statistic"] for row in rows_of(tmp_path / "v.csv")}
    assert "Dice" in statistics
    assert "ICC(2,1)" not in statistics


def test_one_rater_has_no_variability(tmp_path, refusal):
    mask = write(tmp_path / "c.nii.gz", a_ball(radius=6))
    assert run("import", tmp_path / "s.rscope", mask, "--annotator", "anna") == 0
    words = refusal("export", tmp_path / "s.rscope", "--what", "variability", "-o", tmp_path / "v.csv")
    assert "no structure that two raters marked" in words


@pytest.fixture
def reads(tmp_path, capsys):
    """Make a study in which anna reads every case twice."""
    files = []
    for case, radius in enumerate((5.0, 6.0, 7.0, 8.0)):
        for name, read, offset in (("anna", 1, 0.0), ("anna", 2, 0.2), ("ben", 1, 0.9), ("carl", 1, -0.6)):
            path = tmp_path / f"c{case}_rater-{name}_read-{read}.nii.gz"
            files.append(write(path, a_ball(radius=radius + offset)))
    assert run("import", tmp_path / "s.rscope", *files) == 0
    capsys.readouterr()
    return tmp_path / "s.rscope"


def test_repeated_reads_are_compared_with_themselves(reads, tmp_path):
    assert run("export", reads, "--what", "variability", "-o", tmp_path / "v.csv") == 0
    rows = {(row["statistic"], row["first"], row["second"]): row for row in rows_of(tmp_path / "v.csv")}
    assert rows["ICC(2,1)", "", ""]["raters"] == "3"  # people, not reads
    assert ("bias", "anna (read 2)", "anna") in rows
    assert ("bias", "anna (read 2)", "ben") not in rows
    intra = float(rows["Dice", "any reader", "the same reader"]["value"])
    inter = float(rows["Dice", "any reader", "another reader"]["value"])
    assert inter < intra <= 1
    assert float(rows["repeatability coefficient", "anna", "anna"]["value"]) > 0


def test_the_report_judges_by_a_protocol(reads, tmp_path, refusal):
    (tmp_path / "p.toml").write_text(
        "tolerance = 1.0\n[limits]\ndice = 0.5\nhausdorff_95 = 0.01\nbias = 9.0\n"
    )
    assert run("run", reads, "majority") == 0
    assert run("report", reads, "--variability", tmp_path / "p.toml", "-o", tmp_path / "r.html") == 0
    text = (tmp_path / "r.html").read_text()
    for words in ("Limits of the protocol", "Between reads", "Surface Dice at 1", ">pass<", ">fail<"):
        assert words in text
    assert text.count("Variability of the volumes") == 1
    (tmp_path / "p.toml").write_text("[limits]\ndize = 0.5\n")
    words = refusal("report", reads, "--variability", tmp_path / "p.toml", "-o", tmp_path / "r.html")
    assert "unknown limit dize" in words
