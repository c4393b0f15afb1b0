"""The run shown in the window is the run that is exported and reported, for every kind."""

import csv
import functools
import json
import shutil
from dataclasses import dataclass

import nibabel
import numpy as np
import pytest
from PySide6.QtWidgets import QCheckBox, QFileDialog, QMessageBox, QPushButton

from raterscope.algorithms.masks.data import Settled
from raterscope.app.cli import main
from raterscope.app.review import Decision, RegionSubject, SpotSubject, TaskSubject
from raterscope.app.study import Study
from raterscope.widgets.dialogs.output_dialogs import ReportDialog
from tests.app.conftest import write_crowd
from tests.app.driving import LONG, idle, open_study
from tests.app.kinds.labels.made import PEOPLE, write_votes
from tests.app.kinds.masks.made import a_volume, four_raters
from tests.app.kinds.pairs.made import HEADER, answers
from tests.app.report.conftest import Page
from tests.app.tables import write


@dataclass(frozen=True)
class Case:
    """One kind: two algorithms, what leaves, and the numbers in its file and in a stored result."""

    algorithms: tuple[str, str]
    first: str  # the name of the first in the window, in the report and in notes
    what: str
    title: str
    suffix: str
    columns: tuple[str, ...] = ()


CASES = {
    "clicks": Case(("oem", "hac"), "OEM + DEM", "detections", "Detections…", ".csv", ("x", "y")),
    "masks": Case(("gaussian", "laplace"), "Gaussian", "probability", "Probability…", ".nii.gz"),
    "labels": Case(("majority", "ibcc"), "majority vote", "labels", "Labels…", ".csv", ("cat", "dog")),
    "pairs": Case(("iss", "lbi"), "inverse scale space", "annotators", "Annotators…", ".csv", ("entered",)),
}


def call(*arguments) -> None:
    assert main([str(argument) for argument in arguments]) == 0


def few_votes(path):
    """Write the votes on the first thirty tasks: costs of votes are measured in a moment."""
    header, *rows = write_votes(path).read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([header, *rows[: 30 * len(PEOPLE)]]), encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Draw the sides of comparisons again a few times only: that takes most of the time of a report."""
    monkeypatch.setattr("raterscope.app.kinds.pairs.evaluation._DRAWS", 5)


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """Return the folder of a study of a kind with its two runs; each is made once."""

    @functools.cache
    def made(kind):
        folder = tmp_path_factory.mktemp(kind)
        path = folder / "s.rscope"
        files = {
            "clicks": lambda: write_crowd(folder / "input"),
            "masks": lambda: [a_volume(folder / "chest.nii.gz"), *four_raters(folder)],
            "labels": lambda: [few_votes(folder / "votes.csv")],
            "pairs": lambda: [write(folder / "pairs.csv", HEADER, answers())],
        }[kind]()
        call("import", path, *files)
        for algorithm in CASES[kind].algorithms:
            call("run", path, algorithm, "--kind", kind)
        return folder

    return made


def make_study(kind, folder, originals):
    return shutil.copytree(originals(kind), folder) / "s.rscope"


def numbers_in(kind, path):
    """Read the numbers of a file."""
    if kind == "masks":
        return np.asarray(nibabel.load(path).dataobj).T
    with path.open(encoding="utf-8", newline="") as file:
        return np.array(
            [[float(row[name] or "nan") for name in CASES[kind].columns] for row in csv.DictReader(file)]
        )


def numbers_of(kind, study, run):
    """Return the same numbers as the run's results hold them."""
    results = [study.runs.result(run, item) for item in study.runs.get(run).items]
    if kind == "clicks":
        return np.concatenate([result.clustering.mean for result in results])
    (result,) = results
    if kind == "masks":
        (fusion,) = result.fusions
        values = np.zeros(fusion.frame, dtype=np.float32)
        there = tuple(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))
        values[there] = fusion.probability[0]
        return values
    return result.fusion.posterior if kind == "labels" else result.entry[:, None]


def alike(kind, actual, expected):
    if actual.shape != expected.shape:
        return False
    return np.allclose(actual, expected, rtol=1e-5, atol=1e-7, equal_nan=True)


