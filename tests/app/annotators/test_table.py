"""The table of the annotators of all kinds, aliases in tables and fusions, and its export."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from raterscope.algorithms.labels.constancy import half_change
from raterscope.app.annotator_evidence import Pool
from raterscope.app.annotators.table import (
    effects_of_exclusion,
    find_unusual,
    preview_change,
    read_annotators,
    read_courses,
)
from raterscope.app.cli.program import main
from raterscope.app.kinds.clicks.runs import gather as gather_clicks
from raterscope.app.kinds.labels.runs import gather as gather_labels
from raterscope.app.review import Decision, SpotSubject, TaskSubject, WeightSubject, differ, fold
from raterscope.app.study import Study
from tests.app.annotators.made import fuse_all
from tests.app.tables import rows_of


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Draw the sides of comparisons again a few times only: that takes most of the time of a report."""
    monkeypatch.setattr("raterscope.app.kinds.pairs.evaluation._DRAWS", 5)


def exported(study: Path, kind: str, folder: Path) -> dict[str, dict[str, str]]:
    path = folder / f"{kind}.csv"
    assert main(["export", str(study), "--what", "annotators", "--kind", kind, "-o", str(path)]) == 0
    return {row["annotator"]: row for row in rows_of(path)}


def test_values_are_those_of_the_exports_of_each_kind(four_study, tmp_path):
    table = exported(four_study, "all", tmp_path)
    assert list(table) == ["anna", "ben", "cleo", "dan", "eve", "Anna K."]
    for name, row in exported(four_study, "clicks", tmp_path).items():
        assert float(table[name]["clicks"]) == float(row["clicks"])
        for column in ("sensitivity", "precision", "reliability"):
            assert table[name][f"clicks_{column}"] == row.get(column, row.get("specificity"))
    for name, row in exported(four_study, "labels", tmp_path).items():
        assert table[name]["labels_votes"] == row["votes"]
        for column in ("accuracy", "accuracy_low", "accuracy_high"):
            assert float(table[name][f"labels_{column}"]) == pytest.approx(float(row[column]), abs=1e-5)
    for name, row in exported(four_study, "pairs", tmp_path).items():
        for column in ("bias", "bias_low", "bias_high", "match"):
            assert float(table[name][f"pairs_{column}"]) == pytest.approx(float(row[column]), abs=1e-5)
        assert (table[name]["pairs_flag"] != "") == (row["flagged"] == "1")
    path = tmp_path / "masks.csv"
    assert main(["export", str(four_study), "--what", "annotators", "--kind", "masks", "-o", str(path)]) == 0
    by_case = [float(row["bias_mm"]) for row in rows_of(path) if row["annotator"] == "cleo"]
    assert float(table["cleo"]["masks_bias_mm"]) == pytest.approx(np.mean(by_case))
    assert len(by_case) == 2


def test_the_own_clicks_of_an_annotator_hide_no_offset_and_no_scatter(tmp_path):
    rng = np.random.default_rng(3)
    lines, inside = ["annotator,image,x,y"], []
    for image in range(12):
        for place in rng.uniform(40, 560, (12, 2)):
            for number, shift in enumerate((0.0, 0.0, 3.0)):
                x, y = place + np.array([shift, 0.0]) + rng.normal(0, 1.5, 2)
                lines.append(f"a{number},i{image},{x:.2f},{y:.2f}")
    path = tmp_path / "clicks.csv"
    path.write_text("\n".join(lines))
    study, table = tmp_path / "s.rscope", tmp_path / "annotators.csv"
    assert main(["import", str(study), str(path), "--extent", "600", "600"]) == 0
    assert main(["run", str(study), "oem"]) == 0
    assert main(["annotators", str(study), "-o", str(table)]) == 0
    for row, offset in zip(rows_of(table), (1.5, 1.5, 3.0), strict=True):  # from the other two
        value, low, high = (float(row[f"clicks_offset_px{end}"]) for end in ("", "_low", "_high"))
        assert value == pytest.approx(offset, abs=0.5)
        assert low < value < high
        inside.append(float(row["clicks_scatter_px"]))
    assert np.mean(inside) == pytest.approx(1.5, abs=0.2)


