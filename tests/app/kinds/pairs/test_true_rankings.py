"""A ground-truth ranking: read from a table, kept with the comparisons, compared in file and report."""

import json

import numpy as np
import pytest

from raterscope.algorithms.pairs.knockoffs import sort_draws
from raterscope.algorithms.progress import silent
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats.pairs.table import holds_ranking, read_ranking
from raterscope.app.report import write_report
from raterscope.app.study import Study
from raterscope.app.study.pairs import true_ranking_of
from raterscope.app.workspaces.pairs.scene import analyse, cut_at, read_scene
from raterscope.app.workspaces.pairs.screen import _read, rows_of
from raterscope.app.workspaces.pairs.view import status
from tests.app.kinds.pairs.made import HEADER, ITEMS, answers
from tests.app.tables import write

RANKS = [(item, str(rank)) for rank, item in enumerate(sorted(ITEMS), start=1)]


@pytest.fixture
def files(tmp_path):
    return write(tmp_path / "pairs.csv", HEADER, answers()), write(
        tmp_path / "truth.csv", ("item", "rank"), RANKS
    )


def test_a_ranking_is_read_with_its_groups(tmp_path):
    path = write(tmp_path / "r.csv", ("Image", "True rank", "group"), [("a", "1", "x"), ("b", "2", "y")])
    assert holds_ranking(path)
    ranking = read_ranking(path)
    assert ranking.items == ("a", "b")
    assert ranking.place.tolist() == [1, 2]
    assert ranking.group.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("header", "rows", "words"),
    [
        (("item", "place"), [("a", "1")], "no column rank"),
        (("item", "rank"), [("a", "first")], '"first" is not a rank'),
        (("item", "rank"), [("a", "1"), ("a", "2")], "ranked twice"),
    ],
)
def test_what_is_no_ranking_is_refused_with_the_reason(tmp_path, header, rows, words):
    with pytest.raises(InputError, match=words):
        read_ranking(write(tmp_path / "r.csv", header, rows))


def test_who_gave_answers_gives_no_ranking(files, tmp_path):
    assert not holds_ranking(files[0])
    assert not holds_ranking(write(tmp_path / "l.csv", ("annotator", "item", "rank"), [("a", "b", "1")]))


def test_the_study_keeps_it_for_report_and_window(files, tmp_path):
    path = tmp_path / "s.rscope"
    assert main(["import", str(path), *map(str, files)]) == 0
    assert main(["run", str(path), "iss"]) == 0
    with Study.open(path) as study:
        (question,) = study.pair_questions()
        items = study.comparison_set(question.id).items
        truth = true_ranking_of(study, question.id, items)
        by_name = dict(RANKS)
        np.testing.assert_array_equal(truth.place, [float(by_name[name]) for name in items])
        report = write_report(study, tmp_path / "r.html").read_text(encoding="utf-8")
        assert "Agreement with the ground-truth ranking" in report
        (outcome,) = _read(question.id, [1], study, lambda *_: None)
        assert np.isfinite(outcome.tau).all()
        scene = read_scene(question.id, None, study, silent)
        assert "Kendall's tau" in status(
            scene,
            analyse(scene, silent),
            cut_at(scene, sort_draws(scene.fusion.statistic), scene.fusion.rate),
            scene.fusion.flagged,
        )
        run, test = rows_of([outcome], 1)
        assert len(run.figures) == len(test.figures)


def test_fuse_compares_with_it(files, tmp_path, capsys):
    assert main(["fuse", "pairs", str(files[0]), "--truth", str(files[1]), "-o", str(tmp_path / "o")]) == 0
    assert "Kendall's tau with the ground-truth ranking" in capsys.readouterr().out
    record = json.loads((tmp_path / "o" / "run.json").read_text(encoding="utf-8"))["ground_truth_ranking"]
    assert record["corrected"]["items"] == len(ITEMS)
    other_file = write(tmp_path / "other.csv", ("item", "rank"), [("x", "1"), ("y", "2")])
    assert main(["fuse", "pairs", str(files[0]), "--truth", str(other_file), "-o", str(tmp_path / "p")]) == 1
    assert "ranks no two items that were compared" in capsys.readouterr().err


def test_the_window_shows_no_t_test_where_it_is_not_defined(tmp_path):
    table = write(tmp_path / "left.csv", HEADER, [(*row[:3], "left") for row in answers()])
    path = tmp_path / "left.rscope"
    assert main(["import", str(path), str(table)]) == 0
    assert main(["run", str(path), "iss"]) == 0
    with Study.open(path) as study:
        (question,) = study.pair_questions()
        assert analyse(read_scene(question.id, None, study, silent), silent).test is None