def export(window, qtbot, monkeypatch, title, path, titles=None):
    """Export by the window's own action; the file's dialog answers by itself."""
    requests = [] if titles is None else titles

    def answer(_parent, words, *_):
        requests.append(words)
        return str(path), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    next(action for action in window.menus.export_menu.actions() if action.text() == title).trigger()
    qtbot.waitUntil(lambda: str(path) in window.status.message, timeout=LONG)
    idle(window, qtbot)


@pytest.mark.parametrize("kind", CASES)
def test_the_run_on_screen_is_exported_and_named(
    kind, window, qtbot, tmp_path, originals, monkeypatch, capsys
):
    case = CASES[kind]
    path = make_study(kind, tmp_path / "study", originals)
    by_window, by_command, other, page = (
        tmp_path / name for name in (f"w{case.suffix}", f"c{case.suffix}", f"o{case.suffix}", "report.html")
    )
    open_study(window, qtbot, path)
    window.show_workspace(kind)
    idle(window, qtbot)
    assert window.workspace.core.session.chosen_run is None
    window.workspace.fuse_panel.runs.chosen.emit(1)  # the older of the two
    idle(window, qtbot)
    titles = []
    export(window, qtbot, monkeypatch, case.title, by_window, titles)
    assert f"of run 1 ({case.first}, " in titles[0]
    assert f"of run 1 ({case.first}, " in window.status.message
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(page), ""))
    window.files.write_report()
    if kind == "labels":
        qtbot.waitUntil(lambda: window.findChild(ReportDialog) is not None, timeout=LONG)
        dialog = window.findChild(ReportDialog)
        dialog.findChild(QCheckBox).setChecked(True)
        dialog.accept()
    qtbot.waitUntil(lambda: "Report of run 1" in window.status.message, timeout=LONG)
    text = Page(page.read_text(encoding="utf-8")).text
    assert f"run 1 ({case.first}, " in text
    assert ("Accuracy against votes" in text) == (kind == "labels")
    window.document.close()
    idle(window, qtbot)

    call("export", path, "--what", case.what, "--kind", kind, "-o", by_command)
    assert "of run 1 (" in capsys.readouterr().err
    call("export", path, "--what", case.what, "--run", 2, "-o", other)
    assert "of run 2 (" in capsys.readouterr().err
    if kind == "labels":  # the sentence is the same for all kinds
        call("report", path, "--run", 2, "-o", tmp_path / "second.html")
        assert "Report of run 2 (" in capsys.readouterr().err
    with Study.open(path) as study:
        wanted, unwanted = (numbers_of(kind, study, run) for run in (1, 2))
    assert not alike(kind, wanted, unwanted)
    assert alike(kind, numbers_in(kind, by_window), wanted)
    assert alike(kind, numbers_in(kind, by_command), wanted)
    assert alike(kind, numbers_in(kind, other), unwanted)
    for file, run in ((by_window, 1), (by_command, 1), (other, 2)):
        record = json.loads((tmp_path / f"{file.name.split('.')[0]}.run.json").read_text(encoding="utf-8"))
        assert [run["run"] for run in record["runs"]] == [run]
        assert record["runs"][0]["algorithm"].startswith(case.algorithms[run - 1])
        assert record["files"] == [file.name]

    open_study(window, qtbot, path)  # the run shown is kept
    window.show_workspace(kind)
    idle(window, qtbot)
    assert window.workspace.core.session.chosen_run == 1


def test_a_missing_run_is_refused_with_a_list_of_runs(tmp_path, originals, capsys):
    path = make_study("clicks", tmp_path / "study", originals)
    capsys.readouterr()
    for command in ("export", "report"):
        out = tmp_path / "out.html"
        what = ["--what", "detections"] if command == "export" else []
        assert main([command, str(path), *what, "--run", "9", "-o", str(out)]) == 1
        err = capsys.readouterr().err
        assert "has no run number 9" in err
        assert "run 1 (OEM + DEM, " in err
        assert "run 2 (hierarchical + DEM, " in err
        assert not out.exists()


