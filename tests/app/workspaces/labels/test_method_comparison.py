"""Decision rates over time: what is drawn of a crowd's labels, and when."""

import numpy as np
import pytest

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.data import OPEN
from raterscope.algorithms.progress import silent
from raterscope.app.kinds.labels.fusion_tables import decisions_of, follow_class_decisions
from raterscope.app.workspaces.labels.method_comparison import compute_rates, decision_view
from tests.app.driving import idle

PEOPLE = 12


def crowd_of(times):
    rng = np.random.default_rng(1)
    truth = np.arange(12) % 2
    step, annotator, task = np.nonzero(np.ones((times, PEOPLE, 12)))
    label = np.where(rng.random(len(task)) < 0.8, truth[task], 1 - truth[task])
    labels = Labels(
        task, annotator, label, tuple(f"t{n}" for n in range(12)), tuple(f"a{n}" for n in range(PEOPLE)),
        ("no", "yes"), ("no", "yes"), time=step[::-1].astype(float) if times > 1 else None,
    )  # fmt: skip
    return labels, truth.astype(np.int8)


def test_votes_become_decisions_in_the_order_of_time():
    labels = Labels(
        [0, 1, 0], [0, 0, 1], [0, 2, 1], ("a", "b"), ("Ada", "Bo"), ("x", "unsure", "y"), ("x", "y"),
        meaning=np.array([0, OPEN, 1], np.int16), time=np.array([2.0, 1.0, 0.0]),
    )  # fmt: skip
    result = decisions_of(labels, 1)
    assert result.cluster.tolist() == [1, 0]
    assert result.annotator.tolist() == [0, 0]
    assert result.yes.tolist() == [True, False]


def test_one_annotators_votes_have_no_plot_but_an_explanation():
    labels = Labels([0, 1, 2], [0, 0, 0], [0, 1, 0], ("a", "b", "c"), ("Ada",), ("x", "y"), ("x", "y"))
    assert "more than 10 annotators" in compute_rates(labels, 1, np.full(3, OPEN, np.int16), silent)


@pytest.mark.parametrize(("times", "lines"), [(4, 3), (1, 2)])
def test_every_kind_has_a_line_for_each_method(times, lines):
    labels, truth = crowd_of(times)
    view = decision_view(*follow_class_decisions(labels, 1, truth), labels.classes, 1, labels.annotators)
    assert [kind.key for kind in view.kinds][-1] == "roc"
    for kind in view.kinds:
        drawn = view.lines(kind.key, -1)
        measured = kind.key in ("wrong", "found", "precision", "roc")
        assert len(drawn) == lines + 2 * measured, kind.key
        for line in drawn:
            assert len(line.across) == len(line.down)
    evaluation = view.lines("sensitivity", 3)
    assert (evaluation[0].low <= evaluation[0].down).all()
    assert (evaluation[0].down <= evaluation[0].high).all()
    unknown = decision_view(
        *follow_class_decisions(labels, 1, np.full(12, -1, np.int8)), labels.classes, 1, labels.annotators
    )
    assert [kind.key for kind in unknown.kinds] == ["sensitivity", "specificity", "prevalence"]


def test_the_page_is_filled_when_it_comes_in_sight(opened, qtbot):
    workspace = opened.workspace
    plot = workspace.decisions
    assert not plot.filled
    workspace.left_tabs.setCurrentWidget(plot)
    qtbot.waitUntil(lambda: plot.filled)
    first = plot.table()
    assert "recursive EM" in {row[0] for row in first.rows()}
    before = plot.of.currentIndex()
    plot.of.setCurrentIndex(0 if before else 1)
    qtbot.waitUntil(lambda: plot.filled and plot.of.currentIndex() != before)
    idle(opened, qtbot)
