"""The sample of pairs in the demo: its description, and the biased annotators."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from raterscope.app.importing import import_files
from raterscope.app.kinds.pairs.sample import (
    COMPARISONS,
    PICTURES,
    QUESTION,
    REPORT,
    STUDY,
    about,
    demonstrate,
    make_sample,
    simulate_crowd,
)
from raterscope.app.report import write_report
from raterscope.app.review import Decision
from raterscope.app.sample_files import Tools
from raterscope.app.study import Study
from raterscope.app.study.pairs import item_pictures, pairs_of


def nothing(*_, **__):
    """Watch nothing."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    results = folder / "results"
    results.mkdir()
    return folder, results, *demonstrate(folder, results, Tools(import_files, write_report), nothing)


def test_every_file_is_marked_as_simulated(shown):
    folder, _, study, words, _ = shown
    assert str(study) in words[0]
    assert "simulated" in words[0]
    assert QUESTION.startswith("Simulated")  # where there is little room, the end is cut off
    for name in (COMPARISONS, PICTURES):
        assert name.startswith("simulated_")
        assert name in about()
    for path in (folder / PICTURES).iterdir():
        with Image.open(path) as picture:
            assert "simulated" in picture.text["Description"]


def test_the_study_holds_the_crowd_that_was_simulated_and_a_picture_of_every_item(shown):
    crowd = simulate_crowd().pairs
    with Study.open(shown[2]) as study:
        (question,) = study.pair_questions()
        pairs = pairs_of(study, question.id)
        assert set(item_pictures(study, question.id)) == set(range(len(crowd.items)))
    rows = [
        sorted(
            (crowd_pairs.annotators[annotator], crowd_pairs.items[first], crowd_pairs.items[second], choice)
            for annotator, first, second, choice in zip(
                crowd_pairs.annotator,
                crowd_pairs.left,
                crowd_pairs.right,
                crowd_pairs.choice.tolist(),
                strict=True,
            )
        )
        for crowd_pairs in (pairs, crowd)
    ]
    assert rows[0] == rows[1]
    assert np.ptp(pairs.time) == pytest.approx(np.ptp(crowd.time), abs=0.2)


def test_most_who_prefer_a_side_are_found_and_the_ranking_moves(shown):
    _, results, _, _, (outcome,) = shown
    crowd, fusion = simulate_crowd(), outcome.fusion
    biased = {name for name, flag in zip(crowd.pairs.annotators, crowd.biased, strict=True) if flag}
    with (results / "pairs" / "annotators.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(crowd.pairs.annotators)
    with Study.open(shown[2]) as study:
        (question,) = study.pair_questions()
        names = pairs_of(study, question.id).annotators
    flagged = {name for name, flag in zip(names, fusion.flagged, strict=True) if flag}
    assert len(flagged & biased) > 0.8 * len(biased)
    assert len(flagged - biased) < 0.2 * len(flagged)
    assert (np.argsort(fusion.score) != np.argsort(fusion.corrected)).any()


def test_results_and_report_show_the_question(shown):
    _, results, *_ = shown
    record = json.loads((results / "pairs" / "run.json").read_text(encoding="utf-8"))
    assert record["inputs"] == [{"file": STUDY, "question": QUESTION, "simulated": True}]
    assert QUESTION in (results / REPORT).read_text(encoding="utf-8")


def test_runs_are_kept_once_and_decisions_stay(shown):
    folder, results, path, *_ = shown
    with Study.open(path) as study:
        name = study.annotators()[0]
        study.record(Decision(verb="exclude", annotators=(name,)))
        study.record(Decision(verb="include", annotators=(name,)))
    demonstrate(folder, results, Tools(import_files, lambda *_: results), nothing)
    assert make_sample(folder) == path
    with Study.open(path) as study:
        assert len(study.runs.all()) == 1
        assert len(study.decisions()) == 2