def test_a_mean_over_cases_has_the_interval_of_a_t_distribution():
    pool = Pool({}, 1)
    for value in (1.0, 2.0, 4.0):
        pool.add(["kim"], np.array([[[value, np.nan, np.nan]]]), np.ones(1))
    (((mean, low, high),),) = pool.mean().tolist()
    expected = stats.t.interval(0.95, 2, loc=mean, scale=stats.sem([1.0, 2.0, 4.0]))
    assert mean == pytest.approx(7 / 3)
    assert (low, high) == pytest.approx(expected)


def test_a_single_item_keeps_its_value_and_several_are_pooled_by_marks():
    pool = Pool({}, 1)
    pool.add(["kim", "lee"], np.array([[[0.7, 0.6, 0.8]], [[0.5, 0.3, 0.6]]]), np.array([10, 30]))
    pool.add(["lee"], np.array([[[0.9, 0.8, 0.95]]]), np.array([10]))
    kim, lee = pool.weighted()[:, 0].tolist()
    assert kim == [0.7, 0.6, 0.8]
    assert lee[0] == pytest.approx(0.6)
    assert lee[1] == pytest.approx(0.6 - math.hypot(30 * 0.2, 10 * 0.1) / 40)


def test_an_item_that_two_joined_names_marked_counts_once():
    pool = Pool({"Kim L.": "kim"}, 1)
    pool.add(["kim", "Kim L.", "lee"], np.full((3, 1, 3), 0.5), np.array([10, 20, 0]))
    pool.add(["Kim L."], np.full((1, 1, 3), 0.5), np.array([5]))
    marks, items = pool.counted()
    assert pool.names == ("kim", "lee")
    assert marks.tolist() == [35, 0]
    assert items.tolist() == [2, 0]


def test_verdicts_of_the_expert_are_counted_on_marks(four_study):
    with Study.open(four_study) as study:
        before = read_annotators(study)
        assert before.columns["rejected"].sum() == 0
        study.record(Decision(verb="reject", subject=SpotSubject(x=30.0, y=30.0), item=1))
        (question,) = study.questions()
        votes = study.vote_set(question.id).labels(study.annotators())
        cell = votes.tasks.index("cell 00")
        subject = TaskSubject(task="cell 00", label="ring")
        study.record(Decision(verb="label", subject=subject, item=question.id))
        table = read_annotators(study)
        evidence, row = table.of_kind("anna", "labels")
        vote = votes.outputs[votes.label[(votes.task == cell) & (votes.annotator == 0)][0]]
        assert (evidence.accepted[row], evidence.rejected[row]) == ((1, 0) if vote == "ring" else (0, 1))
        clicks, row = table.of_kind("anna", "clicks")
        crowd = study.clicks(1)
        own = crowd.annotator == crowd.annotators.index("anna")
        marked = bool((np.hypot(crowd.x[own] - 30, crowd.y[own] - 30) < 6).any())
        assert clicks.rejected[row] == marked


def test_verdicts_on_labels_stay_when_an_exclusion_is_fused(four_study):
    with Study.open(four_study) as study:
        (question,) = study.questions()
        for number in range(12):
            subject = TaskSubject(task=f"cell {number:02d}", label="ring")
            study.record(Decision(verb="label", subject=subject, item=question.id))
        study.record(Decision(verb="exclude", annotators=("eve",), reason="careless"))
        before, row = read_annotators(study).of_kind("eve", "labels")
        assert before.accepted[row] + before.rejected[row] == 12
    assert main(["run", str(four_study), "majority", "--kind", "labels"]) == 0
    with Study.open(four_study) as study:
        after, row_after = read_annotators(study).of_kind("eve", "labels")
        assert after.accepted[row_after] == before.accepted[row]
        assert after.rejected[row_after] == before.rejected[row]


def test_the_changes_of_a_run_are_estimated_once(four_study, monkeypatch):
    from raterscope.app.kinds.labels import annotators

    estimated = []

    def estimate(labels, fusion, watch):
        estimated.append(labels)
        return half_change(labels, fusion, watch)

    monkeypatch.setattr(annotators, "half_change", estimate)
    with Study.open(four_study) as study:
        (question,) = study.questions()
        before = read_annotators(study).columns["labels_drift"]
        subject = TaskSubject(task="cell 00", label="ring")
        study.record(Decision(verb="label", subject=subject, item=question.id))
        assert np.array_equal(read_annotators(study).columns["labels_drift"], before, equal_nan=True)
    assert len(estimated) == 1
    assert main(["run", str(four_study), "majority", "--kind", "labels"]) == 0
    with Study.open(four_study) as study:
        read_annotators(study)
    assert len(estimated) == 2


