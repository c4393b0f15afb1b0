"""A source that is followed: nothing of it is lost or repeated, however often the watch is cut short."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.clicks.fusion import DIFFERENCE, FusionPlan, fuse
from raterscope.algorithms.clicks.image_priors import Experience
from raterscope.algorithms.clicks.stopping import count_changes
from raterscope.algorithms.simulation.click_crowds import gather_annotators as gather_crowd
from raterscope.algorithms.simulation.click_crowds import simulate_clicks
from raterscope.algorithms.simulation.smears import Smear
from raterscope.app.kinds.clicks.live_source import LiveSource, WatchRequest
from raterscope.app.kinds.clicks.live_watching import WatchedImage, WatchPlan, follow_image, read_pending
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather
from raterscope.app.review import Decision, SpotSubject, View, WeightSubject
from raterscope.app.study import Study, digest_of

OBJECTS = np.array([[20.0, 20.0], [60.0, 30.0], [40.0, 80.0], [85.0, 70.0]])
PEOPLE = 9

Row = tuple[str, str, str, str]


def crowd(images: Sequence[str] = ("a.png", "b.png"), seed: int = 0) -> list[list[Row]]:
    """Return each annotator's clicks on each image: most of the objects, and sometimes a stray position."""
    rng = np.random.default_rng(seed)
    visits = []
    for person in range(PEOPLE):
        for image in images:
            seen_objects = OBJECTS[rng.random(len(OBJECTS)) < 0.85]
            seen_objects = seen_objects + rng.normal(0, 1.5, seen_objects.shape)
            stray = rng.uniform(0, 100, (rng.integers(0, 2), 2))
            positions = np.concatenate([seen_objects, stray])
            visits.append([(f"W{person}", image, f"{x:.2f}", f"{y:.2f}") for x, y in positions])
    return visits


def place_smear(seed: int) -> Smear:
    """Place few structures and many artefacts, well apart; draw no picture."""
    rng = np.random.default_rng(seed)
    cells = np.array([(80 + 160 * x, 80 + 160 * y) for x in range(8) for y in range(6)])
    places = rng.permutation(cells)[:18] + rng.uniform(-40, 40, (18, 2))
    picture = np.zeros((960, 1280, 3), dtype=np.uint8)
    return Smear(picture, places[:4], rng.beta(1.9, 1.3, 4), places[4:], np.sort(rng.beta(1.6, 2.0, 14)))


def write(path: Path, visits: Sequence[Sequence[Row]]) -> None:
    """Append rows as a crowd's server does."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        table = csv.writer(file)
        if new:
            table.writerow(("annotator", "image", "x", "y"))
        table.writerows(row for visit in visits for row in visit)


def wish_for(source: Path) -> WatchRequest:
    return WatchRequest(source, WatchPlan(), {}, (100.0, 100.0))


def go_on(following: LiveSource, study: Study) -> None:
    """Look once, and take up all that came."""
    following.store(study, following.look())
    images = following.gather(study)
    for _ in following.advance(images):
        pass
    following.keep(study, images)


def afresh(study: Study, image: int) -> WatchedImage:
    """Follow an image's clicks from the first, with nothing of what is kept."""
    plan = WatchPlan()
    pending = read_pending(study, [image], plan, {}, 0)[image]
    *_, last = follow_image(None, pending, Experience.none, plan)
    return last


