"""ROC curves by cross-validation are kept in the study, and the report shows them."""

import numpy as np

from raterscope.algorithms.labels.roc_curves import FoldedSettings
from raterscope.app.kinds.labels.evaluation import cross_validate, load_folds, store_folds, write_areas
from raterscope.app.kinds.labels.runs import gather
from raterscope.app.study import Study
from tests.app.commands import run
from tests.app.kinds.labels.made import make_study, write_truth, write_votes
from tests.app.tables import rows_of


def test_what_was_measured_is_read_back_and_drawn_in_the_report(tmp_path):
    votes, truths = write_votes(tmp_path / "votes.csv"), write_truth(tmp_path / "truth.csv", step=2)
    path = make_study(tmp_path / "s.rscope", votes, truths)
    assert run("run", path, "majority") == 0
    with Study.open(path) as study:
        (entry,) = study.questions()
        assert load_folds(entry.id, study) is None
        (question,) = gather([entry.id], study).given.values()
        folded = cross_validate(question, FoldedSettings(methods="fast", folds=4))
        store_folds(entry.id, folded, study)
        stored = load_folds(entry.id, study)
        assert stored is not None
        assert stored.facts.startswith("Measured 20")
        assert stored.curves.settings == folded.settings
        for old, new in zip(folded.methods, stored.curves.methods, strict=True):
            assert new.area() == old.area()
            np.testing.assert_array_equal(new.areas(), old.areas())
        study.settings.keep_folds(entry.id, {"facts": "spoilt"})
        assert load_folds(entry.id, study) is None
        store_folds(entry.id, folded, study)
    rows = rows_of(write_areas(tmp_path / "areas.csv", folded))
    assert [row["class"] for row in rows] == ["dog"] * len(folded.methods)  # of two classes, one curve
    assert run("report", path, "-o", tmp_path / "r.html") == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "ROC curves by 4-fold cross-validation" in page
