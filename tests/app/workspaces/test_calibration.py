"""Warning above the queue when the expert's decisions contradict a run, without ground truth."""

import pytest

from raterscope.app.cli.program import main
from raterscope.app.review import Decision, SpotSubject, TaskSubject
from raterscope.app.study import Study
from tests.app.driving import LONG, idle, open_study
from tests.app.kinds.labels.made import write_votes


def test_decisions_against_the_consensus_show_a_warning(window, qtbot, tmp_path):
    path = tmp_path / "one.rscope"
    assert main(["import", str(path), str(write_votes(tmp_path / "votes.csv")), "--kind", "labels"]) == 0
    assert main(["run", str(path), "majority"]) == 0
    with Study.open(path) as study:
        fusion = study.runs.result(1, 1).fusion
        for task, label in enumerate(fusion.label()[:25].tolist()):
            subject = TaskSubject(task=f"t{task}", label=fusion.classes[1 - label])
            study.record(Decision(verb="label", item=1, subject=subject, run=1))
    opened = open_study(window, qtbot, path)
    doubt = opened.workspace.queue.doubt
    qtbot.waitUntil(doubt.isVisible, timeout=LONG)
    assert doubt.text().startswith("Your decisions contradict the probabilities")
    words = opened.workspace.trust.text
    assert words.startswith("Of 95 labels of unknown truth")
    assert "Of 25 tasks that you decided, 0 % are right" in words


@pytest.mark.usefixtures("compiled")
def test_decisions_against_the_posteriors_show_a_warning(window, qtbot, tmp_path, crowd_files, monkeypatch):
    for module in ("assessment", "kinds.clicks.evaluation"):
        monkeypatch.setattr(f"raterscope.app.{module}.FEW", 5)
    path = tmp_path / "one.rscope"
    assert main(["import", str(path), *map(str, crowd_files[:3])]) == 0
    assert main(["run", str(path), "oem"]) == 0
    with Study.open(path) as study:
        for x, y in study.runs.result(1, 1).clustering.mean.tolist():
            study.record(Decision(verb="reject", item=1, subject=SpotSubject(x=x, y=y), run=1))
    opened = open_study(window, qtbot, path)
    doubt = opened.workspace.queue.doubt
    qtbot.waitUntil(doubt.isVisible, timeout=LONG)
    assert doubt.text().startswith("Your decisions contradict the probabilities")
    assert "too high on average" in doubt.text()
    opened.files.close_study()
    idle(opened, qtbot)
    assert not doubt.isVisible()


def test_closing_at_once_after_a_change_of_runs_is_clean(fused, qtbot):
    """The run was compared with the decisions after the study was closed: an error on standard error."""
    fused.document.changed.emit()
    fused.close()
    qtbot.wait(600)
