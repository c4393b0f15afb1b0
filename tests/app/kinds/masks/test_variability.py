"""Variability of raters' volumes over cases, as file and in the report."""

import numpy as np
import pytest

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


def test_one_case_has_no_variability(tmp_path, refusal):
    files = [write(tmp_path / f"c_{name}.nii.gz", a_ball(radius=6 + o)) for name, o in OFFSETS.items()]
    assert run("import", tmp_path / "s.rscope", *files) == 0
    words = refusal("export", tmp_path / "s.rscope", "--what", "variability", "-o", tmp_path / "v.csv")
    assert "no structure that two raters marked in two cases" in words
