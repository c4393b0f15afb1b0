"""Every kind of figure, filled as the program fills it."""

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from raterscope.algorithms.clicks.crowd_size import CrowdSizeCurve
from raterscope.algorithms.clicks.stopping import StoppingSettings
from raterscope.figures.courses import CourseLine
from raterscope.figures.evaluation import BoxView, CalibrationLine, Curve, box_chart
from raterscope.widgets.figures.agreement_plots import (
    AgreementMatrix,
    AnnotatorCourse,
    CoursePlot,
    CourseView,
    Dendrogram,
)
from raterscope.widgets.figures.bias_path import BiasPath
from raterscope.widgets.figures.chart_figure import ChartPanel
from raterscope.widgets.figures.community_flow import CommunityFlow
from raterscope.widgets.figures.community_plots import CommunityTriangles, ParticipationBars
from raterscope.widgets.figures.confusion_wall import ConfusionWall
from raterscope.widgets.figures.count_plots import CountsPlot, StreamCurves
from raterscope.widgets.figures.drift_plots import RowLines, TernaryPlot
from raterscope.widgets.figures.evaluation_plots import (
    CalibrationPlot,
    ConvergencePlot,
    CrowdSizePlot,
    CurvesPlot,
    DecisionKind,
    DecisionPlot,
    DecisionView,
    ReliabilityPlot,
)
from raterscope.widgets.figures.position_bias import BiasOverTime, KnockoffBars, OverTimeView, SideCounts
from raterscope.widgets.figures.ranking_shift import RankingShift
from raterscope.widgets.figures.similarity_matrix import SimilarityMatrix
from raterscope.widgets.panels.drift_panel import ConfusionPanel
from raterscope.widgets.panels.rater_panels import LocalWeight
from raterscope.widgets.volume.volume_controls import DisputeStrip
from tests.widgets.figures import (
    test_bias_path,
    test_community_flow,
    test_community_plots,
    test_confusion_matrix,
    test_confusion_wall,
    test_count_plots,
    test_knockoff_bars,
    test_position_bias,
    test_ranking_shift,
)
from tests.widgets.panels import test_drift_panel

__all__ = ["FIGURES"]

NAMES = ("a <b> & co", "Bert", "Cora", "Dora")


def objective():
    plot = ConvergencePlot()
    plot.set_trace(np.array([-9.0, -4.0, -3.5, -3.6]), np.array([9, 8, 8, 7]),
                   np.array([False, False, False, True]), 2, True)  # fmt: skip
    return plot


def reliability():
    plot = ReliabilityPlot()
    plot.set_annotators(np.array([12, 40, 7, 3]), np.array([0.9, 0.25, 0.5, np.nan]), NAMES, excluded={1})
    return plot


def curves():
    plot = CurvesPlot()
    rate = np.array([0, 0.1, 0.3, 1.0])
    plot.set_curves([Curve("OEM", rate, np.sqrt(rate), np.sqrt(rate), 1 - rate / 2, 0.8),
                     Curve("vote", rate, rate, rate, 1 - rate / 3, 0.5)])  # fmt: skip
    return plot


def calibration():
    plot = CalibrationPlot()
    plot.set_lines([CalibrationLine("OEM", np.array([0.1, np.nan, 0.8]), np.array([0.2, np.nan, 0.9]),
                                    np.array([5, 0, 20]), 0.1)])  # fmt: skip
    return plot


def counts():
    plot = CountsPlot()
    plot.show_counts(test_count_plots.view())
    return plot


def course():
    plot = StreamCurves()
    plot.set_history(test_count_plots.history(), StoppingSettings())
    return plot


def agreement():
    figure = AgreementMatrix()
    values = np.full((4, 4), 0.9)
    values[0, 1] = values[1, 0] = np.nan
    figure.set_matrix(NAMES, range(4), values)
    return figure


def tree():
    figure = Dendrogram()
    far = np.array([[0, 1, 4, 9], [1, 0, 3, 8], [4, 3, 0, 7], [9, 8, 7, 0]], dtype=float)
    figure.set_tree(linkage(squareform(far), "complete"), NAMES, range(4), unit="mm")
    return figure


def lines():
    figure = RowLines()
    figure.show_drift(test_drift_panel.view())
    return figure


def triangle():
    figure = TernaryPlot()
    figure.show_drift(test_drift_panel.view())
    return figure


def flow():
    figure = CommunityFlow()
    figure.show_flow(test_community_flow.view())
    return figure


