"""The papers' figures beside ours: every experiment measures what its rows show, goes on, and is written."""

import math
from dataclasses import replace

import pytest

from raterscope.algorithms.progress import Cancelled, silent
from raterscope.algorithms.simulation.label_crowds import scoring_crowd, simulate_labels
from raterscope.app.cli.options import PAPERS as NAMES
from raterscope.app.errors import InputError
from raterscope.app.papers import labels
from raterscope.app.papers.experiments import (
    Chart,
    Experiment,
    Paper,
    Row,
    check_folder,
    has_data,
    measure,
    read_results,
)
from raterscope.app.papers.page import PAPERS, contents_of, write_page
from tests.app.commands import run

EXPERIMENTS = [candidate for paper in PAPERS.values() for candidate in paper.experiments]


QUICK = ("clicks-figure-2", "pairs-table-1", "labels-figure-3", "thesis-figure-3-1", "masks-figures-6-7")
"""An experiment of each paper, of which one run takes a second."""


SLOW = (
    "clicks-figures-15-16",
    "clicks-figures-7-14",
    "labels-open-crowds",
    "masks-table-4",
    "masks-figures-9-11",
    "thesis-figures-5-4-5-6",
)
"""Experiments on open data of which one run takes longer."""


def counting(calls, **changes):
    """An experiment that measures the number of its run."""

    def measure(cell, run, data):
        calls.append((cell, run))
        return {"printed": float(run), "default": float(run) + 1 + 0.01 * (run % 2), "sometimes": math.nan}

    rows = (
        Row("first", "a", "printed", paper=1.0, default="default"),
        Row("second", "b", "printed", text="high", default="default"),
        Row("third", "b", "sometimes"),
    )
    experiment = Experiment(
        "one", "Table 1: counts", ("a", "b"), measure, rows, 4, 2, "Counted.", "raterscope"
    )
    return replace(experiment, **changes)


def paper_of(*experiments):
    return Paper("p", "A paper", "xu2016", experiments, (("Table 2", "nothing"),))


def rows_on(page):
    """The rows of the table of figures, as text."""
    (table,) = [
        block for block in page.sections[1].sections[0].blocks if getattr(block, "columns", ("x",))[0] == ""
    ]
    return [[cell.text for cell in row] for row in table.cells()]


def test_the_command_line_offers_the_papers_of_the_catalogue():
    assert tuple(PAPERS) == NAMES


def test_rows_belong_to_cells_and_names_are_unique():
    for experiment in EXPERIMENTS:
        assert {row.cell for row in experiment.rows} == set(experiment.cells), experiment.name
        assert experiment.quick <= experiment.runs, experiment.name
        assert len({row.label for row in experiment.rows}) == len(experiment.rows), experiment.name
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS)


@pytest.mark.parametrize("name", QUICK)
def test_a_first_run_of_a_paper_measures_what_its_rows_show(name, tmp_path, monkeypatch):
    monkeypatch.setattr(
        labels, "_crowd", lambda number, **_: simulate_labels(scoring_crowd(80, 60, fewest=30), number)
    )
    experiment = next(candidate for candidate in EXPERIMENTS if candidate.name == name)
    cell = experiment.cells[0]
    measures = experiment.measure(cell, 0, tmp_path)
    assert {name for row in experiment.rows if row.cell == cell for name in (row.printed, row.default)} <= {
        *measures, "",
    }  # fmt: skip
    assert measures == experiment.measure(cell, 0, tmp_path)
    assert {candidate.name.partition("-")[0] for candidate in EXPERIMENTS} == {
        candidate.partition("-")[0] for candidate in QUICK
    }


def test_open_data_measure_what_their_rows_show(real_data, tmp_path):
    for experiment in EXPERIMENTS:
        if experiment.needs and experiment.name not in SLOW:
            assert has_data(experiment, real_data)
            cell = experiment.cells[0]
            measures = experiment.measure(cell, 0, real_data)
            assert {row.printed for row in experiment.rows if row.cell == cell} <= set(measures)


def test_what_was_measured_is_not_measured_again(tmp_path):
    calls = []
    paper = paper_of(counting(calls))
    check_folder(tmp_path / "x")
    measure([paper], tmp_path / "x", silent)
    assert calls == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    measure([paper], tmp_path / "x", silent, full=True)
    assert calls[4:] == [("a", 2), ("a", 3), ("b", 2), ("b", 3)]
    results = read_results(paper.experiments[0], tmp_path / "x")
    assert [result["printed"] for result in results["b"]] == [0, 1, 2, 3]
    assert all(math.isnan(result["sometimes"]) for result in results["b"])


def test_an_interruption_loses_no_run(tmp_path):
    calls = []

    def stop(fraction, words, **_):
        if len(calls) == 3:
            raise Cancelled

    paper = paper_of(counting(calls))
    check_folder(tmp_path / "x")
    with pytest.raises(Cancelled):
        measure([paper], tmp_path / "x", stop)
    assert len(calls) == 3
    measure([paper], tmp_path / "x", silent)
    assert calls == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_damaged_figures_are_measured_again(tmp_path):
    calls = []
    paper = paper_of(counting(calls))
    check_folder(tmp_path / "x")
    measure([paper], tmp_path / "x", silent)
    for path, text in zip(sorted((tmp_path / "x" / "cells").iterdir()), ("{", '{"runs": 3}'), strict=True):
        path.write_text(text)
    measure([paper], tmp_path / "x", silent)
    assert len(calls) == 8


def test_the_page_shows_differences_gains_and_what_was_not_measured(tmp_path):
    paper = paper_of(counting([]), counting([], name="two", needs="clicks/nowhere"))
    check_folder(tmp_path / "x")
    measure([paper], tmp_path / "x", silent, full=True)
    page = contents_of([paper], tmp_path / "x")
    first, second, third = rows_on(page)
    # Runs 0, 1, 2, 3 have the mean 1.5 and the standard error 0.645; the default is 1.005 higher in each.
    assert first[1:5] == ["1.000", "1.500 ± 0.645", "+0.500 ± 0.645", "2.505 ± 0.647"]
    assert second[1:3] == ["high", "1.500 ± 0.645"]
    assert second[5] == "+1.005 ± 0.003"
    assert third[2] == "-"
    text = write_page([paper], tmp_path / "x").read_text()
    assert "it needs clicks/nowhere in the folder that --data names" in text
    assert "Table 2" in text


def test_charts_show_what_was_measured_alone(tmp_path):
    points = ((1.0, "a", "printed"), (2.0, "b", "sometimes"))
    chart = Chart("Curve", "runs", "share", (("one", points), ("two", ((1.0, "b", "sometimes"),))))
    paper = paper_of(counting([], charts=(chart,)))
    check_folder(tmp_path / "x")
    measure([paper], tmp_path / "x", silent)
    blocks = contents_of([paper], tmp_path / "x").sections[1].sections[0].blocks
    (gallery,) = (block for block in blocks if block.kind == "gallery")
    assert [swatch.text for swatch in gallery.legend] == ["one", "two"]
    assert [picture.title for picture in gallery.pictures] == ["Curve"]
    assert "data:image/png" in write_page([paper], tmp_path / "x").read_text()


def test_a_folder_of_other_files_is_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty; expected a new folder, or one of an earlier page"):
        check_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_command_writes_the_page_from_available_data(tmp_path, capsys):
    assert run("papers", "--page", "-o", tmp_path / "x") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "x" / "papers.html")
    assert run("papers", "--data", tmp_path / "none", "-o", tmp_path / "y") == 1
    assert "is not a folder" in capsys.readouterr().err
