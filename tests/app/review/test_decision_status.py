"""Status of each decision: in effect, superseded, undone; and the number of settled subjects."""

from dataclasses import replace

from raterscope.algorithms.masks.registration import RigidMotion
from raterscope.app.coding import Coding
from raterscope.app.review import (
    BiasSubject,
    Decision,
    RegistrationSubject,
    ScaleSubject,
    StructureSubject,
    TaskSubject,
    fold,
    registered_series,
    undo,
)
from tests.app.review.decisions import a_region, added, journal, on, settle, weigh


def statuses(decisions):
    state = fold(decisions)
    return [state.status(decision.id) for decision in decisions]


def label(task: str, verb: str = "label") -> Decision:
    return Decision(verb=verb, item=1, subject=TaskSubject(task=task, label="a" if verb == "label" else ""))


def test_of_one_region_the_last_decision_is_in_effect() -> None:
    item = [settle("take", 1, number=1), replace(settle("accept", 2, number=1), voxels=None, verb="skip")]
    recorded = [*item, *(settle("accept", 3 + n, number=1) for n in range(6))]
    decisions = journal(*(replace(decision, run=4) for decision in recorded))
    assert statuses(decisions) == ["superseded", "no effect", *["superseded"] * 5, "in effect"]
    assert fold(decisions).settled("masks", 1) == "1 region"


def test_regions_of_other_numbers_and_runs_are_other_subjects() -> None:
    first = [replace(settle("accept", n, number=n), run=4) for n in (1, 2)]
    decisions = journal(*first, replace(settle("accept", 3, number=1), run=5))
    assert statuses(decisions) == ["in effect"] * 3
    assert fold(decisions).settled("masks", 1) == "3 regions"


def test_a_stroke_supersedes_nothing_and_the_whole_structure_all() -> None:
    strokes = [settle("accept", 1, number=1), settle("paint", 2, number=1), settle("paint", 3)]
    decisions = journal(*strokes)
    assert statuses(decisions) == ["in effect"] * 3
    assert fold(decisions).settled("masks", 1) == "1 region and 1 edit"
    full = Decision(verb="paint", item=1, subject=a_region(whole=True, blind=True), voxels=4)
    decisions = journal(*strokes, full)
    assert statuses(decisions) == ["superseded"] * 3 + ["in effect"]
    assert fold(decisions).settled("masks", 1) == "1 whole structure"


def test_undo_lets_the_decision_before_count_again() -> None:
    decisions = journal(on("accept", 10), on("reject", 10), on("accept", 30))
    assert statuses(decisions) == ["superseded", "in effect", "in effect"]
    decisions = added(decisions, undo(fold(decisions), 2))
    assert statuses(decisions)[:3] == ["in effect", "undone", "in effect"]
    assert fold(decisions).settled("clicks", 1) == "2 spots"


def test_a_spot_that_was_moved_stays_there_when_it_is_accepted() -> None:
    move = on("move", 14, from_x=10.0, from_y=0.0)
    decisions = journal(on("accept", 10), move, on("accept", 14), on("reject", 14))
    assert statuses(decisions[:3]) == ["superseded", "in effect", "in effect"]
    assert statuses(decisions) == ["superseded"] * 3 + ["in effect"]


def test_tasks_annotators_and_scales_have_one_last_word() -> None:
    assert statuses(journal(label("t"), label("u"), label("t"), label("t", "skip"))) == [
        "superseded",
        "in effect",
        "in effect",
        "no effect",
    ]
    flags = [Decision(verb=verb, item=1, subject=BiasSubject(annotator="a")) for verb in ("flag", "clear")]
    assert statuses(journal(*flags)) == ["superseded", "in effect"]
    out = [Decision(verb=verb, annotators=("a",), reason="r") for verb in ("exclude", "include")]
    assert statuses(journal(weigh("a"), *out)) == ["superseded", "superseded", "in effect"]
    scales = [
        Decision(verb="scale", item=item, subject=ScaleSubject(pixel_size=0.1, everywhere=everywhere))
        for item, everywhere in ((1, False), (2, False), (1, True), (2, False))
    ]
    assert statuses(journal(*scales)) == ["superseded", "superseded", "in effect", "in effect"]
    described = [
        Decision(verb="describe", item=1, subject=StructureSubject(structure=name, coding=Coding()))
        for name in "aba"
    ]
    assert statuses(journal(*described)) == ["superseded", "in effect", "in effect"]


def test_the_journal_read_on_shows_the_same_as_read_at_once() -> None:
    recorded = journal(
        on("accept", 10), label("t"), weigh("a"), on("reject", 10), label("t"), weigh("a", 0.2)
    )
    state = None
    for count in range(1, len(recorded) + 1):
        state = fold(recorded[:count], state)
        assert [state.status(decision.id) for decision in recorded[:count]] == statuses(recorded[:count])


def test_the_last_registration_of_each_series_is_in_effect():
    def register(number, case, series, shift, verb="register"):
        subject = RegistrationSubject(series=series, name="PET", motion=RigidMotion((shift, 0, 0)))
        return Decision(verb=verb, id=number, item=case, subject=subject)

    journal = [register(1, 1, 7, 5), register(2, 1, 8, 6), register(3, 1, 7, 9), register(4, 2, 7, 1)]
    state = fold(journal)
    assert [state.status(number) for number in (1, 2, 3, 4)] == [
        "superseded", "in effect", "in effect", "in effect",
    ]  # fmt: skip
    shifts = {series: kept.motion.shift[0] for series, kept in registered_series(journal, state, 1).items()}
    assert shifts == {7: 9, 8: 6}
    journal.append(register(5, 1, 7, 0, "unregister"))
    assert set(registered_series(journal, fold(journal), 1)) == {8}
    journal.append(Decision(verb="undo", id=6, undoes=5))
    assert set(registered_series(journal, fold(journal), 1)) == {7, 8}