def decide(kind, study, run):
    """Decide on the first subject of a run's first item; gives the item."""
    item = study.runs.get(run).items[0]
    result = study.runs.result(run, item)
    settled = None
    if kind == "clicks":
        (x, y), verb = result.clustering.mean[0], "reject"
        subject = SpotSubject(x=float(x), y=float(y), number=1)
    elif kind == "masks":
        verb, fusion = "paint", result.fusions[0]
        settled = Settled((0, 0, 0), np.ones((2, 3, 3), dtype=np.int8))  # where no mask was drawn
        assert not fusion.mask[0].any(axis=(1, 2))[0]
        subject = RegionSubject(structure=fusion.structures[0], origin=(0, 0, 0), shape=(2, 3, 3))
    else:
        fusion, verb = result.fusion, "label"
        at = int(np.argmax(fusion.posterior.max(axis=1)))
        wrong = fusion.classes[1 - int(np.argmax(fusion.posterior[at]))]
        subject = TaskSubject(task=study.vote_set(item).tasks[at], label=wrong)
    study.record(Decision(verb=verb, item=item, subject=subject, settled=settled, run=run))
    return item


@pytest.mark.parametrize("kind", ["clicks", "masks", "labels"])
def test_a_decision_undone_after_a_fusion_is_not_exported(
    kind, window, qtbot, tmp_path, originals, monkeypatch, capsys
):
    case = CASES[kind]
    path = make_study(kind, tmp_path / "study", originals)
    before = tmp_path / f"before{case.suffix}"
    call("export", path, "--what", case.what, "-o", before)
    with Study.open(path) as study:
        decide(kind, study, 2)
    call("run", path, case.algorithms[1], "--kind", kind)
    second_path = tmp_path / f"held{case.suffix}"
    call("export", path, "--what", case.what, "-o", second_path)
    capsys.readouterr()
    assert not alike(kind, numbers_in(kind, second_path), numbers_in(kind, before)) or kind == "clicks"

    open_study(window, qtbot, path)
    window.show_workspace(kind)
    idle(window, qtbot)
    assert [run.id for run in window.document.contents.runs] == [1, 2, 3]
    window.document.undo()
    qtbot.waitUntil(lambda: "used decisions that you have undone" in window.status.message, timeout=LONG)
    assert "run 2 is shown" in window.status.message
    idle(window, qtbot)
    after = tmp_path / f"after{case.suffix}"
    questions = []

    def agree():
        box = window.findChild(QMessageBox)
        if box is not None and not questions:
            questions.append(box.informativeText())
            next(
                button for button in box.findChildren(QPushButton) if button.text() == "Export anyway"
            ).click()
        return bool(questions)

    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(after), ""))
    next(action for action in window.menus.export_menu.actions() if action.text() == case.title).trigger()
    qtbot.waitUntil(agree, timeout=LONG)
    qtbot.waitUntil(lambda: str(after) in window.status.message, timeout=LONG)
    idle(window, qtbot)
    assert "Run 3 used decisions that were undone since" in questions[0]
    assert after.read_bytes() == before.read_bytes() or alike(
        kind, numbers_in(kind, after), numbers_in(kind, before)
    )
    window.document.redo()
    idle(window, qtbot)
    window.document.undo()
    idle(window, qtbot)
    window.document.close()
    idle(window, qtbot)

    command = tmp_path / f"command{case.suffix}"
    call("export", path, "--what", case.what, "-o", command)
    warned = capsys.readouterr().err.splitlines()
    assert warned[0].startswith("note: Run 3 used decisions that were undone since")
    assert "of run 2 (" in warned[1] or kind == "clicks"
    assert alike(kind, numbers_in(kind, command), numbers_in(kind, before))
    assert json.loads((tmp_path / "command.run.json").read_text(encoding="utf-8"))["is_outdated"]


def test_a_run_with_an_undone_decision_is_refused_without_another_run(tmp_path, originals, capsys):
    path = make_study("masks", tmp_path / "study", originals)
    with Study.open(path) as study:
        decide("masks", study, 2)
    call("run", path, "majority")
    with Study.open(path) as study:
        study.record(Decision(verb="undo", undoes=1))
        for run in (1, 2):
            study.runs.delete(run)
    capsys.readouterr()
    out = tmp_path / "c.nii.gz"
    assert main(["export", str(path), "--what", "consensus", "-o", str(out)]) == 1
    assert "Run 3 used decisions that were undone since" in capsys.readouterr().err
    assert not out.exists()
    assert main(["report", str(path), "-o", str(tmp_path / "r.html")]) == 1
    assert "Run 3 used decisions that were undone since" in capsys.readouterr().err


