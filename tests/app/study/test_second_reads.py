"""Blind copies contain nothing of the first reader's decisions; merging reveals both reads."""

import sqlite3
from dataclasses import replace

import pytest

from raterscope.app.review import View
from raterscope.app.study import Study, StudyError
from raterscope.app.study.expert_agreement import agreement_of, read_agreement
from raterscope.app.study.merging import compare_studies, merge_studies
from raterscope.app.study.new_study import copy_for_reader
from tests.app.commands import run
from tests.app.review.decisions import on
from tests.app.study.made import a_run, a_table

SECRET = "a ring stage, clearly"


@pytest.fixture
def original(tmp_path):
    """A study with a run before and a run after the decisions of anna."""
    path = tmp_path / "anna.rscope"
    with Study.create(path) as study:
        study.add_clicks(a_table(1, ("a.png", "b.png"), clicks=300))
        study.runs.add(replace(a_run(), known=0), {})
        for decision in (on("accept", 10), on("reject", 20, reason=SECRET), on("reject", 30)):
            study.record(replace(decision, who="anna"))
        study.views.record([View(image=1, x=5.0, y=5.0, how="selected", seconds=1.0)])
        study.runs.add(replace(a_run(), known=3), {})
    return path


@pytest.fixture
def blind(original, tmp_path):
    path = tmp_path / "ben.rscope"
    with Study.open(original, to_read=True) as study:
        copied = copy_for_reader(study, path, blind=True)
    assert copied.in_words() == "a blind copy without 3 decisions and without 1 run that used decisions"
    return path


def test_a_blind_copy_records_that_it_has_no_earlier_decisions(tmp_path):
    with Study.create(tmp_path / "anna.rscope") as study:
        study.add_clicks(a_table(1, ("a.png",), clicks=3))
        copied = copy_for_reader(study, tmp_path / "ben.rscope", blind=True)
    assert copied.in_words() == "a blind copy; there was no decision to omit"


def decide(path, *decisions):
    with Study.open(path) as study:
        for decision in decisions:
            study.record(replace(decision, who=path.stem))


def test_a_blind_copy_contains_no_decision_not_even_in_free_pages(blind):
    connection = sqlite3.connect(blind)
    for table in ("decisions", "viewed"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    assert [known for (known,) in connection.execute("SELECT known FROM runs")] == [0]
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "INSERT INTO decisions(id, at, who, verb, reason, annotators) VALUES (7, '', '', '', '', '')"
        )
    connection.close()
    assert SECRET.encode() not in blind.read_bytes()
    with Study.open(blind) as study:
        assert study.decisions() == []
        read = study.settings.second_read
        assert read is not None
        assert read.source == "anna.rscope"


def test_the_original_stays_as_it_was(original, blind):
    with Study.open(original) as study:
        assert len(study.decisions()) == 3
        assert len(study.runs.all()) == 2
        assert study.settings.second_read is None


def test_merging_waits_until_both_reads_are_complete(original, blind, tmp_path):
    target = tmp_path / "both.rscope"
    decide(blind, on("accept", 10), on("accept", 20))
    with pytest.raises(
        StudyError, match=r"Still to be decided are 1 in ben.rscope, which the other expert decided. Complete"
    ):
        merge_studies([original, blind], target)
    assert not target.exists()
    decide(blind, on("reject", 30))
    (merged,) = merge_studies([blind, original], target)
    assert merged.experts == ({"anna": 3}, {"ben": 3})
    assert [conflict.reason for conflict in merged.conflicts] == ["anna: reject; ben: accept"]
    with Study.open(target) as study:
        assert len(study.runs.all()) == 2
        (read,) = study.settings.reads
        assert read.blind
        assert read.in_words().startswith("ben.rscope (ben), a blind second read copied by ")
        assert study.settings.second_read is None
        assert {decision.who for decision in study.decisions()} >= {"anna", "ben"}


def test_an_incomplete_read_is_merged_on_request(original, blind, tmp_path):
    decide(blind, on("accept", 10))
    merge_studies([original, blind], tmp_path / "both.rscope", incomplete=True)
    assert (tmp_path / "both.rscope").exists()


def test_a_preview_changes_nothing_and_equals_the_merge(original, blind, tmp_path):
    decide(blind, on("accept", 10), on("accept", 20), on("reject", 30))
    with Study.open(original, to_read=True) as study, Study.open(blind, to_read=True) as other:
        preview = compare_studies(study, other)
        assert (len(study.decisions()), len(other.decisions())) == (3, 3)
    (merged,) = merge_studies([original, blind], tmp_path / "both.rscope")
    assert (preview.added, preview.both, preview.experts) == (merged.added, merged.both, merged.experts)
    assert [conflict.reason for conflict in preview.conflicts] == [c.reason for c in merged.conflicts]


def test_agreement_read_from_the_journal_is_that_of_the_merge(original, blind, tmp_path):
    spots = [on("accept", 10), on("accept", 20), on("reject", 30)]
    decide(original, *(on("accept", 100.0 + 10 * n) for n in range(12)), on("reject", 300.0))
    decide(blind, *spots, *(on("accept", 100.0 + 10 * n) for n in range(12)), on("reject", 300.0))
    target = tmp_path / "both.rscope"
    (merged,) = merge_studies([original, blind], target)
    with Study.open(target) as study:
        study.record(replace(on("accept", 20), who="carl"))
        study.record(replace(on("accept", 20), who="anna"))
        ((kind, first, second, agreement),) = read_agreement(study)
    assert (kind, first, second) == ("clicks", "anna", "ben")
    assert agreement == merged.agreements()["clicks"]
    assert agreement.count == 16
    assert agreement.kappa.low <= agreement.kappa.value <= agreement.kappa.high
    assert agreement.alpha.low <= agreement.alpha.value <= agreement.alpha.high


def test_alpha_is_that_of_krippendorff():
    from raterscope.algorithms.annotators.agreement import krippendorff_alpha

    verdicts = [("a", "a")] * 5 + [("b", "b")] * 3 + [("a", "b")] * 2 + [("c", "a"), ("c", "c")]
    codes = [[{"a": 0, "b": 1, "c": 2}[name] for name in pair] for pair in verdicts]
    expected = krippendorff_alpha(codes)
    assert agreement_of(verdicts).alpha.value == pytest.approx(expected)


def test_the_command_copies_and_merges(original, tmp_path, capsys):
    copy = tmp_path / "ben.rscope"
    assert run("copy", original, "--blind", "-o", copy) == 0
    assert "a blind copy without 3 decisions" in capsys.readouterr().out
    decide(copy, on("accept", 10), on("accept", 20), on("reject", 30))
    assert run("merge", original, copy, "-o", tmp_path / "c.rscope") == 0
    assert "3 decided by both, 67 % alike, kappa" in capsys.readouterr().out


def test_exports_of_a_blind_copy_name_no_decision(blind, tmp_path):
    table = tmp_path / "decisions.csv"
    assert run("export", blind, "--what", "decisions", "-o", table) == 0
    assert len(table.read_text().splitlines()) == 1
