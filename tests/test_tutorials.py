"""The tutorials run as they stand, and reproduce what they cite of a paper."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "tutorials"

REPRODUCED = {
    "clicks": lambda names: names["sensitivity"] >= 0.99 and names["precision"] >= 0.99,
    "masks": lambda names: (
        names["consensus_dice"] > max(0.9, sum(names["reader_dice"]) / 7)
        and names["ratio"] > 1
        and names["worst"] == "reader 3"
    ),
    "labels": lambda names: names["majority_area"] + 0.01 < names["ibcc_area"] > 0.984,
    "pairs": lambda names: names["true_discoveries"] >= 49 and names["false_rate"] <= 0.2,
    "reader_study": lambda names: (
        names["errors"]["MAP"] < names["errors"]["EM"] < names["errors"]["majority"] < 0.05
    ),
    "cohort": lambda names: names["true_discoveries"] >= 49 and names["false_rate"] <= 0.15,
}
"""By tutorial, whether the published figure is reached."""


def cells(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]


def test_every_tutorial_is_listed_and_stored_without_output():
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(REPRODUCED)
    for name in REPRODUCED:
        assert 6 <= len(cells(name)) <= 12
        for cell in cells(name):
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None


@pytest.mark.parametrize("name", REPRODUCED)
def test_tutorial_reproduces_a_published_figure(name, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names = {"__name__": "__main__"}
    for cell in cells(name):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}.ipynb, {cell['id']}", "exec"), names)
    assert REPRODUCED[name](names)
