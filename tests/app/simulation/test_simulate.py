"""Simulated set-ups: written files are read back, are whole or not there, and replace no other file."""

import json

import numpy as np
import pytest

from raterscope.algorithms.pairs.catalogue import PairPlan, fuse
from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.simulation.setups import SETUPS, find_setup
from raterscope.app.simulation.simulate import RECORD, simulate, study_in
from raterscope.app.study import Study
from raterscope.app.study.labels import labels_of
from raterscope.app.study.pairs import pairs_of
from tests.app.commands import run
from tests.app.tables import rows_of

SMALL = {
    "overlapping": {"annotators": 11},
    "separated": {"annotators": 10, "components": 5},
    "voting": {},
    "streams": {"times": 3},
    "prostate": {"slices": 24, "rows": 64, "columns": 64, "thickness": 3.0, "pixel": 2.0, "raters": 3},
    "crowd": {"tasks": 60, "annotators": 40},
    "bias": {"good": 6, "biased": 3, "items": 6},
    "texts": {"texts": 50},
    "species": {"tasks": 60, "annotators": 20},
    "large-crowd": {"annotators": 200},
    "copiers": {"tasks": 40, "annotators": 8},
    "grades": {"tasks": 60},
    "questions": {"tasks": 40},
    "judges": {"judges": 6, "always_a": 2, "prompts": 12},
}


def simulated(name, folder, **settings):
    setup = find_setup(name)
    return setup, simulate(setup, setup.settings(**(SMALL[name] | settings)), folder)


@pytest.mark.parametrize("name", SETUPS)
def test_what_is_simulated_becomes_a_study_with_its_truth(name, tmp_path):
    setup, drawn = simulated(name, tmp_path / "x")
    assert {path.name for path in (*drawn.data, *drawn.truth, *drawn.other_truth)} < {
        path.name for path in (tmp_path / "x").iterdir()
    }
    assert json.loads((tmp_path / "x" / RECORD).read_text())["setup"] == name
    with Study.open(study_in(setup, drawn)) as study:
        items = study.items()[setup.kind]
        assert len(items) == (3 if name == "questions" else 1)
        truths = {
            "clicks": lambda: len(study.truth(items[0].id)),
            "labels": lambda: int((study.vote_set(items[0].id).truth >= 0).sum()),
        }
        if setup.kind in truths:
            assert truths[setup.kind]() * len(items) == len(rows_of(drawn.truth[0]))


def test_judges_see_both_orders_and_those_who_always_choose_a_are_flagged(tmp_path):
    setup, drawn = simulated("judges", tmp_path / "x", judges=10, prompts=30)
    rows = rows_of(drawn.data[0])
    assert len(rows) == 2 * 10 * 30
    assert {row["winner"] for row in rows} == {"model_a", "model_b", "tie"}
    with Study.open(study_in(setup, drawn)) as study:
        pairs = pairs_of(study, study.pair_questions()[0].id)
    flagged = fuse(pairs, PairPlan()).flagged
    always = {row["annotator"] for row in rows_of(drawn.other_truth[0]) if row["always_a"] == "yes"}
    assert {pairs.annotators[at] for at in np.flatnonzero(flagged)} == always


@pytest.mark.parametrize("name", ["overlapping", "streams", "bias"])
def test_the_same_seed_gives_the_same_files_and_another_seed_others(name, tmp_path):
    texts = [
        simulated(name, tmp_path / str(number), seed=seed)[1].data[0].read_bytes()
        for number, seed in enumerate((3, 3, 4))
    ]
    assert texts[0] == texts[1] != texts[2]


def test_the_defaults_are_the_papers():
    settings = {name: setup.settings().as_dict() for name, setup in SETUPS.items()}
    assert [settings["overlapping"][item] for item in ("fewest", "most")] == [16, 24]
    assert [settings["separated"][item] for item in ("components", "fewest", "most", "side")] == [
        15,
        13,
        17,
        1e3,
    ]
    assert [settings["voting"][item] for item in ("annotators", "clusters", "sensitivity")] == [11, 20, 0.75]
    assert [settings["prostate"][item] for item in ("raters", "slices", "rows", "columns")] == [
        7,
        160,
        500,
        500,
    ]
    assert [settings["crowd"][item] for item in ("tasks", "annotators")] == [963, 1705]
    assert [settings["bias"][item] for item in ("items", "good", "biased")] == [16, 100, 50]


