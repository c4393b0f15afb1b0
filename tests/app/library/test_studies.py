"""Studies opened from Python: contents, exports, fusions."""

import shutil

import pytest

import raterscope as rs
from tests.app.commands import run
from tests.app.library.test_fusion import assert_same, of_file, pairs, votes
from tests.app.tables import write


@pytest.fixture
def fused_study(study_fused, tmp_path):
    return shutil.copy(study_fused, tmp_path / "study.rscope")


def test_detections_are_those_of_the_export(fused_study, tmp_path):
    assert run("export", fused_study, "--what", "detections", "-o", tmp_path / "detections.csv") == 0
    with rs.open_study(fused_study) as study:
        assert study.kinds == ("clicks",)
        assert "detections" in study.exports
        frame = study.to_frame("detections")
        assert_same(frame, of_file(tmp_path / "detections.csv"))
        again = study.fuse("clicks").to_frame()
        assert set(again["image"].tolist()) <= set(study.items("clicks"))
        assert "clicks on" in repr(study)
        assert "<table>" in study._repr_html_()
        assert len(study._study.runs.all()) == 1


def test_labels_and_pairs_of_a_study_are_fused_as_from_tables(tmp_path):
    file, (label_table, _), pair_table = tmp_path / "study.rscope", votes(), pairs()
    for name, table in (("votes.csv", label_table), ("pairs.csv", pair_table)):
        write(tmp_path / name, list(table), zip(*table.values(), strict=True))
    assert run("import", file, tmp_path / "votes.csv", tmp_path / "pairs.csv") == 0
    assert run("run", file, "majority") == 0
    with rs.open_study(file) as study:
        assert study.kinds == ("labels", "pairs")
        expected = rs.fuse_labels(label_table, algorithm="majority").to_frame()
        assert_same(study.fuse("labels", algorithm="majority").to_frame(), expected)
        exported = study.to_frame("labels")
        assert exported["label"].tolist() == expected["label"].tolist()
        ranking = rs.fuse_pairs(pair_table).to_frame()
        assert_same(study.fuse("pairs").to_frame(), ranking)
        with pytest.raises(rs.DataError, match="no run of pairs yet"):
            study.to_frame("ranking")


def test_what_a_study_lacks_is_stated(fused_study, tmp_path):
    with pytest.raises(rs.DataError, match=r"missing\.rscope"):
        rs.open_study(tmp_path / "missing.rscope")
    with rs.open_study(fused_study) as study:
        for problem, act in (
            ("there is no ranking of clicks", lambda: study.to_frame("ranking")),
            ("cells is no kind", lambda: study.fuse("cells")),
            ("the study has no labels", lambda: study.fuse("labels")),
            ("there is no image moon", lambda: study.fuse("clicks", items=["moon"])),
            ("there is no image moon", lambda: study.to_frame("detections", item="moon")),
        ):
            with pytest.raises(rs.DataError, match=problem):
                act()