def assert_same(first: WatchedImage, second: WatchedImage) -> None:
    for part in ("mean", "covariance", "weight", "inlier", "nearest", "reliability"):
        np.testing.assert_array_equal(
            getattr(first.fusion.clustering, part), getattr(second.fusion.clustering, part)
        )
    np.testing.assert_array_equal(first.fusion.marked, second.fusion.marked)
    np.testing.assert_array_equal(first.fusion.detection.posterior, second.fusion.detection.posterior)
    np.testing.assert_array_equal(first.history.changed, second.history.changed)
    np.testing.assert_array_equal(first.history.chance, second.history.chance)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict from fewer draws: they take most of the time."""
    monkeypatch.setattr("raterscope.algorithms.clicks._predictive.DRAWS", 8)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "clicks.csv"


def test_cut_short_anywhere_it_comes_to_the_same(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "watched.rscope"
    Study.create(path).close()
    visits = crowd(("a.png",))
    for turn in range(0, len(visits), 2):
        write(source, visits[turn : turn + 2])
        with Study.open(path) as study:
            following = LiveSource(study, wish_for(source))
            assert following.resumed == (turn > 0)
            if turn % 4 == 0:  # ends before anything was stored
                following.look()
                following = LiveSource(study, wish_for(source))
            following.store(study, following.look())
            if turn % 6 == 0:  # ends before anything was taken up
                following = LiveSource(study, wish_for(source))
            steps = following.advance(following.gather(study))
            next(steps)  # ends before the second annotator is kept
            following.keep(study, list(following.watched))
    with Study.open(path) as study:
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        (image,) = study.images()
        assert len(study.clicks(image.id)) == sum(map(len, visits))
        assert study.annotators() == [f"W{number}" for number in range(PEOPLE)]
        assert len(following.watched[image.id].history) == PEOPLE
        assert_same(following.watched[image.id], afresh(study, image.id))


def test_what_it_comes_to_is_kept_as_a_run_of_the_study(source: Path, tmp_path: Path) -> None:
    write(source, crowd())
    with Study.create(tmp_path / "watched.rscope") as study:
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        run = following.keep_run(study)
        assert run is not None
        (entry,) = study.runs.all()
        assert entry.algorithm == "online oem + dem"
        assert entry.seed == 0
        assert entry.digest == digest_of(gather([image.id for image in study.images()], study).given)
        for image in study.images():
            stored, clicks = study.runs.result(run, image.id), study.clicks(image.id, entry)
            by_batch = fuse(clicks, FusionPlan())
            assert stored.detection.detected.sum() == by_batch.detection.detected.sum() == len(OBJECTS)
            for name in clicks.annotators:  # each annotator's votes are his own
                marked_here, marked_there = stored.marked[clicks.annotators.index(name)], clicks.annotator
                own_index = clicks.annotators.index(name)
                assert marked_here.sum() <= (marked_there == own_index).sum()


def test_the_run_kept_is_that_of_a_fusion_in_whatever_order_the_clicks_came(
    source: Path, tmp_path: Path
) -> None:
    people = gather_crowd(24, 6)
    visits: list[list[Row]] = []
    for number in range(1, 4):
        clicks = simulate_clicks(place_smear(6 + number), people[number % 2 :: 2], number)
        for index, name in enumerate(clicks.annotators):
            positions = clicks.points[clicks.annotator == index]
            visits.append([(name, f"{number}.png", f"{x:.2f}", f"{y:.2f}") for x, y in positions.tolist()])
    turn = np.random.default_rng(1).permutation(len(visits)).tolist()
    write(source, [visits[visit] for visit in turn])
    with Study.create(tmp_path / "watched.rscope") as study:
        following = LiveSource(study, WatchRequest(source, WatchPlan(), {}, (1280.0, 960.0)))
        go_on(following, study)
        assert following.is_settling_due
        assert DIFFERENCE in following.settling_notice
        on_its_way = {image: answer.fusion for image, answer in following.watched.items()}
        run = following.keep_run(study)
        assert run is not None
        assert following.is_settled
        answer = fuse_inputs(gather([image.id for image in study.images()], study), FusionPlan())
        fused = {answer.inputs.items[name]: outcome.fusion for name, outcome in answer.outcomes.items()}
        stored = {image: study.runs.result(run, image) for image in fused}
        assert sum(count_changes(stored[image], fused[image]) for image in fused) == 0
        by_halves = [(stored[image].halves.sum(), fused[image].halves.sum()) for image in fused]
        assert all(abs(int(first) - int(second)) <= 1 for first, second in by_halves)
        changed = sum(count_changes(on_its_way[image], fused[image]) for image in fused)
        assert changed > 5
        assert f"changed {changed} decisions" in following.settling_notice
        for image, one in following.watched.items():
            assert one.history.detections[-1] == stored[image].detection.detected.sum()
            assert one.outlook.share <= 1


def test_an_image_is_settled_and_stays_so(source: Path, tmp_path: Path) -> None:
    write(source, crowd(("a.png",)))
    with Study.create(tmp_path / "watched.rscope") as study:
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        (watched,) = following.watched.values()
        assert not watched.history.firm[0]
        assert watched.firm
        assert watched.history.annotators.tolist() == list(range(1, PEOPLE + 1))


def test_what_the_expert_decides_is_held_fixed_with_the_next_look(source: Path, tmp_path: Path) -> None:
    write(source, crowd(("a.png",)))
    with Study.create(tmp_path / "watched.rscope") as study:
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        (image,) = study.images()
        steps = len(following.watched[image.id].history)
        x, y = following.watched[image.id].fusion.clustering.mean[0].tolist()
        study.record(Decision(verb="reject", item=image.id, subject=SpotSubject(x=x, y=y, number=1)))
        assert following.gather(study) == [image.id]
        go_on(following, study)
        fusion = following.watched[image.id].fusion
        nearest = np.argmin(np.hypot(*(fusion.clustering.mean - (x, y)).T))
        assert fusion.verdict[nearest] == 0
        assert not fusion.detection.detected[nearest]
        assert len(following.watched[image.id].history) == steps
        assert following.gather(study) == []


def test_who_is_excluded_leaves_it_as_if_he_had_never_come(source: Path, tmp_path: Path) -> None:
    write(source, crowd(("a.png",)))
    with Study.create(tmp_path / "watched.rscope") as study:
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        (image,) = study.images()
        study.record(Decision(verb="exclude", annotators=("W3",), reason="bored"))
        go_on(following, study)
        watched = following.watched[image.id]
        assert watched.fusion.marked.shape[0] == PEOPLE - 1
        assert_same(watched, afresh(study, image.id))
        assert following.keep_run(study) is not None
        assert study.runs.all()[0].excluded == ("W3",)


@pytest.mark.parametrize("decided", [True, False])
def test_what_the_expert_does_just_before_the_end_drops_no_image(
    source: Path, tmp_path: Path, decided: bool
) -> None:
    write(source, crowd())
    with Study.create(tmp_path / "watched.rscope") as study:
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        first, second = (image.id for image in study.images())
        x, y = (float(value) for value in following.watched[first].fusion.clustering.mean[0])
        if decided:
            study.record(Decision(verb="reject", item=first, subject=SpotSubject(x=x, y=y)))
        else:
            study.views.record([View(image=first, x=x, y=y, seconds=9.0)])
        run = following.keep_run(study)
        assert run is not None
        assert study.runs.result(run, second) is not None
        stored = study.runs.result(run, first)
        assert stored is not None
        nearest = np.hypot(*(stored.clustering.mean - (x, y)).T).argmin()
        assert (stored.detection.posterior[nearest] == 0) == decided


def test_who_is_weighed_has_counted_so_from_the_first(source: Path, tmp_path: Path) -> None:
    write(source, crowd(("a.png",)))
    path = tmp_path / "watched.rscope"
    with Study.create(path) as study:
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        (image,) = study.images()
        subject = WeightSubject(weight=0.25)
        study.record(Decision(verb="weigh", annotators=("W3",), subject=subject, reason="hasty"))
        assert following.gather(study) == [image.id]
        go_on(following, study)
        watched = following.watched[image.id]
        assert watched.weights is not None
        assert watched.weights.tolist() == [0.25 if number == 3 else 1 for number in range(PEOPLE)]
        assert_same(watched, afresh(study, image.id))
        assert following.keep_run(study) is not None
        assert study.runs.all()[0].weights == {"W3": 0.25}
    with Study.open(path) as study:
        following = LiveSource(study, wish_for(source))
        assert following.gather(study) == []
        study.record(Decision(verb="include", annotators=("W3",)))
        assert following.gather(study) == [image.id]


def test_clicks_that_were_imported_before_are_the_first_step(source: Path, tmp_path: Path) -> None:
    from raterscope.app.formats import ClickTable, read

    visits = crowd(("a.png",))
    copy_before = tmp_path / "before.csv"
    write(copy_before, visits[:5])
    write(source, visits[5:])
    with Study.create(tmp_path / "watched.rscope") as study:
        table = read(copy_before)
        assert isinstance(table, ClickTable)
        study.add_clicks(table, extent=(100.0, 100.0))
        following = LiveSource(study, wish_for(source))
        go_on(following, study)
        (watched,) = following.watched.values()
        assert watched.history.annotators.tolist() == [5, 6, 7, 8, 9]