def test_clicks_lie_in_the_image_in_pixels(tmp_path):
    _, drawn = simulated("overlapping", tmp_path / "x")
    rows = rows_of(drawn.data[0])
    assert {(row["width"], row["height"]) for row in rows} == {("600", "1000")}
    positions = np.array([(float(row["x"]), float(row["y"])) for row in rows])
    assert (positions >= 0).all()
    assert (positions <= (600, 1000)).all()
    counts = dict.fromkeys({row["annotator"] for row in rows}, 0)
    for row in rows:
        counts[row["annotator"]] += 1
    assert all(16 <= count <= 24 for count in counts.values())
    assert len(rows_of(drawn.other_truth[2])) == len(rows)


def test_annotators_of_a_stream_decide_at_every_step_or_join_one_by_one(tmp_path):
    for scenario, annotators, steps, each in (("second", 7, 3, 7), ("joining-first", 50, 50, 1)):
        _, drawn = simulated("streams", tmp_path / scenario, scenario=scenario)
        rows = rows_of(drawn.data[0])
        assert len({row["annotator"] for row in rows}) == annotators
        assert len({row["time"] for row in rows}) == steps
        assert len({row["annotator"] for row in rows if row["time"] == "2"}) == each


def test_scores_of_a_crowd_stand_for_the_classes_of_its_truth(tmp_path):
    setup, drawn = simulated("crowd", tmp_path / "x")
    with Study.open(study_in(setup, drawn)) as study:
        labels = labels_of(study, study.questions()[0].id)
    assert (labels.outputs, labels.meaning.tolist()) == (("-1", "1", "3"), [0, 1, 1])
    assert labels.classes == ("not supernova", "supernova")


def test_nothing_is_overwritten_and_nothing_is_left_of_what_was_cancelled(tmp_path):
    kept = tmp_path / "full" / "notes.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(InputError, match=r"full: is not empty; expected a new or empty folder"):
        simulated("voting", kept.parent)
    with pytest.raises(InputError, match=r"notes.txt: is a file"):
        simulated("voting", kept)
    assert kept.read_text() == "mine"

    def cancel(fraction, words, **_):
        if fraction > 0.2:
            raise Cancelled

    setup = find_setup("overlapping")
    with pytest.raises(Cancelled):
        simulate(setup, setup.settings(), tmp_path / "x", cancel)
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        (
            "bias",
            {"items": 2000, "good": 100_000},
            "bias would draw .* comparisons; expected at most 5,000,000",
        ),
        ("overlapping", {"fewest": 30}, "fewest is 30 and most is 24"),
        ("separated", {"components": 900}, "900 centres do not fit"),
        ("prostate", {"wider": 4}, "wider is 4; expected at most the 3 raters"),
        ("bias", {"good": 0, "biased": 0}, "at least one annotator"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_sentence(name, settings, words, tmp_path):
    with pytest.raises(InputError, match=words):
        simulated(name, tmp_path / "x", **settings)
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_study_and_names_the_next_command(tmp_path, capsys):
    folder = tmp_path / "x"
    assert run("simulate", "voting", "--annotators", "5", "--seed", "9", "--study", "-o", folder) == 0
    out = capsys.readouterr().out
    assert f"raterscope fuse labels {folder / 'labels.csv'} --truth {folder / 'truth.csv'}" in out
    assert out.splitlines()[-1] == f"raterscope {folder / 'voting.rscope'}"
    assert len({row["annotator"] for row in rows_of(folder / "labels.csv")}) == 5
    assert run("simulate", "voting", "-o", folder) == 1
    assert "is not empty" in capsys.readouterr().err
    assert run("simulate", "voting", "--clusters", "0", "-o", tmp_path / "y") == 1
    assert "argument --clusters: 0; expected 1 to 100,000" in capsys.readouterr().err
