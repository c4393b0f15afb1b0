"""Crowds of several sizes in a report."""

import numpy as np
import pytest

from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
from raterscope.app.errors import InputError
from raterscope.app.report import write_report
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.tables import write

CENTRES = ((30, 40), (150, 60), (90, 150))


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(2)
    rows = [
        (f"w{who}", "a.png", round(x + rng.normal(0, 1.5), 1), round(y + rng.normal(0, 1.5), 1), 200, 200)
        for who in range(8)
        for x, y in CENTRES
    ]
    columns = ("annotator", "image", "x", "y", "width", "height")
    path = tmp_path / "s.rscope"
    assert run("import", path, write(tmp_path / "clicks.csv", columns, rows)) == 0
    assert run("run", path, "oem") == 0
    return path


def test_the_report_measures_methods_against_the_number_of_annotators(study, tmp_path):
    truth = write(tmp_path / "truth.csv", ("image", "x", "y"), [("a.png", *place) for place in CENTRES])
    assert run("import", study, truth, "--kind", "truth") == 0
    out = tmp_path / "report.html"
    assert run("report", study, "--by-crowd-size", "draws=1", "crowds=2", "fewest=4", "-o", out) == 0
    page = out.read_text(encoding="utf-8")
    assert "Number of annotators" in page
    assert "Precision after detection" in page
    assert "OEM as printed, DEM as printed, after detection" in page
    assert "1.000" in page
    plain = tmp_path / "plain.html"
    assert run("report", study, "-o", plain) == 0
    assert "Crowds of several sizes" not in plain.read_text(encoding="utf-8")


def test_without_known_places_it_is_refused(study, tmp_path):
    with Study.open(study) as opened, pytest.raises(InputError, match="ground truth"):
        write_report(opened, tmp_path / "report.html", options={"crowd_size": CrowdSizeSettings()})
