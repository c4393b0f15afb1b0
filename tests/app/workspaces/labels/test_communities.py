"""Communities on the labels screen: several groupings, over time, selected everywhere."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from raterscope.algorithms.annotators.communities import CommunitySettings, communities
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.labels.result import Copying, LabelResult
from raterscope.algorithms.progress import silent
from raterscope.app.formats.records import LabelTable
from raterscope.app.kinds.labels.runs import describe_groups, fuse_inputs, gather, keep
from raterscope.app.outcome import Outcome
from raterscope.app.study import Study
from raterscope.app.study.arrays import pack, unpack
from raterscope.app.study.kinds import mismatch_of_labels
from raterscope.app.study.labels import add_votes
from raterscope.app.workspaces.labels import communities as showing
from raterscope.app.workspaces.labels.scene import (
    analyse,
    find_groups,
    follow_groups,
    obstacle,
    read_scene,
    similarity_of,
)
from tests.app.driving import LONG, idle, open_study

PEOPLE, TASKS, EACH = 24, 200, 100
CLASSES = ("healthy", "infected")
TURNED = (1, 3, 5)
"""They were careful for the first half of their votes, where the answer is made to say so."""

DAY = 86400.0


def is_careful() -> np.ndarray:
    return np.arange(PEOPLE) % 2 == 0


def is_early() -> np.ndarray:
    """Return the annotators who worked on the first half of the tasks."""
    return np.arange(PEOPLE) < PEOPLE // 2


def table(*, times: bool = True, each: int = EACH) -> LabelTable:
    """Half are careful, half always say healthy; half work on the first tasks, half on the others."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, TASKS)
    annotator, task, label, time = [], [], [], []
    for annotators in range(PEOPLE):
        mine = rng.permutation(EACH)[:each] + (0 if is_early()[annotators] else EACH)
        careful = np.full(each, is_careful()[annotators])
        right = np.where(rng.random(each) < 0.95, truth[mine], 1 - truth[mine])
        annotator += [annotators] * each
        task += mine.tolist()
        label += np.where(careful, right, 0).tolist()
        time += (np.arange(each) * DAY + 1e9 + annotators).tolist()
    order = np.argsort(time, kind="stable")
    columns = [np.array(column)[order] for column in (annotator, task, label, time)]
    return LabelTable(
        Path("votes.csv"), "Infected?", tuple(f"ann {n:02}" for n in range(PEOPLE)),
        tuple(f"cell-{n:03}" for n in range(TASKS)), CLASSES, columns[0].astype(np.int32),
        columns[1].astype(np.int32), columns[2].astype(np.int16), columns[3] if times else None,
    )  # fmt: skip


def make(path: Path, algorithm: str, votes: LabelTable | None = None, **settings: str) -> Path:
    with Study.create(path) as study:
        add_votes(study, votes or table())
        numbers = [question.id for question in study.questions()]
        answer = fuse_inputs(gather(numbers, study), LabelPlan.make(algorithm, settings))
        if algorithm == "dynibcc":
            answer = replace(
                answer, outcomes={name: turned(outcome) for name, outcome in answer.outcomes.items()}
            )
        keep(answer, study)
    return path


def turned(outcome: Outcome[LabelResult]) -> Outcome[LabelResult]:
    """Let some be careful for the first half of their votes, as a careful one was."""
    fusion = outcome.fusion.fusion
    drift = fusion.drift
    alpha = drift.alpha.copy()
    for annotator in TURNED:
        alpha[drift.steps(annotator)][: EACH // 2] = drift.alpha[drift.steps(0)][: EACH // 2]
    fusion = replace(fusion, drift=replace(drift, alpha=alpha))
    return replace(outcome, fusion=replace(outcome.fusion, fusion=fusion))


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("dynamic") / "dynamic.rscope", "dynibcc")


@pytest.fixture
def opened(window, qtbot, dynamic, tmp_path):
    return show(window, qtbot, shutil.copy(dynamic, tmp_path / "cells.rscope"))


def show(window, qtbot, path: Path):
    open_study(window, qtbot, path)
    return window.workspace


def switch(workspace, window, qtbot, basis: str, method: str = "nmf"):
    grouping = workspace.annotator_detail.grouping
    for modes, name in ((grouping.bases, basis), (grouping.methods, method)):
        qtbot.mouseClick(modes.buttons[name], Qt.MouseButton.LeftButton)
        idle(window, qtbot)


def cards(workspace) -> list[str]:
    return [card.accessibleName() for card in workspace.cards.cards]


def words(workspace) -> str:
    return workspace.cards._label.text()


def split_of(workspace) -> np.ndarray:
    """Every annotator's community, as the wall draws it."""
    return workspace.wall._view.community


