"""Thirty species: candidates by probability, found by typing; decisions against a unanimous crowd."""

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.labels.runs import fuse_inputs, gather, keep
from raterscope.app.study import Study
from tests.app.driving import idle, open_study, press

EPITHETS = (
    "alba", "borealis", "cana", "dubia", "exilis", "fusca", "grandis", "hyemalis", "insularis", "major",
)  # fmt: skip
SPECIES = tuple(f"{genus} {epithet}" for genus in ("Corvus", "Larus", "Parus") for epithet in EPITHETS)
TASKS = 40


@pytest.fixture(scope="session")
def species(tmp_path_factory):
    """Forty tasks, five votes each; on the first ten all annotators agree on the true species."""
    rng = np.random.default_rng(1)
    rows = ["annotator,task,label"]
    for task in range(TASKS):
        for annotator in rng.choice(25, 5, replace=False):
            wrong = task >= 10 and rng.random() < 0.4
            label = (task + 1 + int(rng.integers(3))) % 30 if wrong else task % 30
            rows.append(f"ann {annotator:02},bird-{task:02},{SPECIES[label]}")
    folder = tmp_path_factory.mktemp("species")
    (folder / "votes.csv").write_text("\n".join(rows) + "\n")
    with Study.create(folder / "species.rscope") as study:
        store(read_files([folder / "votes.csv"]), study)
        requested = [question.id for question in study.questions()]
        keep(fuse_inputs(gather(requested, study), LabelPlan.make("majority")), study)
    return folder / "species.rscope"


@pytest.fixture
def opened(window, qtbot, species, tmp_path):
    path = tmp_path / species.name
    path.write_bytes(species.read_bytes())
    open_study(window, qtbot, path)
    return window


def decided(window) -> dict[str, str]:
    contents = window.document.contents
    tasks = contents.review.tasks(window.workspace.session.scene.question.id)
    return {name: task.label for name, task in tasks.items()}


def go_to(window, qtbot, name: str):
    workspace = window.workspace
    workspace.tasks.select(workspace.session.scene.number_of[name])
    idle(window, qtbot)
    return workspace.task_panel


def test_a_digit_selects_what_its_line_shows(opened, qtbot) -> None:
    panel = go_to(opened, qtbot, "bird-17")
    second = panel.bars.lines[1].name
    press(opened, qtbot, Qt.Key.Key_2, on=opened.workspace.queue.view)
    assert decided(opened) == {"bird-17": second}


def test_species_are_found_by_typing_and_decisions_against_the_crowd_are_named(opened, qtbot):
    workspace = opened.workspace
    matrix = workspace.matrix
    assert matrix.modes.mode == "worst"
    confusion = matrix.worst.lines[0]
    matrix.worst.setCurrentIndex(matrix.worst.index_of_row(0))
    idle(opened, qtbot)
    assert workspace.middle_tabs.currentWidget() is workspace.cell_tasks
    title = workspace.cell_tasks._header.accessibleName() or " ".join(workspace.cell_tasks._header.text())
    assert f"answered {confusion.given} where {confusion.true} is true" in title

    panel = go_to(opened, qtbot, "bird-03")
    assert panel.undo.isHidden() or not panel.undo.isVisible()
    other = panel.bars.lines[1].name
    press(opened, qtbot, Qt.Key.Key_2, on=opened.workspace.queue.view)
    assert decided(opened) == {"bird-03": other}
    assert panel._objection.text().startswith(f"bird-03: you decided {other} against all 5 votes")
    assert panel.undo.isVisible()
    qtbot.mouseClick(panel.undo, Qt.MouseButton.LeftButton)
    idle(opened, qtbot)
    assert decided(opened) == {}
    assert not panel.undo.isVisible()

    panel = go_to(opened, qtbot, "bird-17")
    press(opened, qtbot, Qt.Key.Key_Slash, on=opened.workspace.queue.view)
    field = panel.classes.field
    assert field.isVisible()
    qtbot.waitUntil(field.hasFocus)
    qtbot.keyClicks(field, "3s")
    assert field.text() == "3s"
    assert decided(opened) == {}
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert not panel.classes.finding
    assert opened.workspace.queue.view.hasFocus()
    press(opened, qtbot, Qt.Key.Key_Slash, on=opened.workspace.queue.view)
    qtbot.keyClicks(field, "parus maj")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    idle(opened, qtbot)
    assert decided(opened) == {"bird-17": "Parus major"}
    assert opened.workspace.queue.view.hasFocus()

    panel = go_to(opened, qtbot, "bird-03")
    press(opened, qtbot, Qt.Key.Key_2, on=opened.workspace.queue.view)
    assert panel.undo.isVisible()
    go_to(opened, qtbot, "bird-04")
    press(opened, qtbot, Qt.Key.Key_1, on=opened.workspace.queue.view)
    assert not panel.undo.isVisible()
