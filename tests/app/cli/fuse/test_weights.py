"""--weight of every kind: 1 changes nothing, a part is recorded and used, wrong names and files are named."""

import json
from pathlib import Path

import pytest

from raterscope.app.cli.program import main
from tests.app.annotators.made import write_files

RESULT = {"labels": "labels.csv", "pairs": "ranking.csv", "masks": "run.json"}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("weights") / "input"
    write_files(folder)
    masks = sorted(map(str, folder.glob("case1_*.nii.gz")))
    return {
        "labels": [str(folder / "labels.csv"), "--algorithm", "ibcc"],
        "pairs": [str(folder / "pairs.csv")],
        "masks": [*masks, "--naming", "{item}_{annotator}", "--algorithm", "laplace"],
    }


def fused(kind: str, arguments: list[str], output: Path) -> dict:
    assert main(["fuse", kind, *arguments, "-o", str(output)]) == 0
    return json.loads((output / "run.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", ["labels", "pairs", "masks"])
def test_a_weight_is_recorded_and_used(files, kind, tmp_path, capsys):
    plain = fused(kind, files[kind], tmp_path / "plain")
    one = fused(kind, [*files[kind], "--weight", "ben=1"], tmp_path / "one")
    part = fused(kind, [*files[kind], "--weight", "ben=0.25"], tmp_path / "part")
    assert (plain["weights"], one["weights"], part["weights"]) == ({}, {"ben": 1.0}, {"ben": 0.25})
    assert plain["digest"] == one["digest"] != part["digest"]
    if kind != "masks":
        results = [(tmp_path / name / RESULT[kind]).read_bytes() for name in ("plain", "one", "part")]
        assert results[0] == results[1] != results[2]
    else:
        bounds = [each["images"][0]["structures"][0]["objective"] for each in (plain, one, part)]
        assert bounds[0] == bounds[1] != bounds[2]
    capsys.readouterr()
    assert main(["fuse", kind, *files[kind], "--weight", "kim=0.5", "-o", str(tmp_path / "no")]) != 0
    assert "there is no annotator kim to weigh; expected one of " in capsys.readouterr().err
