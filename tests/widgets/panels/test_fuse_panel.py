from dataclasses import dataclass

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QRadioButton

from raterscope.algorithms.settings import Algorithm, Settings, SettingsError, choice, integer, number, switch
from raterscope.widgets.panels.fuse_panel import FusePanel, RunLine, RunRequest
from raterscope.widgets.panels.settings_form import SettingsForm


@dataclass(frozen=True)
class Knobs(Settings):
    scatter: float | None = number(None, "Click scatter", "How far.", unit="px", minimum=0.1, maximum=200)
    bound: int = integer(5, "Fewest components", "Not below.", minimum=1)
    rule: str = choice("mml", "Criterion", "Which.", {"mml": "message length", "bic": "BIC"})
    best: bool = switch(True, "Keep the best", "Of all.")
    seed: int = integer(7, "Seed", "Random.", minimum=0, advanced=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule == "bic" and self.bound > 50:
            raise SettingsError("BIC takes no more than 50 components.")


@dataclass(frozen=True)
class Plain(Settings):
    share: float = number(0.5, "Share", "Votes.", minimum=0, maximum=1)


CLUSTERERS = {
    "oem": Algorithm("oem", "OEM clustering", "Finds outliers.", "paper", Knobs, print),
    "plain": Algorithm("plain", "Plain", "Nothing special.", "book", Plain, print),
}
DETECTORS = {"vote": Algorithm("vote", "Majority", "Counts.", "book", Plain, print)}


@pytest.fixture
def form(qtbot):
    widget = SettingsForm(Knobs)
    qtbot.addWidget(widget)
    widget.show()
    return widget


def test_the_form_has_one_editor_a_setting_and_gives_the_defaults(form):
    expected = {
        "scatter": QLineEdit, "bound": QLineEdit, "rule": QComboBox, "best": QCheckBox, "seed": QLineEdit,
    }  # fmt: skip
    editors = form.editors()
    assert list(editors) == list(expected)
    assert all(isinstance(editors[name], kind) for name, kind in expected.items())
    assert form.settings() == Knobs()


def test_typed_values_become_the_settings(form, qtbot):
    editors = form.editors()
    changes = []
    form.changed.connect(lambda: changes.append(1))
    editors["bound"].selectAll()
    qtbot.keyClicks(editors["bound"], "12")
    editors["rule"].setCurrentIndex(1)
    editors["best"].click()
    assert form.settings() == Knobs(bound=12, rule="bic", best=False)
    assert len(changes) >= 3


def test_a_learned_value_is_open_until_one_is_given(form, qtbot):
    scatter = form.editors()["scatter"]
    assert not scatter.isEnabled()
    learnt = next(
        box for box in form.findChildren(QCheckBox) if box.isVisible() and box.text() == "estimated"
    )
    learnt.click()
    assert scatter.isEnabled()
    assert "Click scatter is empty" in form.error()
    qtbot.keyClicks(scatter, "8,5")
    assert form.settings().scatter == 8.5
    learnt.click()
    assert form.settings().scatter is None


@pytest.mark.parametrize(
    ("text", "sentence"), [("0", "expected at least 1"), ("many", "expected a whole number")]
)
def test_what_is_invalid_is_shown_beside_it(form, qtbot, text, sentence):
    bound = form.editors()["bound"]
    bound.selectAll()
    qtbot.keyClicks(bound, text)
    texts = [label.text() for label in form.findChildren(QLabel) if label.isVisible()]
    assert sum(sentence in words for words in texts) == 1
    assert form.error().startswith("Fewest components is ")
    with pytest.raises(SettingsError, match=sentence):
        form.settings()
    bound.selectAll()
    qtbot.keyClicks(bound, "3")
    assert form.error() == ""
    assert not any(
        sentence in label.text() and label.property("role") == "error" for label in form.findChildren(QLabel)
    )


@dataclass(frozen=True)
class Fine(Settings):
    penalty: float = number(0.99, "Penalty", "A mistake.", minimum=1e-6, maximum=1)
    tolerance: float = number(1e-5, "Tolerance", "Change.", minimum=0, maximum=0.1)
    votes: float = number(2_000_000, "Votes", "All.", minimum=1e-9, unit="votes")


def test_ranges_and_values_are_written_without_powers_of_ten(qtbot):
    form = SettingsForm(Fine)
    qtbot.addWidget(form)
    form.show()
    texts = [label.text() for label in form.findChildren(QLabel)]
    assert {"above 0, at most 1", "0 to 0.1", "above 0 votes"} <= set(texts)
    assert [editor.text() for editor in form.editors().values()] == ["0.99", "0.00001", "2000000"]
    assert form.settings() == Fine()


def test_what_two_settings_together_will_not_do_is_stated_too(form):
    form.set_settings(Knobs(bound=60))
    form.editors()["rule"].setCurrentIndex(1)
    texts = [label.text() for label in form.findChildren(QLabel) if label.isVisible()]
    assert "BIC takes no more than 50 components." in texts


def test_advanced_settings_are_folded_unless_they_were_changed(form):
    assert not form.editors()["seed"].isVisible()
    form.set_settings(Knobs(seed=3))
    assert form.editors()["seed"].isVisible()
    assert form.settings().seed == 3


def test_units_and_help_are_on_every_editor(form):
    editors = form.editors()
    assert editors["scatter"].accessibleName() == "Click scatter, px"
    assert "How far." in editors["scatter"].toolTip()
    assert "0.1 to 200 px" in editors["scatter"].toolTip()


@pytest.fixture
def panel(qtbot):
    widget = FusePanel(CLUSTERERS, DETECTORS)
    qtbot.addWidget(widget)
    widget.resize(460, 700)
    widget.show()
    return widget


def test_run_gives_what_is_chosen(panel, qtbot):
    requests = []
    panel.run_requested.connect(requests.append)
    panel.algorithm.choose("oem", Knobs(bound=9))
    panel.set_scope("smear_012.tif", 340)
    panel.this_item.click()
    qtbot.mouseClick(panel.run, Qt.MouseButton.LeftButton)
    assert requests == [RunRequest("oem", Knobs(bound=9), "vote", Plain(), None, False)]


def test_the_choice_of_items_is_offered_for_several_items_and_no_running_fusion(panel):
    for items, words, requested in (
        (1, None, False),
        (2, None, True),
        (2, "counting", False),
        (1, None, False),
    ):
        panel.set_scope("smear_012.tif", items)
        panel.set_progress(words)
        assert [panel.all_items.isVisible(), panel.this_item.isVisible()] == [requested, requested]


def test_what_was_set_stays_while_another_algorithm_is_looked_at(panel):
    panel.algorithm.choose("oem", Knobs(bound=9))
    panel.algorithm.choose("plain")
    assert panel.algorithm.settings() == Plain()
    panel.algorithm.choose("oem")
    assert panel.algorithm.settings() == Knobs(bound=9)


def test_nothing_runs_with_settings_that_will_not_do(panel, qtbot):
    share = panel.detector.form.editors()["share"]
    share.selectAll()
    qtbot.keyClicks(share, "2")
    assert not panel.run.isEnabled()
    share.selectAll()
    qtbot.keyClicks(share, "0.2")
    assert panel.run.isEnabled()


def test_a_run_under_way_stands_for_run_and_can_be_cancelled(panel, qtbot):
    requests = []
    panel.cancel_requested.connect(lambda: requests.append(1))
    panel.set_progress("fusing 3 of 340", 0.01, 75)
    assert not panel.run.isVisible()
    words = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    assert "fusing 3 of 340, 1 min 15 s left" in words
    qtbot.mouseClick(panel.cancel, Qt.MouseButton.LeftButton)
    panel.set_progress("fusing 4 of 340", 0.01, 75)
    assert requests == [1]
    assert not panel.cancel.isEnabled()
    panel.set_progress(None)
    assert panel.run.isVisible()
    assert panel.cancel.isEnabled()


def test_runs_can_be_shown_compared_and_deleted(panel):
    shown, deleted, compared = [], [], []
    panel.runs.chosen.connect(shown.append)
    panel.runs.delete_requested.connect(deleted.append)
    panel.runs.compare_requested.connect(compared.append)
    panel.runs.set_runs(
        [RunLine(2, "OEM + DEM", "12:01", shown=True), RunLine(1, "k-means", "11:40", stale=True)]
    )
    first, second = panel.runs._rows
    assert not panel.runs.compare.isEnabled()
    first.tick.click()
    second.tick.click()
    panel.runs.compare.click()
    buttons = {button.text(): button for button in second.findChildren(type(panel.run))}
    buttons["Show"].click()
    buttons["Delete"].click()
    assert (shown, deleted, compared) == ([1], [1], [(2, 1)])
    panel.runs.set_runs([RunLine(2, "OEM + DEM", "12:01", shown=True)])
    assert panel.runs.ticked() == (2,)


def test_where_all_runs_are_compared_none_has_to_be_ticked(qtbot):
    widget = FusePanel({"plain": CLUSTERERS["plain"]}, all_compared=True)
    qtbot.addWidget(widget)
    compared = []
    widget.runs.compare_requested.connect(compared.append)
    widget.runs.set_runs([RunLine(2, "IBCC", "12:01", shown=True), RunLine(1, "majority vote", "11:40")])
    widget.show()
    assert not [tick for tick in widget.runs.findChildren(QCheckBox) if tick.isVisible()]
    widget.runs.compare.click()
    assert compared == [(2, 1)]


def test_a_catalogue_without_detectors_is_one_step(qtbot):
    widget = FusePanel({"plain": CLUSTERERS["plain"]})
    qtbot.addWidget(widget)
    requests = []
    widget.run_requested.connect(requests.append)
    widget.run.click()
    assert requests == [RunRequest("plain", Plain())]


def test_one_step_over_cases_speaks_of_cases(qtbot):
    widget = FusePanel({"plain": CLUSTERERS["plain"]}, titles=("Fuse the contours by",), item="case")
    qtbot.addWidget(widget)
    widget.show()
    widget.set_scope("case 07", 40)
    texts = {
        label.text()
        for kind in (QLabel, QRadioButton)
        for label in widget.findChildren(kind)
        if label.isVisible()
    }
    assert {"FUSE THE CONTOURS BY", "this case", "all 40 cases"} <= texts
    assert not any("image" in words or "click" in words.lower() for words in texts)
    assert not widget.hold_truth.isVisible()
    requests = []
    widget.run_requested.connect(requests.append)
    widget.this_item.click()
    widget.run.click()
    assert requests == [RunRequest("plain", Plain(), all_items=False)]


def test_what_lies_between_the_steps_is_set_and_truth_is_held_on_request(qtbot):
    widget = FusePanel(CLUSTERERS, DETECTORS, Plain)
    qtbot.addWidget(widget)
    requests = []
    widget.run_requested.connect(requests.append)
    widget.assignment.set_settings(Plain(share=0.25))
    widget.hold_truth.setChecked(True)
    widget.run.click()
    assert requests == [RunRequest("oem", Knobs(), "vote", Plain(), Plain(share=0.25), hold_truth=True)]
