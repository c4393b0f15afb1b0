"""Report of labels: the planted figures, with escaped text."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.app.formats.image_heads import read_image
from raterscope.app.kinds.labels import runs
from raterscope.app.kinds.labels.runs import read_answer
from raterscope.app.report import write_report
from raterscope.app.review import Decision, TaskSubject
from raterscope.app.study import Study
from raterscope.app.study.labels import link_pictures
from tests.app.kinds.labels.made import LAZY, LIAR, PEOPLE, TASKS, make_study, write_truth, write_votes
from tests.app.tables import write


def fuse(study, algorithm="ibcc", **about):
    inputs = runs.gather([question.id for question in study.questions()], study)
    plan = LabelPlan.make(algorithm)
    plan = replace(plan, about=replace(plan.about, **about))
    return runs.keep(runs.fuse_inputs(inputs, plan), study)


@pytest.fixture
def labels(tmp_path):
    """The planted crowd, all truths known, one task on which two annotators differ and no other voted."""
    votes = write_votes(tmp_path / "votes.csv", times=True)
    lines = [line for line in votes.read_text(encoding="utf-8").splitlines() if ",t7," not in line]
    votes.write_text("\n".join([*lines, "good 0,t7,cat,1", "good 1,t7,dog,2"]), encoding="utf-8")
    path = make_study(tmp_path / "crowd.rscope", votes, write_truth(tmp_path / "truth.csv"))
    with Study.open(path) as opened:
        yield opened


def rows_under(report, columns):
    return [[cell.strip() for cell in row] for row in report.rows if len(row) == columns]


def test_methods_are_held_against_the_truth_and_the_vote(labels, page):
    fuse(labels, "dynibcc")
    fuse(labels)
    report = page(labels)
    methods = {row[0]: row for row in rows_under(report, 8)}
    assert {"IBCC", "majority vote", "dynamic IBCC (run 1)"} <= set(methods)
    for name in ("IBCC", "majority vote"):
        assert methods[name][1] == str(TASKS)
        right = float(methods[name][2].split()[0])
        assert right >= (TASKS - 1) / TASKS - 0.001


def test_the_crowds_matrix_is_that_of_all_votes(labels, page):
    fuse(labels)
    report = page(labels)
    # Nine of eleven are good, wrong on a tenth of the tasks; of the others one is always wrong on dogs, and
    # one always says cat.
    cat, dog = report.row("cat", 4), report.row("dog", 4)
    assert float(cat[1].split()[0]) == pytest.approx((9 * 0.9 + 1) / 11, abs=0.02)
    assert float(dog[2].split()[0]) == pytest.approx(9 * 0.9 / 11, abs=0.02)


def test_annotators_are_ranked_and_no_annotator_is_markup(labels, page):
    labels.record(Decision(verb="exclude", annotators=("good 8",), reason="<i>asleep</i>"))
    fuse(labels)
    report = page(labels)
    assert LAZY in report.text
    assert "good 8 (excluded: <i>asleep</i>)" in report.text
    assert "i" not in {tag for tag, _ in report.tags}
    ranked = [row[0] for row in rows_under(report, 5) if row[0] in PEOPLE]
    assert ranked[-1] == LIAR
    assert ranked.index(LAZY) == len(ranked) - 2
    behaviour = report.row(LIAR, 5)[4]
    assert behaviour == "the wrong way round"


def test_the_disputed_task_is_reported_until_it_is_decided(labels, page):
    run = fuse(labels)
    report = page(labels)
    cells = report.row("t7", 4)
    assert "cat: 1" in cells[3]
    assert "dog: 1" in cells[3]
    likely, doubt = max(float(share) for share in re.findall(r"0\.\d+", cells[1])), float(cells[2])
    assert doubt == pytest.approx(1 - likely, abs=0.011)
    question = labels.questions()[0].id
    subject = TaskSubject(task="t7", label="cat")
    labels.record(Decision(verb="label", item=question, run=run, subject=subject, reason="seen"))
    report = page(labels)
    assert "t7" not in {row[0] for row in rows_under(report, 4)}
    assert "are not included" in report.text
    assert "label t7 as cat" in report.text
    fuse(labels)
    report = page(labels)
    assert "are not included" not in report.text
    assert "1 task of labels" in report.text


def test_tasks_in_dispute_are_shown(labels, page, tmp_path):
    Image.new("RGB", (400, 200), (10, 200, 30)).save(tmp_path / "t7.png")
    labels.add_images([read_image(tmp_path / "t7.png")])
    assert link_pictures(labels) == 1
    fuse(labels)
    report = page(labels)
    colours = []
    for tag, attributes in report.tags:
        if tag == "img":
            with Image.open(io.BytesIO(base64.b64decode(attributes["src"].split(",", 1)[1]))) as image:
                colours.append((image.size, image.convert("RGB").getpixel((5, 5))))
    assert ((260, 130), (10, 200, 30)) in colours


def test_annotators_who_change_are_listed_with_the_vote_of_the_change(tmp_path, page):
    """Six steady people, and one who says dog to everything from the hundredth task on."""
    rng = np.random.default_rng(4)
    true = np.arange(300) % 2
    rows = []
    for t in range(300):
        for k in range(7):
            right = rng.random() < 0.9
            label = true[t] if right else 1 - true[t]
            rows.append([f"w{k}", f"t{t}", ("cat", "dog")[1 if k == 6 and t >= 100 else label], str(60 * t)])
    path = write(tmp_path / "votes.csv", ["annotator", "task", "label", "time"], rows)
    with Study.open(make_study(tmp_path / "s.rscope", path)) as study:
        fuse(study, "dynibcc")
        report = page(study)
    first = next(row for row in rows_under(report, 5) if row[0] == "w6" and "vote" in row[4])
    changed = re.search(r"vote (\d+): of cat says cat less often", first[4])
    assert changed is not None
    assert 95 <= int(changed[1]) <= 105
    assert first[3].startswith("\N{MINUS SIGN}")


def test_every_setting_is_in_the_methods(labels, page):
    fuse(labels, "gibbs", community_min_votes=7)
    report = page(labels)
    plan = LabelPlan.make("gibbs", {"community_min_votes": "7"})
    settings = plan.settings
    for spec in settings.specs():
        assert f"{spec.label.lower()} {spec.in_words(getattr(settings, spec.name))}" in report.text
    assert plan.about.in_words(("truths", "counting")) in report.text
    assert "minimum votes 7" in report.text
    assert f"seed {settings.seed}" in report.text


def test_the_weight_of_a_vote_is_reported_unless_it_is_one(labels, page):
    fuse(labels)
    assert "Weight of a vote" not in page(labels).text
    fuse(labels, counting="predictive")
    power = read_answer(labels, labels.questions()[0]).result.fusion.power
    cells = [row for row in page(labels).rows if row[0] == "Weight of a vote"]
    assert cells == ([["Weight of a vote", f"{power:.2g}"]] if power != 1.0 else [])


def test_one_question_of_two(tmp_path, page):
    files = [write_votes(tmp_path / f"{name}.csv", question=f"{name}?") for name in ("first", "second")]
    with Study.open(make_study(tmp_path / "two.rscope", *files)) as study:
        fuse(study)
        report = page(study, question=study.questions()[1].id)
    assert ["Only", "second?"] in report.rows
    assert "first?" not in report.text


def test_without_a_truth_or_a_model_there_is_still_a_report(tmp_path):
    rows = [["a", "t1", "x"], ["b", "t1", "x"]]
    path = write(tmp_path / "votes.csv", ["annotator", "task", "label"], rows)
    with Study.open(make_study(tmp_path / "s.rscope", path)) as study:
        for algorithm in ("majority", "dynibcc", "mean-score"):
            fuse(study, algorithm)
            assert write_report(study, tmp_path / "report.html").stat().st_size > 1000
