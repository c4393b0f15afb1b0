from functools import partial

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit
from scipy.stats import beta

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.data import PriorSettings, prior_of
from raterscope.widgets.dialogs.answers import PriorForm
from tests.reading import visible_words

pytestmark = pytest.mark.usefixtures("dark")

CLASSES, OUTPUTS = ("not", "supernova"), ("-1", "1", "3")


@pytest.fixture
def labels() -> Labels:
    none = np.empty(0, dtype=np.int32)
    return Labels(none, none, none, (), (), OUTPUTS, CLASSES, meaning=np.array([0, -1, 1]))


@pytest.fixture
def form(qtbot, labels):
    widget = PriorForm(PriorSettings)
    qtbot.addWidget(widget)
    widget.resize(420, 560)
    widget.show()
    widget.set_labels(CLASSES, OUTPUTS, partial(prior_of, labels))
    return widget


def cell(form, row, column) -> str:
    return form.matrix.model().index(row, column).data()


def enter(form, qtbot, row, column, text):
    form.matrix.setCurrentIndex(form.matrix.model().index(row, column))
    form.matrix.edit(form.matrix.currentIndex())
    editor = form.matrix.findChild(QLineEdit)
    editor.setText(text)
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    QApplication.processEvents()


def test_the_fields_mean_a_matrix_with_rates_and_intervals(form, qtbot):
    low, high = beta(2, 2).ppf(0.025), beta(2, 2).ppf(0.975)
    assert cell(form, 0, 0) == f"true not, answer -1: 0.50 ({low:.2f} to {high:.2f}), 2 votes"
    messages = []
    form.changed.connect(messages.append)
    form.set_settings(PriorSettings(prior_strength=10.0, prior_accuracy=0.7))
    assert cell(form, 1, 2).startswith("true supernova, answer 3: 0.70 (")
    assert cell(form, 1, 2).endswith("7 votes")
    assert messages == []
    field = form.form.editors()["prior_strength"]
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "20")
    assert cell(form, 1, 2).endswith("14 votes")
    assert messages == [None, None]
    assert form.settings().prior_strength == 20


def test_what_is_invalid_is_reported_and_changes_nothing(form, qtbot):
    form.set_settings(PriorSettings(prior_strength=10.0))
    messages = []
    form.changed.connect(messages.append)
    field = form.form.editors()["prior_strength"]
    before = cell(form, 0, 0)
    field.selectAll()
    qtbot.keyClicks(field, "-")
    assert messages == []
    assert cell(form, 0, 0) == before


def test_a_cell_set_by_hand_sets_the_whole_matrix_by_hand_until_reset(form, qtbot):
    messages = []
    form.changed.connect(messages.append)
    enter(form, qtbot, 0, 1, "6,5")
    expected = np.array([[2, 6.5, 1], [1, 1, 2]])
    np.testing.assert_array_equal(messages[-1], expected)
    np.testing.assert_array_equal(form.by_hand(), expected)
    assert "edited" in visible_words(form)
    assert not form.form.isEnabled()
    form.set_settings(PriorSettings(prior_strength=99.0))
    np.testing.assert_array_equal(form.matrix.counts(), expected)
    form.reset.click()
    assert messages[-1] is None
    assert form.by_hand() is None
    assert form.matrix.counts()[0].sum() == pytest.approx(99)
    assert "edited" not in visible_words(form)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "1e9", "two", ""])
def test_a_count_that_is_invalid_is_refused_in_a_sentence(form, qtbot, text):
    messages = []
    form.changed.connect(messages.append)
    enter(form, qtbot, 0, 0, text)
    assert messages == []
    assert f"A pseudo-count is {text!r}; expected a number above 0" in visible_words(form)
    enter(form, qtbot, 0, 0, "3")
    assert "A pseudo-count is" not in visible_words(form)


def test_leaving_a_cell_as_it_was_is_no_change(form, qtbot):
    messages = []
    form.changed.connect(messages.append)
    enter(form, qtbot, 0, 0, "2")
    assert messages == []
    assert form.by_hand() is None


def test_a_matrix_set_by_hand_before_is_shown_again(form, labels):
    kept = np.array([[1e-6, 1, 1], [1e8, 1, 5]])
    form.set_labels(CLASSES, OUTPUTS, partial(prior_of, labels), kept)
    np.testing.assert_array_equal(form.by_hand(), kept)
    assert cell(form, 1, 0).startswith("true supernova, answer -1: 1.00 (1.00 to 1.00)")
    assert form.matrix.grab().toImage().width() > 0


def test_without_labels_it_explains_the_empty_form(qtbot):
    form = PriorForm(PriorSettings)
    qtbot.addWidget(form)
    form.show()
    assert "Import labels" in visible_words(form)
    assert not form.matrix.isVisible()
