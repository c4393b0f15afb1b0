"""`raterscope run` of labels and of pairs."""

import numpy as np
import pytest

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.pairs.catalogue import path_title
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.masks import add_case
from tests.app.commands import run
from tests.app.kinds.labels.made import make_study as make_labels
from tests.app.kinds.labels.made import write_truth, write_votes
from tests.app.kinds.masks.made import write as write_mask
from tests.app.kinds.pairs import made as made_pairs
from tests.app.tables import write


class TestLabels:
    @pytest.fixture
    def crowd(self, tmp_path):
        votes = write_votes(tmp_path / "votes.csv")
        return make_labels(tmp_path / "crowd.rscope", votes, write_truth(tmp_path / "known.csv"))

    def test_a_name_of_several_kinds_is_that_of_the_kind_that_is_there(self, crowd, capsys):
        assert run("run", crowd, "majority") == 0
        output = capsys.readouterr().out
        assert "1,320 votes by 11 annotators on 120 tasks, fused by majority vote in " in output
        assert "against the truth of 120 tasks" in output
        with Study.open(crowd) as opened:
            (entry,) = opened.runs.all()
        assert entry.kind == "labels"
        assert f"fused by majority vote in {entry.seconds:.1f} s" in output  # as window and report show it

    def test_with_both_kinds_the_kind_is_required(self, crowd, refusal):
        with Study.open(crowd) as opened:
            add_case(opened, "chest", Grid((3, 9, 9), (1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0, 0)))
        message = refusal("run", crowd, "majority")
        assert "contains masks and labels" in message
        assert "--kind" in message
        assert run("run", crowd, "majority", "--kind", "labels") == 0
        assert "not for clicks" in refusal("run", crowd, "majority", "--kind", "clicks")

    def test_with_neither_kind_the_refusal_names_the_option_of_clicks(self, tmp_path, refusal):
        Study.create(tmp_path / "new.rscope").close()
        message = refusal("run", tmp_path / "new.rscope", "majority")
        assert "contains neither masks nor labels, which majority is for" in message
        assert "--detector majority" in message

    def test_an_option_without_effect_is_refused(self, crowd, refusal):
        assert "--detector has no effect on labels" in refusal("run", crowd, "ibcc", "--detector", "majority")
        assert "--hold-truth has no effect on pairs" in refusal("run", crowd, "iss", "--hold-truth")

    def test_an_option_without_effect_on_an_export_is_refused(self, crowd, refusal, tmp_path):
        out = "-o", tmp_path / "a.csv"
        for what in ("decisions", "sessions"):
            message = refusal("export", crowd, "--what", what, "--item", "labels", *out)
            assert f"--item has no effect on {what}" in message
        message = refusal("export", crowd, "--what", "decisions", "--resample", *out)
        assert "--resample has no effect on decisions as csv" in message
        message = refusal("export", crowd, "--what", "decisions", "--group-by", "patient", *out)
        assert "--group-by names a column of the table of --groups" in message
        assert not (tmp_path / "a.csv").exists()

    def test_an_option_without_effect_on_a_report_is_refused(self, crowd, refusal, tmp_path):
        out = "-o", tmp_path / "a.html"
        message = refusal("report", crowd, "--by-crowd-size", *out)
        assert "--by-crowd-size has no effect: the study holds no clicks" in message
        message = refusal("report", crowd, "--annotator", "w1", "--cost", *out)
        assert "--annotator writes a page of its own; leave out --cost" in message

    def test_a_question_is_named_whatever_its_case(self, crowd, refusal):
        assert run("run", crowd, "ibcc", "--item", "LABELS", "--set", "truths=folds", "prior_strength=8") == 0
        with Study.open(crowd) as opened:
            (entry,) = opened.runs.all()
            assert entry.settings["about"]["truths"] == "folds"
            assert entry.items == (opened.questions()[0].id,)
        assert "contains no question cats; it contains labels" in refusal(
            "run", crowd, "ibcc", "--item", "cats"
        )

    def test_a_report_of_one_question(self, crowd, tmp_path, refusal):
        assert run("run", crowd, "majority") == 0
        assert run("report", crowd, "--item", "labels", "-o", tmp_path / "one.html") == 0
        assert "Annotators, the best and the worst" in (tmp_path / "one.html").read_text(encoding="utf-8")
        assert "no image or question cats" in refusal(
            "report", crowd, "--item", "cats", "-o", tmp_path / "two.html"
        )

    def test_decisions_leave_with_task_and_class(self, crowd, export):
        with Study.open(crowd) as opened:
            question = opened.questions()[0].id
            subject = TaskSubject(task="t5", label="cat")
            opened.record(Decision(verb="label", item=question, subject=subject))
        (row,) = export(crowd, "decisions")
        assert (row["kind"], row["item"], row["task"], row["label"]) == ("labels", "labels", "t5", "cat")

    def test_no_labels_yet(self, study, refusal):
        assert "contains no labels" in refusal("run", study, "ibcc")


class TestPairs:
    @pytest.fixture
    def crowd(self, tmp_path):
        rows = [(*row, "better?") for row in made_pairs.answers()]
        rows.append(("ann", "a", "b", "left", "older?"))  # too few to estimate noise
        table = write(tmp_path / "crowd.csv", (*made_pairs.HEADER, "question"), rows)
        assert run("import", tmp_path / "crowd.rscope", table) == 0
        return tmp_path / "crowd.rscope"

    @pytest.mark.parametrize("path", ["iss", "lbi", "lasso"])
    def test_each_path_is_run_and_kept(self, crowd, capsys, path):
        assert run("run", crowd, path, "--item", "BETTER?", "--set", "draws=5", "rate=0.2") == 0
        output = capsys.readouterr().out
        assert f"6,600 comparisons by 55 annotators of 16 items, fused by {path_title(path)}" in output
        assert "of 55 tested annotators are flagged" in output
        assert "at most 20 % of them falsely" in output
        with Study.open(crowd) as opened:
            (entry,) = opened.runs.all()
            assert (entry.kind, entry.algorithm, entry.items) == ("pairs", path, (1,))
            flagged = opened.runs.result(entry.id, 1).flagged
        assert flagged.sum() >= len(made_pairs.BIASED) - 2

    def test_a_question_that_cannot_be_fused_loses_no_other(self, crowd, refusal):
        assert "older?" in refusal("run", crowd, "iss", "--set", "draws=5")
        with Study.open(crowd) as opened:
            assert [entry.items for entry in opened.runs.all()] == [(1,)]

    def test_what_cannot_be_run_is_reported(self, crowd, study, refusal):
        assert "not for labels" in refusal("run", crowd, "iss", "--kind", "labels")
        assert "contains no question cats; it contains better?, older?" in refusal(
            "run", crowd, "iss", "--item", "cats"
        )
        assert "rate" in refusal("run", crowd, "iss", "--set", "rate=7")
        assert "contains no pairs" in refusal("run", study, "iss")


def test_a_run_of_masks_prints_the_notices_of_its_fusions(tmp_path, capsys):
    both = np.zeros((1, 60, 60), dtype=np.uint8)
    both[0, 5:25, 5:25] = 1
    alone = both.copy()
    alone[0, 30:55, 20:55] = 1  # far from the outline of the other rater
    files = [write_mask(tmp_path / f"{name}.nii.gz", mask) for name, mask in (("a", both), ("b", alone))]
    assert run("import", tmp_path / "s.rscope", *files, "--naming", "{annotator}", "--structure", "cell") == 0
    assert run("run", tmp_path / "s.rscope", "laplace") == 0
    assert "tied voxels assigned to the background" in capsys.readouterr().err
