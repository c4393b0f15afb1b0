"""Contents of the record of a kind, tested with a small fifth kind that only these tests register."""

import dataclasses
import json
import subprocess
import sys

import pytest
from PIL import Image

from raterscope.app.cli import main
from raterscope.app.kinds.kind import Kind
from raterscope.app.kinds.registry import KINDS, exports, find_export, registered
from raterscope.app.nouns import NOUNS
from raterscope.app.report import write_report
from raterscope.app.review import REVIEWED, CommentSubject, Decision, fold
from raterscope.app.study import Study, StudyError
from raterscope.app.study.case_copy import copy_case
from raterscope.app.study.imports import number_annotators
from raterscope.app.study.kinds import STORED
from raterscope.app.study.merging import MergedRuns
from raterscope.app.workspaces.catalogue import WORKSPACES
from tests.app.kinds.boxes import BOXES, HEADER, BoxSubject, boxes_of

REQUIRED = {
    "name", "title", "nouns", "file_kinds", "fuse_command", "load_catalogues",
    "load_functions", "load_report",
}  # fmt: skip


@pytest.fixture
def boxes():
    with registered(BOXES):
        yield BOXES


def help_of(capsys, *command):
    assert main([*command, "--help"]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_kind_lists_what_it_must_provide():
    fields = dataclasses.fields(Kind)
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    assert needed == REQUIRED
    assert list(KINDS) == list(STORED) == list(REVIEWED) == list(NOUNS)
    assert list(WORKSPACES) == [*KINDS, "annotators"]
    for name, kind in KINDS.items():
        assert kind.name == name
        assert kind.load_sample is not None
        assert kind.load_sample().picture.startswith("window")
        assert kind.report.gather
        assert name in {export.what for export in kind.exports} | {"masks"}
        assert set(kind.functions.writers) == {export.what for export in kind.exports}
        assert [catalogue for catalogue in kind.catalogues if catalogue.chosen_by_run]


def test_importing_the_registry_is_cheap_and_the_functions_of_a_kind_load_no_heavy_library():
    heavy = (
        "import sys; from raterscope.app.kinds.registry import KINDS\n"
        "print({'numpy', 'scipy', 'PIL'} & set(sys.modules))\n"
        "for kind in KINDS.values(): kind.functions\n"
        "print({'numba', 'scipy.stats', 'sklearn', 'PySide6'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "set()"]


def test_a_kind_is_registered_once(boxes):
    with pytest.raises(ValueError, match="boxes is registered"), registered(BOXES):
        pass


def test_a_new_kind_is_offered_by_every_command(boxes, capsys):
    assert "boxes" not in help_of(capsys, "fuse", "clicks")
    assert "boxes a crowd's boxes" in help_of(capsys, "fuse")
    of_boxes = help_of(capsys, "fuse", "boxes")
    assert "raterscope fuse boxes boxes.csv -o results" in of_boxes
    assert "median-box: Median box" in of_boxes
    assert "median-box" in help_of(capsys, "run")
    assert "true-boxes" in help_of(capsys, "import")
    assert "--box-sizes measure boxes" in help_of(capsys, "report")
    assert "decisions" in help_of(capsys, "export")
    assert "boxes" in help_of(capsys, "export")


def test_a_new_kind_fuses_files(boxes, tmp_path):
    assert main(["fuse", "boxes", "a.csv", "b.csv", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "boxes.csv").read_text() == "2 files\n"


def test_a_new_kind_has_the_decisions(boxes):
    assert "boxes" in find_export("decisions", ["boxes"]).kinds
    assert find_export("boxes", ["boxes"]) in exports()


@pytest.fixture
def files(tmp_path):
    Image.new("L", (40, 30)).save(tmp_path / "smear.png")
    rows = ["kim,smear.png,1,2,11,12", "lee,smear.png,2,3,12,13", "max,smear.png,30,3,32,13"]
    (tmp_path / "boxes.csv").write_text("\n".join([",".join(HEADER), *rows]) + "\n")
    return [str(tmp_path / "smear.png"), str(tmp_path / "boxes.csv")]


def test_a_new_kind_is_imported_fused_decided_on_exported_and_reported(boxes, files, tmp_path, capsys):
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), *files]) == 0
    assert "3 boxes on 1 images." in capsys.readouterr().out
    assert main(["run", str(path), "median-box"]) == 0
    assert "1 boxes" in capsys.readouterr().out
    with Study.open(path) as study:
        assert [entry.name for entry in study.items()["boxes"]] == ["smear.png"]
        assert not study.items()["clicks"]
        (run,) = study.runs.all()
        assert (run.kind, run.algorithm) == ("boxes", "median-box")
        study.record(Decision(verb="confirm", subject=BoxSubject(), item=1))
        study.record(Decision(verb="comment", subject=CommentSubject(of="boxes"), item=1, reason="blurred"))
    with Study.open(path) as study:
        assert fold(study.decisions()).fixed("boxes", 1) == "confirm"
        assert study.shown.decided_since(run, [1])
        assert not study.shown.outdated(run, [1])
    assert main(["export", str(path), "--what", "boxes", "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "smear.png,2.0,3.0,12.0,13.0,3,confirm"
    assert json.loads((tmp_path / "out.run.json").read_text())["runs"][0]["kind"] == "boxes"
    assert main(["export", str(path), "--what", "decisions", "-o", str(tmp_path / "d.csv")]) == 0
    assert "confirm" in (tmp_path / "d.csv").read_text()
    assert main(["report", str(path), "-o", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "The box of smear.png ends at 12." in text
    assert "confirm box 1" in text
    assert "comment on the image" in text
    assert "median of their edges" in text


def test_annotations_of_a_new_kind_outdate_its_run(boxes, files, tmp_path):
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), *files]) == 0
    assert main(["run", str(path), "median-box"]) == 0
    assert main(["import", str(path), files[1]]) == 0
    with Study.open(path) as study:
        assert "got annotations after it" in study.shown.outdated(study.runs.all()[0], [1])[0]


def test_annotators_of_a_new_kind_keep_their_boxes_in_a_cohort(boxes, files, tmp_path):
    assert main(["import", str(tmp_path / "s.rscope"), *files]) == 0
    with Study.open(tmp_path / "s.rscope") as case, Study.create(tmp_path / "all.rscope") as cohort:
        with cohort.change() as connection:
            number_annotators(connection, ["max", "ann", "lee"])
        runs = MergedRuns(cohort)
        runs.begin()
        copy_case(case, cohort, lambda _table, name: name, runs)
        assert boxes_of(cohort, 1)[0] == boxes_of(case, 1)[0] == ["kim", "lee", "max"]


def test_a_run_of_a_kind_that_is_not_known_here_is_refused(files, tmp_path, capsys):
    path = tmp_path / "s.rscope"
    with registered(BOXES):
        assert main(["import", str(path), *files]) == 0
        assert main(["run", str(path), "median-box"]) == 0
    with Study.open(path) as study, pytest.raises(StudyError, match="a run of an unknown kind, boxes"):
        study.runs.result(1, 1)


def test_a_study_without_the_new_kind_reports_as_before(boxes, study_fused, tmp_path):
    with Study.open(study_fused) as study:
        text = write_report(study, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "of clicks" in text
    assert "of boxes" not in text


def test_the_demo_shows_every_sample(boxes, tmp_path, monkeypatch, capsys):
    paths = []
    monkeypatch.setattr("raterscope.app.cli.demo.KINDS", {"boxes": BOXES})
    monkeypatch.setattr("raterscope.app.cli.demo._show", lambda *arguments: paths.extend(arguments) or 0)
    assert main(["demo", str(tmp_path)]) == 0
    assert "one box" in capsys.readouterr().out
    assert paths == [[tmp_path / "boxes.rscope"], [tmp_path / "results" / "window-boxes.png"]]
    assert (tmp_path / "ABOUT.txt").read_text() == "Simulated are the boxes."
