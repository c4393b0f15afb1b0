"""Inter- and intra-observer variability of what readers marked in a reader study."""

import pytest

from raterscope.app.reader_studies.collecting import collect
from tests.app.commands import run
from tests.app.reader_studies.making import make, read
from tests.app.tables import rows_of

INTRA = {
    "clicks": ("detection agreement", "any reader", "the same reader"),
    "masks": ("Dice", "any reader", "the same reader"),
    "labels": ("agreement", "any reader", "the same reader"),
}


@pytest.mark.parametrize("kind", INTRA)
def test_a_collected_study_has_both_kinds_of_variability(kind, tmp_path):
    out = make(kind, tmp_path, reads=2, repeated_cases=4)
    for number, path in enumerate(sorted((out / "readers").glob("*.rsread"))):
        read(path, clicks=2 + number)
        read(path, session=2, clicks=2)
    study = tmp_path / "study.rscope"
    assert collect([out], study).problems == []
    assert run("export", study, "--kind", kind, "--what", "variability", "-o", tmp_path / "v.csv") == 0
    tables = [path for path in (tmp_path / "v.csv", *tmp_path.glob("v*/*.csv")) if path.is_file()]
    rows = {(row["statistic"], row["first"], row["second"]): row for path in tables for row in rows_of(path)}
    own = rows[INTRA[kind]]
    assert float(own["value"]) == pytest.approx(1 if kind != "clicks" else (1 + 0.8) / 2)
    assert any(second == "another reader" for _, _, second in rows)