def matrix():
    figure = ConfusionPanel()
    figure.show_matrix(test_confusion_matrix.view())
    return figure


def wall():
    figure = ConfusionWall()
    figure.set_wall(test_confusion_wall.wall_of())
    return figure


def knockoffs():
    figure = KnockoffBars()
    figure.show_statistics(test_knockoff_bars.view())
    return figure


def shares():
    figure = ParticipationBars()
    figure.show_participation(
        np.array([[0.75, 0.25], [0.5, 0.5], [0.1, 0.9]]), NAMES[:3], ["careful", "hasty"]
    )
    return figure


def ranking():
    figure = RankingShift()
    before = np.array([3.0, 2.0, 1.0, 0.5])
    figure.show_ranking(test_ranking_shift.view(before, np.array([3.0, 1.0, 2.0, 0.4])))
    return figure


def alike():
    figure = SimilarityMatrix()
    values = np.array([[1, 0.8, 0.1], [0.8, 1, 0.2], [0.1, 0.2, 1]])
    figure.show_similarity(values, np.array([0, 2, 3]), NAMES[:3])
    return figure


def network():
    figure = SimilarityMatrix()
    figure.show_graph(np.array([[0.0, 0], [1, 0], [0, 1]]), np.array([[0, 1], [1, 2]]), np.array([0.9, 0.4]),
                      NAMES[:3], np.array([0, 0, 1]))  # fmt: skip
    return figure


def path():
    figure = BiasPath()
    figure.show_path(test_bias_path.view())
    return figure


def sides():
    figure = SideCounts()
    figure.show_sides(test_position_bias.view())
    return figure


def course_of_bias():
    figure = BiasOverTime()
    bias = np.array([0.1, 0.4, 0.2])
    when = ("1-50", "51-100", "101-150")
    figure.show_course(OverTimeView(np.arange(3.0), bias, bias - 0.1, bias + 0.1, when, 150))
    return figure


def strip():
    figure = DisputeStrip()
    figure.slice_chosen.connect(figure.set_slice)  # as the view of the volume does
    figure.set_dispute(np.array([0.0, 0.5, 2.0, 0.0]), upward=True)
    return figure


def weight():
    panel = LocalWeight()
    panel.show_local("Local weight, rater <4>", np.linspace(0, 1, 60).reshape(6, 10), corner=(20, 30))
    return panel


def boxes():
    plot = ChartPanel("Methods", "")
    views = (
        BoxView("Laplace", np.array([0.9, 0.8, 0.85, 0.7])),
        BoxView("rater 1", np.array([0.6]), faint=True),
    )
    plot.set_chart(box_chart(views, "Dice against the truth", "", "4 cases"))
    return plot


def crowds():
    plot = CrowdSizePlot()
    sizes, mean, error = np.array([5, 10, 20]), np.array([0.5, 0.7, 0.8]), np.full(3, 0.02)
    plot.set_curves(
        [CrowdSizeCurve(method, "clustering", sizes, mean, error, mean, error, np.full(3, 10))
         for method in ("OEM", "k-means")]
    )  # fmt: skip
    return plot


def rates():
    plot = DecisionPlot()
    step = np.arange(20.0)
    lines = [CourseLine("moving mean", 0, step, step / 20, step / 25, step / 19)]
    kind = DecisionKind("sensitivity", "Sensitivity", "vote", "sensitivity", each=True)
    plot.set_view(DecisionView(("frog", "toad"), 0, (kind,), NAMES, lambda *_: lines, "a step a vote"))
    return plot


def triangles():
    panel = CommunityTriangles()
    panel.show_triangles(test_community_plots.view())
    return panel


def followed():
    plot = CoursePlot()
    values = np.array([[0.5, 0.4, 0.6], [0.7, 0.6, 0.8], [np.nan, np.nan, np.nan]])
    places = ("one", "two", "three")
    lines = tuple(AnnotatorCourse(name, at, places, values) for at, name in enumerate(NAMES[:2]))
    plot.show_courses([CourseView("labels: right votes", "right votes", "image", 1.0, True, lines)])
    return plot


FIGURES = {
    one.__name__: one
    for one in (
        objective, reliability, curves, calibration, counts, course, agreement, tree, lines, triangle, flow,
        matrix, wall, knockoffs, shares, ranking, alike, network, path, sides, course_of_bias, strip,
        weight, boxes, crowds, rates, triangles, followed,
    )
}  # fmt: skip
