"""What a kind of annotation must provide, held by a tiny fifth kind that is registered here alone."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from raterscope.algorithms.catalogue import Algorithm
from raterscope.algorithms.settings import Settings
from raterscope.app.cli import main
from raterscope.app.exports import Export, Request, write_export
from raterscope.app.kinds.kind import (
    Catalogue,
    Catalogues,
    Functions,
    FuseCommand,
    Kind,
    Report,
    ReportPart,
    Sample,
    Summary,
)
from raterscope.app.kinds.registry import KINDS, exports, find_export, registered
from raterscope.app.report import write_report
from raterscope.app.sample_files import Demonstrated
from raterscope.app.study import Study

REQUIRED = {
    "name", "title", "item", "by_question", "file_kinds", "detail", "fuse_command", "load_catalogues",
    "load_functions", "load_report",
}  # fmt: skip


def _nothing(*_):
    return None


def _fuse_files(options):
    options.output.mkdir()
    (options.output / "boxes.csv").write_text(f"{len(options.boxes)} files\n")
    return 0


def _add_options(parser):
    parser.add_argument("boxes", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)


def _write(study, request, _watch):
    request.path.write_text(f"boxes of {study.path.name}\n")
    return [request.path]


FUNCTIONS = Functions(
    make_plan=_nothing, read_plan=_nothing, gather=_nothing, fuse=_nothing, keep=_nothing,
    summarise=lambda *_: Summary((), ()), fuse_files=_fuse_files, annotators_of=lambda *_: (),
    compare_runs=_nothing, trust=_nothing, writers={"boxes": _write},
)  # fmt: skip

ALGORITHM = Algorithm("median-box", "Median box", "Edges.", "", Settings, _nothing)

BOXES = Kind(
    name="boxes",
    title="Boxes",
    item="image",
    by_question=False,
    file_kinds=("boxes", "true-boxes"),
    detail="box",
    fuse_command=FuseCommand(
        "a crowd's boxes", "Fuses boxes.", ("fuse boxes boxes.csv -o results",), _add_options
    ),
    load_catalogues=lambda: Catalogues(
        (Catalogue("algorithms for boxes (--algorithm)", {ALGORITHM.name: ALGORITHM}),)
    ),
    load_functions=lambda: FUNCTIONS,
    load_report=lambda: Report(
        lambda *_: ReportPart([], {}), lambda options: {"box_sizes": options.box_sizes}
    ),
    exports=(Export("boxes", "Boxes", ("csv",), of_run=False),),
    load_sample=lambda: Sample(
        lambda folder, *_: Demonstrated(folder / "boxes.rscope", ["one box"], []),
        lambda _path: "Simulated are the boxes.", "window-boxes.png", 0.1,
    ),
    add_report_options=lambda parser: parser.add_argument(
        "--box-sizes", action="store_true", help="measure boxes"
    ),
)  # fmt: skip


@pytest.fixture
def boxes():
    with registered(BOXES):
        yield BOXES


def help_of(capsys, *command):
    assert main([*command, "--help"]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_a_kind_lists_what_it_must_provide():
    fields = dataclasses.fields(Kind)
    needed = {one.name for one in fields if one.default is dataclasses.MISSING}
    assert needed == REQUIRED
    assert list(KINDS) == ["clicks", "masks", "labels", "pairs"]
    for name, kind in KINDS.items():
        assert kind.name == name
        assert kind.load_sample is not None
        assert kind.load_sample().picture.startswith("window")
        assert kind.report.gather
        assert name in {export.what for export in kind.exports} | {"masks"}
        assert set(kind.functions.writers) == {export.what for export in kind.exports}
        assert [catalogue for catalogue in kind.catalogues if catalogue.chosen_by_run]


def test_importing_the_registry_is_cheap():
    heavy = "import sys, raterscope.app.kinds.registry; print({'numpy', 'scipy', 'PIL'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_functions_of_a_kind_leave_the_heaviest_libraries_alone():
    heavy = (
        "import sys; from raterscope.app.kinds.registry import KINDS\n"
        "for kind in KINDS.values(): kind.functions\n"
        "print({'numba', 'scipy.stats', 'sklearn', 'PySide6'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


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


def test_a_new_kind_is_exported_and_has_the_decisions(boxes, tmp_path):
    assert "boxes" in find_export("decisions", ["boxes"]).kinds
    assert find_export("boxes", ["boxes"]) in exports()
    with Study.create(tmp_path / "s.rscope") as study:
        request = Request("boxes", "csv", tmp_path / "boxes.csv")
        written = write_export(find_export("boxes", ["boxes"]), study, request)
    assert written.files[0].read_text() == "boxes of s.rscope\n"


def test_a_study_without_the_new_kind_reports_as_before(boxes, study_fused, tmp_path):
    with Study.open(study_fused) as study:
        text = write_report(study, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "of clicks" in text
    assert "of boxes" not in text


def test_the_demo_shows_every_sample(boxes, tmp_path, monkeypatch, capsys):
    shown = []
    monkeypatch.setattr("raterscope.app.cli.demo.KINDS", {"boxes": BOXES})
    monkeypatch.setattr("raterscope.app.cli.demo._show", lambda *places: shown.extend(places) or 0)
    assert main(["demo", str(tmp_path)]) == 0
    assert "one box" in capsys.readouterr().out
    assert shown == [[tmp_path / "boxes.rscope"], [tmp_path / "results" / "window-boxes.png"]]
    assert (tmp_path / "ABOUT.txt").read_text() == "Simulated are the boxes."
