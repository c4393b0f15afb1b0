"""Observer variability of clicks, labels and pairs, as tables and in the report."""

import numpy as np
import pytest

from tests.app.commands import run
from tests.app.tables import rows_of


def _export(study, tmp_path):
    assert run("export", study, "--what", "variability", "-o", tmp_path / "v.csv") == 0
    return {(row["statistic"], row["first"], row["second"]): row for row in rows_of(tmp_path / "v.csv")}


def test_counts_and_detections_of_clicks(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["annotator,image,x,y,read"]
    for image in range(8):
        spots = rng.uniform(10, 190, (4 + image, 2))
        for name, read, missed in (("anna", 1, 0), ("anna", 2, 0), ("ben", 1, 2), ("carl", 1, 1)):
            kept = spots[missed:] + rng.normal(0, 0.5, (len(spots) - missed, 2))
            lines += [f"{name},i{image},{x:.2f},{y:.2f},{read}" for x, y in kept]
    (tmp_path / "c.csv").write_text("\n".join(lines))
    study = tmp_path / "s.rscope"
    assert run("import", study, tmp_path / "c.csv", "--extent", 200, 200, "--radius", 5) == 0
    rows = _export(study, tmp_path)
    assert float(rows["bias", "anna", "ben"]["value"]) == 2
    assert float(rows["detection agreement", "anna (read 2)", "anna"]["value"]) == 1
    shared = sum(2 + image for image in range(8))
    both = sum(4 + image for image in range(8)) + shared
    assert float(rows["detection agreement", "anna", "ben"]["value"]) == pytest.approx(2 * shared / both)
    assert float(rows["ICC(3,1)", "", ""]["value"]) == pytest.approx(1)
    assert float(rows["ICC(2,1)", "", ""]["value"]) < 1
    assert ("concordance correlation", "any reader", "the same reader") in rows
    assert run("run", study, "oem") == 0
    assert run("report", study, "--variability", "-o", tmp_path / "r.html") == 0
    text = (tmp_path / "r.html").read_text()
    assert "Counts and detections of two readers" in text
    assert "bias of each reader" in text


def test_repeated_answers_of_labels(tmp_path):
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 60)
    lines = ["annotator,task,label,read"]
    for name, read, errors in (("anna", 1, 0.05), ("anna", 2, 0.05), ("ben", 1, 0.2), ("carl", 1, 0.3)):
        given = np.where(rng.random(60) < errors, 1 - truth, truth)
        lines += [f"{name},t{task},{'yes' if answer else 'no'},{read}" for task, answer in enumerate(given)]
    (tmp_path / "v.csv").write_text("\n".join(lines))
    study = tmp_path / "s.rscope"
    assert run("import", study, tmp_path / "v.csv") == 0
    rows = _export(study, tmp_path)
    own, other = rows["Cohen's kappa", "anna", "anna"], rows["Cohen's kappa", "anna", "ben"]
    assert float(own["value"]) > float(other["value"])
    assert own["cases"] == "60"
    assert rows["Fleiss' kappa", "any reader", "another reader"]["raters"] == "3"
    assert ("Cohen's kappa", "anna", "anna (read 2)") not in rows
    assert run("run", study, "majority") == 0
    (tmp_path / "p.toml").write_text("[limits]\nkappa = 0.99\n")
    assert run("report", study, "--variability", tmp_path / "p.toml", "-o", tmp_path / "r.html") == 0
    text = (tmp_path / "r.html").read_text()
    assert "Repeated answers of the same annotator" in text
    assert ">fail<" in text


def test_repeated_and_swapped_comparisons(tmp_path):
    lines = ["annotator,left,right,choice"]
    for item in range(12):  # ben always takes the left one
        for name, again in (("anna", "right"), ("ben", "left")):
            lines += [f"{name},a{item},b{item},left", f"{name},b{item},a{item},{again}"]
            lines += [f"{name},b{item},a{item},{again}"]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    study = tmp_path / "s.rscope"
    assert run("import", study, tmp_path / "p.csv") == 0
    rows = _export(study, tmp_path)
    swapped = "consistency of swapped comparisons"
    assert [float(rows[swapped, name, name]["value"]) for name in ("anna", "ben")] == [1, 0]
    assert float(rows["consistency of repeated comparisons", "ben", "ben"]["value"]) == 1
    assert rows[swapped, "any reader", "the same reader"]["cases"] == "24"
