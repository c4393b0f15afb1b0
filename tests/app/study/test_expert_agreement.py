"""Review sessions: speed of an expert, and agreement with their earlier decisions."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from raterscope.app.cli import main
from raterscope.app.review import BiasSubject, CommentSubject, Decision, SpotSubject, TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.expert_agreement import read_agreement, read_sessions
from tests.app.tables import rows_of

START = datetime(2026, 5, 4, 8, 0, tzinfo=UTC)


def spot(number, seconds, verb, x, who="eva", label=""):
    subject = SpotSubject(x=float(x), y=10.0, number=x, label=label)
    at = START + timedelta(seconds=seconds)
    return Decision(verb=verb, id=number, at=at, who=who, item=1, subject=subject)


def test_a_pause_of_more_than_fifteen_minutes_ends_a_session():
    times = [0, 10, 30, 60, 60 + 15 * 60, 2 * 3600, 2 * 3600 + 40]
    (pace,) = read_sessions([spot(n, at, "accept", 10 * n) for n, at in enumerate(times, start=1)])
    first, second = pace.sessions
    assert (first.decisions, second.decisions) == (5, 2)
    assert first.gaps == (10, 20, 30, 900)
    assert first.median_seconds == 25
    assert first.per_hour == pytest.approx(4 / (960 / 3600))
    assert second.per_hour != second.per_hour  # under a minute
    assert pace.whole.decisions == 7
    assert pace.whole.seconds == 1000


def test_comments_and_bookmarks_are_no_decisions_of_a_session():
    journal = [spot(1, 0, "accept", 10), spot(4, 60, "reject", 20)]
    for number, verb in ((2, "bookmark"), (3, "comment")):
        at, subject = START + timedelta(seconds=10 * number), CommentSubject(of="clicks")
        journal.append(Decision(verb=verb, id=number, at=at, who="eva", item=1, subject=subject))
    (pace,) = read_sessions(sorted(journal, key=lambda decision: decision.id))
    assert pace.whole.decisions == 2
    assert pace.whole.gaps == (60,)


def test_self_agreement_counts_what_was_decided_again_later():
    day = 24 * 3600
    journal = [
        spot(1, 0, "accept", 10), spot(2, 5, "reject", 50), spot(3, 9, "accept", 90, label="ring"),
        spot(4, 12, "accept", 90, label="schizont"),  # corrected at once
        spot(5, 20, "accept", 130), Decision(verb="undo", id=6, at=START, who="eva", undoes=5),
        spot(7, day, "accept", 10), spot(8, day + 5, "accept", 50), spot(9, day + 9, "reject", 130),
        spot(10, day + 11, "accept", 90), spot(11, day, "reject", 10, who="jo"),
        spot(12, day + 20, "reopen", 10), spot(13, 2 * day, "reject", 10),
    ]  # fmt: skip
    eva, jo = read_sessions(journal)
    assert (eva.repeated, eva.same) == (3, 2)
    assert jo.repeated == 0
    share, low, high = eva.alike
    assert share == pytest.approx(2 / 3)
    assert low < share < high


def test_a_reopened_task_does_not_hide_verdicts_on_an_annotator_of_the_same_name():
    journal = [Decision(verb="reopen", id=1, at=START, who="eva", item=1, subject=TaskSubject(task="anna"))]
    for number, who in ((2, "eva"), (3, "jo")):
        subject = BiasSubject(annotator="anna")
        journal.append(Decision(verb="flag", id=number, at=START, who=who, item=1, subject=subject))
    compared = list(read_agreement(SimpleNamespace(decisions=lambda: journal)))
    assert [(kind, *experts) for kind, *experts, _ in compared] == [("pairs", "eva", "jo")]


def test_sessions_are_exported_with_a_row_for_all_of_an_expert(tmp_path):
    (tmp_path / "votes.csv").write_text("annotator,task,label\na,t1,x\nb,t1,y\na,t2,x\nb,t2,x\n")
    path, out = tmp_path / "s.rscope", tmp_path / "sessions.csv"
    assert main(["import", str(path), str(tmp_path / "votes.csv")]) == 0
    assert main(["export", str(path), "--what", "sessions", "-o", str(out)]) == 1
    with Study.open(path) as study:
        (question,) = study.questions()
        for task in ("t1", "t2"):
            study.record(Decision(verb="label", item=question.id, subject=TaskSubject(task=task, label="x")))
    assert main(["export", str(path), "--what", "sessions", "-o", str(out)]) == 0
    rows = rows_of(out)
    assert [row["session"] for row in rows] == ["1", "all"]
    assert [row["decisions"] for row in rows] == ["2", "2"]
    assert rows[1]["repeated"] == "0"