def is_split_by(result: np.ndarray, kind: np.ndarray) -> bool:
    return len(set(zip(result.tolist(), kind.tolist(), strict=True))) == len(set(result.tolist())) == 2


def test_annotators_are_grouped_by_common_tasks_everywhere_and_a_community_is_chosen(opened, window, qtbot):
    assert is_split_by(split_of(opened), is_careful())
    assert words(opened).startswith("by behaviour, Bayesian factorisation | modularity 0.")
    before = cards(opened)
    switch(opened, window, qtbot, "tasks")
    assert is_split_by(split_of(opened), is_early())
    assert words(opened).startswith("by common tasks, Bayesian factorisation")
    assert [name.split(":")[0] for name in cards(opened)] == ["Community 1", "Community 2"]
    assert all("12 members, 50 % of votes, accuracy 0." in name for name in cards(opened))
    opened.middle_tabs.setCurrentIndex(2)
    idle(window, qtbot)
    figure = opened.similarity.figure
    assert "share of their tasks" in figure.text_of((0, 1))
    assert opened.participation.figure._communities == ("community 1", "community 2")
    switch(opened, window, qtbot, "tasks", "louvain")
    assert "Louvain" in words(opened)
    assert is_split_by(split_of(opened), is_early())
    switch(opened, window, qtbot, "behaviour")
    assert cards(opened) == before
    assert "similarity" in figure.text_of((0, 1))
    started = []
    window.jobs.updated.connect(lambda job: started.append(job.title))
    switch(opened, window, qtbot, "tasks")
    assert is_split_by(split_of(opened), is_early())
    assert not any("Grouping" in title for title in started)  # both are known

    switch(opened, window, qtbot, "tasks")
    number = int(split_of(opened)[0])
    opened.annotator_detail.choose_community(number)
    assert opened.session.selection == tuple(range(PEOPLE // 2))
    opened.queue.filter_changed.emit("", "community")
    idle(window, qtbot)
    assert sorted(opened.tasks._order.tolist()) == list(range(EACH))
    switch(opened, window, qtbot, "behaviour")
    assert opened.annotator_detail.community is None
    opened.annotator_detail.choose_community(int(split_of(opened)[0]))
    assert set(opened.session.selection) == set(np.flatnonzero(is_careful()).tolist())

    opened.middle_tabs.setCurrentIndex(2)
    idle(window, qtbot)
    assert opened.similarity.figure.text_of((0, 1)).startswith("ann ")
    opened.session.set_blind(True)
    assert "ann " not in opened.similarity.figure.text_of((0, 1))


@pytest.fixture
def held(monkeypatch):
    """The search waits until it is let go, or cancelled."""
    go = threading.Event()

    def wait(scene, analysis, way, watch):
        while not go.wait(0.01):
            watch(0.3, "waiting")
        return find_groups(scene, analysis, way, watch)

    monkeypatch.setattr(showing, "find_groups", wait)
    yield go
    go.set()


def test_a_cancelled_search_keeps_the_grouping_shown(opened, window, qtbot, held):
    grouping, before = opened.annotator_detail.grouping, cards(opened)
    for where in ("here", "jobs"):
        qtbot.mouseClick(grouping.bases.buttons["tasks"], Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: "grouping: 30 %" in opened.cards.header._subtitle.text(), timeout=LONG)
        assert grouping.stop.isVisible()
        assert cards(opened) == before
        if where == "here":
            qtbot.mouseClick(grouping.stop, Qt.MouseButton.LeftButton)
        else:
            (key,) = (job.key for job in window.jobs._jobs.values() if job.title.startswith("Grouping"))
            window.jobs.cancel(key)
        idle(window, qtbot)
        assert (grouping.bases.mode, cards(opened)) == ("behaviour", before)
        assert "2 found" in opened.cards.header._subtitle.text()
        assert not grouping.stop.isVisible()
    held.set()
    switch(opened, window, qtbot, "tasks")
    assert is_split_by(split_of(opened), is_early())


def test_a_new_choice_replaces_the_running_search(opened, window, qtbot, held):
    grouping = opened.annotator_detail.grouping
    qtbot.mouseClick(grouping.bases.buttons["tasks"], Qt.MouseButton.LeftButton)
    qtbot.mouseClick(grouping.methods.buttons["louvain"], Qt.MouseButton.LeftButton)
    held.set()
    idle(window, qtbot)
    assert words(opened).startswith("by common tasks, Louvain")
    assert set(grouping._groupings) == {("behaviour", "nmf"), ("tasks", "louvain")}


def test_communities_over_time_show_changes_and_those_of_tasks_follow_the_calendar(opened, window, qtbot):
    opened.middle_tabs.setCurrentWidget(opened.flow)
    idle(window, qtbot)
    assert opened.flow.filled
    over = opened.annotator_detail.flowing.course.over
    assert len(over.moments) == 5
    np.testing.assert_array_equal(over.of(4), split_of(opened))  # numbered as the cards are
    careful = int(split_of(opened)[0])
    for moment, where in enumerate((careful, careful, 1 - careful, 1 - careful, 1 - careful)):
        assert {int(over.of(moment)[annotator]) for annotator in TURNED} == {where}
    here = int(np.flatnonzero(over.identity[1] == careful)[0])
    there = int(np.flatnonzero(over.identity[2] == 1 - careful)[0])
    assert "3 annotators from" in opened.flow.figure.text_of((1, here, there))
    opened.flow.band_chosen.emit(1, here, there)
    assert opened.session.selection == TURNED
    assert set(opened.wall.selected) == set(TURNED)
    opened.flow.block_chosen.emit(4, careful)
    assert set(opened.session.selection) == set(np.flatnonzero(is_careful()).tolist())

    switch(opened, window, qtbot, "tasks")
    opened.middle_tabs.setCurrentWidget(opened.flow)
    idle(window, qtbot)
    view = opened.annotator_detail.flowing.course.view
    assert view.moments[-1] == "after all votes"
    assert view.moments[0].startswith("until 2001-")
    assert [each.tolist() for each in view.numbers] == [[0, 1]] * 3
    assert opened.flow.summary == "Every community goes on from the first moment to the last."


def test_a_search_over_time_can_be_stopped_and_taken_up(opened, window, qtbot, monkeypatch):
    from raterscope.app.workspaces.labels import communities

    go = threading.Event()

    def wait(scene, analysis, groups, watch):
        while not go.wait(0.01):
            watch(0.5, "waiting")
        return follow_groups(scene, analysis, groups, watch)

    monkeypatch.setattr(communities, "follow_groups", wait)
    opened.middle_tabs.setCurrentWidget(opened.flow)
    qtbot.waitUntil(lambda: "50 %" in opened.flow.summary, timeout=LONG)
    qtbot.mouseClick(opened.annotator_detail.flowing.stop, Qt.MouseButton.LeftButton)
    idle(window, qtbot)
    assert opened.flow.summary == "Following the communities was cancelled."
    go.set()
    qtbot.mouseClick(opened.annotator_detail.flowing.follow, Qt.MouseButton.LeftButton)
    idle(window, qtbot)
    assert opened.flow.filled


def test_a_static_result_names_the_missing_input(window, qtbot, tmp_path):
    workspace = show(window, qtbot, make(tmp_path / "static.rscope", "ibcc", table(times=False)))
    workspace.middle_tabs.setCurrentWidget(workspace.flow)
    idle(window, qtbot)
    assert not workspace.flow.filled
    assert "fuse with dynamic IBCC" in workspace.flow.summary
    switch(workspace, window, qtbot, "tasks")
    assert "these have none" in workspace.flow.summary


def test_an_answer_without_communities_offers_to_find_them(window, qtbot, tmp_path):
    workspace = show(window, qtbot, make(tmp_path / "without.rscope", "ibcc", communities="no"))
    grouping = workspace.annotator_detail.grouping
    assert not cards(workspace)
    assert grouping.find.isVisible()
    qtbot.mouseClick(grouping.find, Qt.MouseButton.LeftButton)
    idle(window, qtbot)
    assert is_split_by(split_of(workspace), is_careful())
    assert not grouping.find.isVisible()


def test_too_few_votes_are_given_as_the_reason(window, qtbot, tmp_path):
    workspace = show(window, qtbot, make(tmp_path / "few.rscope", "ibcc", table(each=5)))
    for basis in ("behaviour", "tasks"):
        switch(workspace, window, qtbot, basis)
        assert not cards(workspace)
        assert "24 annotators" in workspace.cards._nothing.text()
    workspace.middle_tabs.setCurrentIndex(2)
    workspace.middle_tabs.setCurrentWidget(workspace.flow)
    idle(window, qtbot)
    assert not workspace.flow.filled


@pytest.fixture(scope="module")
def looked_at(dynamic, tmp_path_factory):
    path = shutil.copy(dynamic, tmp_path_factory.mktemp("looked") / "at.rscope")
    with Study.open(path) as study:
        scene = read_scene(study.questions()[0].id, None, study, silent)
    return scene, analyse(scene, silent)


@pytest.mark.parametrize("most", [500, 7])
def test_tasks_in_common_are_drawn_as_means_over_those_of_two_rows(looked_at, monkeypatch, most):
    scene, analysis = looked_at
    monkeypatch.setattr("raterscope.app.workspaces.labels.scene.MAX_ROWS", most)
    drawn = similarity_of(scene, analysis, find_groups(scene, analysis, ("tasks", "nmf"), silent), silent)
    votes = set(zip(scene.labels.annotator.tolist(), scene.labels.task.tolist(), strict=True))
    done = [{task for annotators, task in votes if annotators == annotator} for annotator in range(PEOPLE)]
    links = np.array([[len(a & b) / (len(a) + len(b)) * 2 for b in done] for a in done])
    np.fill_diagonal(links, np.nan)
    assert sorted(np.concatenate(drawn.rows).tolist()) == list(range(PEOPLE))
    for at, row in enumerate(drawn.rows):
        for to, column in enumerate(drawn.rows):
            block = links[np.ix_(row, column)]
            known = block[np.isfinite(block)]
            wanted = known.mean() if len(known) else np.nan
            np.testing.assert_allclose(drawn.values[at, to], wanted, rtol=1e-5)
    assert (drawn.weights > 0).all()


def test_similarity_is_drawn_at_the_scale_at_which_communities_were_found(looked_at):
    scene, analysis = looked_at
    wide, narrow = (
        similarity_of(
            scene,
            analysis,
            describe_groups(
                scene.labels,
                communities(analysis.mean, analysis.votes_of, CommunitySettings(scale=scale)),
                analysis.accuracy[0],
            ),
            silent,
        )
        for scale in (2.0, 20.0)
    )
    first, second = (
        dict(zip(np.concatenate(annotator.rows).tolist(), range(PEOPLE), strict=True))
        for annotator in (wide, narrow)
    )
    for a, b in ((0, 1), (2, 4), (5, 20)):
        loose = wide.values[first[a], first[b]]
        assert narrow.values[second[a], second[b]] == pytest.approx(loose**10, rel=1e-3)


def test_votes_without_time_are_in_no_early_moment(looked_at):
    scene, analysis = looked_at
    unknown = scene.labels.time.copy()
    unknown[scene.labels.annotator == 0] = np.nan
    partly = replace(scene, labels=replace(scene.labels, time=unknown))
    groups = find_groups(partly, analysis, ("tasks", "louvain"), silent)
    assert obstacle(partly, groups) == ""
    course = follow_groups(partly, analysis, groups, silent)
    assert [int(course.over.of(moment)[0]) for moment in (0, 1)] == [-1, -1]
    assert course.over.of(2)[0] >= 0
    assert 0 in course.block(0, course.over.moments[0].count)


def a_result(scene, result) -> LabelResult:
    return LabelResult(scene.fusion, "measure", result)


def kept(result: LabelResult) -> LabelResult:
    size, chunks = pack(result)
    return unpack(LabelResult, size, list(chunks))


def test_communities_are_kept_as_they_were_found_also_none(looked_at):
    scene, analysis = looked_at
    sizes = TASKS, PEOPLE, len(scene.labels)
    for least in (10, 1000):
        groups = communities(analysis.mean, analysis.votes_of, CommunitySettings(min_votes=least))
        assert groups.count == (2 if least == 10 else 0)
        second = kept(a_result(scene, groups))
        assert mismatch_of_labels(second, *sizes) is None
        assert (second.communities.scale, second.communities.notices) == (groups.scale, groups.notices)
        np.testing.assert_array_equal(second.communities.prototype, groups.prototype)


def test_communities_that_cannot_be_are_found_out(looked_at):
    scene, analysis = looked_at
    sizes = TASKS, PEOPLE, len(scene.labels)
    groups = communities(analysis.mean, analysis.votes_of)
    twice = groups.members.copy()
    twice[1] = twice[0]
    wrong = {
        "prototype": groups.prototype[:, :, :1],
        "scale": float("nan"),
        "modularity": float("inf"),
        "participation": groups.participation * np.float32(np.nan),
        "members": twice,
        "community": groups.community.astype(np.float64),
    }
    assert mismatch_of_labels(a_result(scene, groups), *sizes) is None
    for name, value in wrong.items():
        assert mismatch_of_labels(a_result(scene, replace(groups, **{name: value})), *sizes), name


def test_copying_that_cannot_be_is_found_out(looked_at):
    scene, _ = looked_at
    sizes = TASKS, PEOPLE, len(scene.labels)
    two = np.array([[0, 1], [2, 5]], dtype=np.int32)
    copying = Copying(two, np.array([9, 8]), np.array([9, 7]), np.array([4.0, 3.5]))
    assert mismatch_of_labels(replace(a_result(scene, None), copying=copying), *sizes) is None
    wrong = {
        "pairs": [two + PEOPLE, two[:, :1], two.astype(np.float64)],
        "common": [copying.common[:1]],
        "expected": [np.array([4.0, np.nan]), np.array([4.0, 8.0])],
    }
    for name, values in wrong.items():
        for value in values:
            broken = replace(copying, **{name: value})
            assert mismatch_of_labels(replace(a_result(scene, None), copying=broken), *sizes), name
