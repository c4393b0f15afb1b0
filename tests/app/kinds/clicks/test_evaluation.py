"""Accuracy of clicks' runs against true places, the same wherever it is shown."""

import csv

import pytest

from raterscope.algorithms.evaluation import RADIUS
from raterscope.app.cli.program import main
from raterscope.app.errors import InputError
from raterscope.app.kinds.clicks.evaluation import measure_runs
from raterscope.app.page.contents import share
from raterscope.app.report import write_report
from raterscope.app.study import Study
from tests.app.tables import write

EXTENT = ["--extent", "200", "200"]


@pytest.fixture
def tables(tmp_path):
    """Four annotators click 6 px beside three of the true places of two images."""
    positions = [(40, 40), (100, 40), (160, 150)]
    rows = [
        (f"w{annotator}", image, x + 6 + annotator / 10, y)
        for annotator in range(4)
        for image in "ab"
        for x, y in positions
    ]
    clicks = write(tmp_path / "clicks.csv", ("annotator", "image", "x", "y"), rows)
    truth = write(
        tmp_path / "truth.csv",
        ("image", "x", "y"),
        [("a", *positions[0]), ("a", *positions[1]), *(("b", *position) for position in positions)],
    )
    return clicks, truth


@pytest.mark.parametrize(("radius", "result"), [(None, (2, 3)), (4.0, (0, 0))])
def test_window_fuse_and_report_agree(tables, tmp_path, capsys, radius, result):
    clicks, truth = map(str, tables)
    option = [] if radius is None else ["--radius", str(radius)]
    path = tmp_path / "one.rscope"
    assert main(["import", str(path), clicks, truth, *EXTENT, *option]) == 0
    assert main(["run", str(path), "oem"]) == 0
    more = [*EXTENT, *option, "-o", str(tmp_path / "out")]
    assert main(["fuse", "clicks", clicks, "--truth", truth, *more]) == 0
    output = capsys.readouterr().out
    with Study.open(path) as study:
        used = study.settings.matching_radius()
        assert used == (RADIUS if radius is None else radius)
        _, _, (measured,) = measure_runs([1], used, study)
        text = write_report(study, tmp_path / "report.html").read_text().replace("\xa0", " ")
    with (tmp_path / "out" / "evaluation.csv").open() as file:
        assert tuple(int(row["matched"]) for row in csv.DictReader(file))[:2] == result
    assert measured.row.true_positive == sum(result)
    assert f"within {used:g} px, mean over 2 images: sensitivity {measured.row.sensitivity:.3f}" in output
    assert f"true position within {used:g} px" in text
    assert f"sensitivity {share(measured.row.sensitivity)}" in text


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), 1e9])
def test_a_radius_that_matches_nothing_is_refused(tmp_path, radius):
    with Study.create(tmp_path / "one.rscope") as study:
        with pytest.raises(InputError, match="expected above 0"):
            study.settings.set_matching_radius(radius)
        assert study.settings.matching_radius() == RADIUS