def test_offset_and_scatter_are_recovered(tmp_path):
    rng = np.random.default_rng(2)
    lines = ["annotator,image,x,y"]
    for who in range(9):
        for i in range(40):
            x, y = 40 + 60 * (i % 8), 40 + 60 * (i // 8)
            dx, dy = rng.normal(0, 2, 2) + ((3, 4) if who == 0 else (0, 0))
            lines.append(f"a{who},field,{x + dx},{y + dy}")
    (tmp_path / "clicks.csv").write_text("\n".join(lines))
    study = tmp_path / "s.rscope"
    assert main(["import", str(study), str(tmp_path / "clicks.csv"), "--extent", "520", "340"]) == 0
    assert main(["run", str(study), "oem"]) == 0
    with Study.open(study) as opened:
        columns = read_annotators(opened).columns
    assert columns["clicks_offset_px_low"][0] < 5 < columns["clicks_offset_px_high"][0]
    assert columns["clicks_scatter_px_low"][0] < 2 < columns["clicks_scatter_px_high"][0]
    assert (columns["clicks_offset_px"][1:] < 1.8).all()


def test_joined_names_are_one_row_and_undo_separates_them(four_study):
    with Study.open(four_study) as study:
        join = study.record(Decision(verb="join", annotators=("Anna K.", "anna")))
        table = read_annotators(study)
        assert "anna" not in table.names
        assert table.all_names("Anna K.") == ("Anna K.", "anna")
        clicks, row = table.of_kind("Anna K.", "clicks")
        assert clicks.items[row] == 3
        assert {value.kind for value in table.values("Anna K.")} == {"clicks", "masks", "labels", "pairs"}
        study.record(Decision(verb="undo", undoes=join.id))
        assert "anna" in read_annotators(study).names


def test_an_exclusion_of_a_joined_name_is_of_all_its_names():
    join = Decision(verb="join", id=1, annotators=("Anna K.", "anna"))
    exclude = Decision(verb="exclude", id=2, annotators=("anna",), reason="test account")
    assert fold([join, exclude]).excluded == {"Anna K.": "test account", "anna": "test account"}
    weigh = Decision(verb="weigh", id=3, annotators=("Anna K.",), subject=WeightSubject(weight=0.5))
    assert fold([join, weigh]).weights == {"Anna K.": 0.5, "anna": 0.5}
    assert fold([join, exclude, Decision(verb="undo", id=3, undoes=1)]).excluded == {"anna": "test account"}


def test_joined_names_count_as_one_annotator_in_fusions_and_reports(four_study, tmp_path, capsys):
    with Study.open(four_study) as study:
        study.record(Decision(verb="join", annotators=("Anna K.", "anna")))
        study.record(Decision(verb="join", annotators=("ben", "cleo")))
        (question,) = study.questions()
        labels = gather_labels([question.id], study).given[question.name].labels
        rows = [labels.annotators.index(name) for name in ("ben", "cleo")]
        assert np.bincount(labels.annotator, minlength=len(labels.annotators))[rows].tolist() == [120, 0]
        clicks = gather_clicks([1], study).given["one.png"]
        assert "cleo" not in clicks.annotators
        assert len(clicks) == len(study.clicks(1))
    fuse_all(four_study)
    captured = capsys.readouterr()
    assert "300 votes by 4 annotators on 60 tasks" in captured.out
    assert "no votes that count" not in captured.err
    assert "no community" not in captured.err
    with Study.open(four_study) as study:
        runs = study.runs.all()
        assert runs[-1].aliases == {"cleo": "ben", "anna": "Anna K."}
        assert study.clicks(1, runs[-4]).annotators == ("anna", "ben", "dan", "eve")
        masks = study.runs.result(runs[-3].id, study.items()["masks"][0].id)
        assert masks.fusions[0].annotators == ("anna", "ben")
        assert not study.shown.outdated(runs[-1], [])
        table = read_annotators(study)
        labels, row = table.of_kind("ben", "labels")
        assert labels.marks[row] == 120
    report = tmp_path / "r.html"
    assert main(["report", str(four_study), "-o", str(report)]) == 0
    text = report.read_text(encoding="utf-8")
    assert "Counted as one annotator: Anna K., anna." in text
    names = exported(four_study, "clicks", tmp_path)
    assert "Anna K." in names
    assert "anna" not in names
    with Study.open(four_study) as study:
        study.record(Decision(verb="separate", annotators=("cleo",)))
        assert "joined" in study.shown.outdated(runs[-1], [])[0]


def test_two_masks_of_one_structure_refuse_to_be_joined(four_study, tmp_path, capsys):
    (tmp_path / "join.csv").write_text("verb,annotators\njoin,anna; ben\n")
    assert main(["decide", str(four_study), str(tmp_path / "join.csv")]) == 1
    assert "one annotator cannot have two masks of a structure" in capsys.readouterr().err
    (tmp_path / "join.csv").write_text("verb,annotators\njoin,Anna K.; anna\n")
    assert main(["decide", str(four_study), str(tmp_path / "join.csv")]) == 0
    assert main(["export", str(four_study), "--what", "decisions", "-o", str(tmp_path / "d.csv")]) == 0
    (row,) = rows_of(tmp_path / "d.csv")
    assert (row["verb"], row["annotators"], row["words"]) == (
        "join", "Anna K.; anna", "join Anna K. and anna",
    )  # fmt: skip


def test_a_preview_lists_the_consequences_of_all_kinds(four_study):
    with Study.open(four_study) as study:
        found = {one.kind: one for one in preview_change(["cleo"], None, study)}
        assert list(found) == ["clicks", "masks", "labels", "pairs"]
        assert [one.noun for one in found.values()] == ["detection", "voxel", "label", "rank"]
        assert found["masks"].total > 0
        assert found["labels"].total == 60
        assert all(one.changed >= len(one.changes) for one in found.values())
        weighed = {kind.kind: kind for kind in preview_change(["cleo"], 0.5, study)}
        assert {kind: each.total for kind, each in weighed.items()} == {
            kind: each.total for kind, each in found.items()
        }
        assert weighed["masks"].changed <= found["masks"].changed


def test_the_preview_of_a_weight_is_what_the_next_fusion_of_every_kind_gives(four_study, tmp_path):
    def consensus(study: Study) -> dict[str, np.ndarray]:
        images = study.items()
        volume = next(entry.id for entry in images["masks"] if study.shown.result(entry.id, "masks"))
        (question,), (comparison,) = study.questions(), study.pair_questions()
        return {
            "masks": study.shown.result(volume, "masks")[1].fusions[0].probability,
            "labels": study.shown.result(question.id, "labels")[1].fusion.posterior,
            "pairs": study.shown.result(comparison.id, "pairs")[1].corrected,
        }

    with Study.open(four_study) as study:
        before = consensus(study)
        previewed = {kind.kind: kind.changed for kind in preview_change(["cleo"], 0.25, study)}
        weigh = Decision(
            verb="weigh", annotators=("cleo",), subject=WeightSubject(weight=0.25), reason="hasty"
        )
        study.record(weigh)
        outdated = {run.kind for run in study.runs.all() if study.shown.outdated(run, run.items)}
        assert outdated == {"clicks", "masks", "labels", "pairs"}
    fuse_all(four_study)
    with Study.open(four_study) as study:
        assert [run.weights for run in study.runs.all()[-4:]] == [{"cleo": 0.25}] * 4
        after = consensus(study)
        assert all(not np.array_equal(before[kind], after[kind]) for kind in before)
        (question,) = study.questions()
        labels = study.shown.result(question.id, "labels")[1].fusion.label()
        assert previewed["labels"] == (before["labels"].argmax(axis=1) != labels).sum()
        again = preview_change(["cleo"], 0.25, study)
        assert [kind.changed for kind in again] == [0, 0, 0, 0]
    table = exported(four_study, "all", tmp_path)
    assert (table["cleo"]["weight"], table["cleo"]["reason"]) == ("0.25", "hasty")
    report = tmp_path / "report.html"
    assert main(["report", str(four_study), "-o", str(report)]) == 0
    assert report.read_text(encoding="utf-8").count("Down-weighted annotators: cleo as ¼ (hasty)") == 4


def test_the_preview_of_a_second_exclusion_includes_the_first_in_every_kind(four_study):
    with Study.open(four_study) as study:
        alone, both = preview_change(["cleo"], None, study), preview_change(["ben", "cleo"], None, study)
        assert [kind.changed for kind in alone] != [kind.changed for kind in both]
        study.record(Decision(verb="exclude", annotators=("ben",), reason="test account"))
        second = preview_change(["cleo"], None, study)
        assert [(kind.kind, kind.changed) for kind in second] == [(kind.kind, kind.changed) for kind in both]
        study.record(Decision(verb="include", annotators=("ben",)))
        half = Decision(verb="weigh", annotators=("ben",), subject=WeightSubject(weight=0.5))
        weighed = preview_change(["ben", "cleo"], 0.5, study)
        study.record(half)
        second = preview_change(["cleo"], 0.5, study)
        assert [kind.changed for kind in second] == [kind.changed for kind in weighed]


def test_courses_follow_an_annotator_through_all_kinds(four_study):
    with Study.open(four_study) as study:
        found = read_courses({"anna", "Anna K."}, study)
    points = {course.kind: course.points for course in found}
    assert points["clicks"] == ("one.png", "two.png", "three.png")
    assert points["labels"][0] == "votes 1 to 10"
    assert len(points["masks"]) == 2


def test_a_folder_of_studies_gives_one_table_and_a_broken_study_is_named(four_study, tmp_path, capsys):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "broken.rscope").write_text("no study")
    with Study.create(tmp_path / "more" / "empty.rscope"):
        pass
    out = tmp_path / "all.csv"
    assert main(["annotators", str(tmp_path), "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert "skipped: " in captured.err
    assert "broken.rscope" in captured.err
    assert {row["study"] for row in rows_of(out)} == {str(four_study)}
    rule = "accuracy < .6 or left_share > .75"
    assert main(["annotators", str(four_study), "--where", rule, "-o", str(out)]) == 0
    assert {row["annotator"] for row in rows_of(out)} == {"eve", "dan"}
    assert main(["annotators", str(four_study), "--where", "skill > 1", "-o", str(out)]) == 1
    assert "There is no column skill" in capsys.readouterr().err


def test_what_an_exclusion_changed_is_reported_once_it_was_fused(four_study):
    with Study.open(four_study) as study:
        study.record(Decision(verb="exclude", annotators=("eve",), reason="careless"))
        assert effects_of_exclusion(["eve"], study) == ()
    assert main(["run", str(four_study), "pooled"]) == 0
    with Study.open(four_study) as study:
        (sentence,) = effects_of_exclusion(["eve"], study)
        assert sentence.startswith("Labels, run 5 without them: ")
        assert "task" in sentence
        assert effects_of_exclusion(["ben"], study) == ()


def test_who_differs_most_from_the_crowd_comes_first(four_study):
    with Study.open(four_study) as study:
        table = read_annotators(study)
        found = find_unusual(table)
        first = table.names[int(found.score.argmax())]
        assert first in ("eve", "dan")
        assert found.words[table.index["ben"]] == ""
        marked = {name for name, mask in found.marked.items() if mask[table.index["eve"]]}
        assert "labels_accuracy" in marked


def test_a_flag_is_in_table_and_export_and_no_fusion_uses_it(four_study, tmp_path):
    (tmp_path / "flag.csv").write_text("verb,annotators,reason\nmark,eve; dan,ask them\nunmark,dan,\n")
    with Study.open(four_study) as study:
        before = fold(study.decisions())
    assert main(["decide", str(four_study), str(tmp_path / "flag.csv")]) == 0
    with Study.open(four_study) as study:
        state = fold(study.decisions())
        assert state.flagged == {"eve": "ask them"}
        assert not any(differ(before, state, kind) for kind in ("clicks", "masks", "labels", "pairs"))
        study.record(Decision(verb="exclude", annotators=("eve",), reason="careless"))
        study.record(Decision(verb="undo", undoes=2))
        state = fold(study.decisions())
        assert state.flagged == {"eve": "ask them", "dan": "ask them"}
        assert [state.status(number) for number in (1, 2, 3)] == ["in effect", "undone", "in effect"]
    assert main(["annotators", str(four_study), "-o", str(tmp_path / "a.csv"), "--where", "flagged = 1"]) == 0
    rows = {row["annotator"]: row for row in rows_of(tmp_path / "a.csv")}
    assert set(rows) == {"eve", "dan"}
    assert (rows["eve"]["flag_reason"], rows["eve"]["reason"]) == ("ask them", "careless")