def test_the_export_warns_of_later_annotations_and_exclusions(tmp_path, originals, capsys):
    path = make_study("labels", tmp_path / "study", originals)
    more = shutil.copy(tmp_path / "study" / "votes.csv", tmp_path / "study" / "more.csv")
    rows = more.read_text(encoding="utf-8").splitlines()
    more.write_text("\n".join([rows[0], f"late,{rows[1].split(',')[1]},cat"]) + "\n", encoding="utf-8")
    call("import", path, more)
    with Study.open(path) as study:
        study.record(Decision(verb="exclude", annotators=(study.annotators()[0],), reason="guesses"))
    capsys.readouterr()
    call("export", path, "--what", "labels", "-o", tmp_path / "l.csv")
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("note: Run 2 is outdated:")
    assert "annotations after it" in first
    assert "excluded or down-weighted now" in first


def test_maps_and_outlines_name_their_run(tmp_path, originals):
    path = make_study("masks", tmp_path / "study", originals)
    call("export", path, "--what", "consensus", "--run", 1, "-o", tmp_path / "c.nii.gz")
    assert b"run 1 (gaussian" in nibabel.load(tmp_path / "c.nii.gz").header["descrip"].item()
    call("export", path, "--what", "consensus", "--run", 1, "-o", tmp_path / "c.seg.nrrd")
    assert b"run 1 (gaussian" in (tmp_path / "c.seg.nrrd").read_bytes()[:4000]
    clicks = make_study("clicks", tmp_path / "clicked", originals)
    for form, name in (("geojson", "d"), ("coco", "d.json")):
        out = tmp_path / name
        call("export", clicks, "--what", "detections", "--run", 1, "--format", form, "-o", out)
        files = out.glob("*.geojson") if form == "geojson" else [out]
        for file in files:
            assert "run 1 (oem" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["clicks", "labels", "pairs"])
def test_f5_repeats_the_run_shown_with_its_settings(tmp_path, originals, window, qtbot, kind):
    study = make_study(kind, tmp_path / kind, originals)
    open_study(window, qtbot, study)
    runs = window.workspace.runs
    for shown in (2, 1):  # the latest is shown first
        if shown == 1:
            runs.choose(1)
            idle(window, qtbot)
        with qtbot.waitSignal(runs.fusing.stored, timeout=LONG):
            window.workspace.fuse_again()
        idle(window, qtbot)
        entries = {run.id: run for run in window.document.contents.runs}
        latest = entries[max(entries)]
        assert (latest.algorithm, latest.settings) == (entries[shown].algorithm, entries[shown].settings)
    if kind == "labels":  # settings of the panel override those of the run shown
        runs.choose(2)
        idle(window, qtbot)
        assert window.workspace.fuse_panel.algorithm.algorithm == "ibcc"
        window.workspace.fuse_panel.algorithm.choose("majority")
        runs.choose(3)
        idle(window, qtbot)
        assert entries[3].algorithm == "ibcc"
        with qtbot.waitSignal(runs.fusing.stored, timeout=LONG):
            window.workspace.fuse_again()
        idle(window, qtbot)
        assert window.document.contents.runs[-1].algorithm == "majority"


def test_notices_of_a_run_are_shown_in_its_workspace_alone(window, qtbot, tmp_path):
    apart = [(who, f"other {left}", f"other {right}", side) for who, left, right, side in answers()]
    pairs = write(tmp_path / "pairs.csv", HEADER, [*answers(), *apart])
    path = tmp_path / "two.rscope"
    assert main(["import", str(path), str(write_votes(tmp_path / "votes.csv")), str(pairs)]) == 0
    assert main(["run", str(path), "iss"]) == 0
    open_study(window, qtbot, path)
    window.show_workspace("pairs")
    idle(window, qtbot)
    assert "2 groups" in window.status.message
    window.show_workspace("labels")
    idle(window, qtbot)
    assert "groups" not in window.status.message
    window.show_workspace("pairs")
    idle(window, qtbot)
    assert "2 groups" in window.status.message
