"""Results whose output folder disappeared are saved elsewhere, with a message."""

import shutil

import pytest

from raterscope.app.kinds.labels import command, runs
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.kinds.labels.made import make_study, write_votes


@pytest.fixture
def votes(tmp_path):
    return write_votes(tmp_path / "votes.csv")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder that the command is given in, and nowhere else to go."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "nobody"))
    return folder


def happening(monkeypatch, module, happens):
    """Let something happen while questions are fused."""
    fuse_inputs = module.fuse_inputs

    def fused(*arguments, **named):
        answer = fuse_inputs(*arguments, **named)
        happens()
        return answer

    monkeypatch.setattr(module, "fuse_inputs", fused)


def test_a_run_whose_study_was_taken_away_is_in_a_copy_of_it(votes, here, tmp_path, monkeypatch, refusal):
    study = make_study(tmp_path / "crowd.rscope", votes)
    away = tmp_path / "away.rscope"
    happening(monkeypatch, runs, lambda: study.rename(away))
    copy = here / "crowd-rescued.rscope"
    assert refusal("run", study, "pooled") == (
        "crowd.rscope: was moved, renamed or deleted while open; open it where it is now, or put it back. "
        f"The run is in a copy of the study, {copy}."
    )
    with Study.open(copy) as copied, Study.open(away) as original:
        assert [entry.algorithm for entry in copied.runs.all()] == ["pooled"]
        assert original.runs.all() == []


def test_where_no_other_place_takes_it_either_the_reason_is_reported(
    votes, here, tmp_path, monkeypatch, refusal
):
    study = make_study(tmp_path / "crowd.rscope", votes)
    happening(monkeypatch, runs, lambda: study.rename(tmp_path / "away.rscope"))
    monkeypatch.setattr(
        "raterscope.app.command_line.output._others", lambda folder: iter([tmp_path / "no" / "where"])
    )
    assert refusal("run", study, "pooled").endswith("while open; open it where it is now, or put it back.")


@pytest.mark.parametrize("of_study", [False, True], ids=["of files", "of a study"])
def test_results_whose_folder_was_taken_away_are_in_another(
    of_study, votes, here, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "out"

    def replace():
        shutil.rmtree(out)
        out.touch()

    happening(monkeypatch, command, replace)
    source = make_study(tmp_path / "crowd.rscope", votes) if of_study else votes
    assert run("fuse", "labels", source, "-o", out) == 1
    captured = capsys.readouterr()
    rescue_folder = here / "out-rescued"
    assert f"All results are in {rescue_folder}." in captured.err
    assert f"run.json in {rescue_folder}" in captured.out
    assert {path.name for path in rescue_folder.iterdir()} >= {"labels.csv", "annotators.csv", "run.json"}
