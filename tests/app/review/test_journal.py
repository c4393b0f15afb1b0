"""Effect of the journal of decisions."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from raterscope.app import review
from raterscope.app.review import (
    Decision,
    ImageSubject,
    ReviewState,
    SpotOf,
    SpotsSubject,
    SpotSubject,
    Weighed,
    differ,
    fold,
    known_spots,
)
from tests.app.review.decisions import added, journal, on, verdicts, weigh

# Verdicts


def test_each_verb_leaves_its_verdict() -> None:
    decisions = journal(on("accept", 10), on("reject", 20), on("skip", 30), on("add", 40), on("reject", 10))
    assert verdicts(decisions) == [
        (10, 0, "rejected"), (20, 0, "rejected"), (30, 0, "skipped"), (40, 0, "added")
    ]  # fmt: skip
    assert fold(decisions).spots(2) == []


def test_to_skip_a_decided_spot_changes_nothing() -> None:
    assert verdicts(journal(on("accept", 10), on("skip", 10))) == [(10, 0, "accepted")]


def test_a_reopened_spot_is_contested_until_it_is_decided_again() -> None:
    decisions = journal(
        on("accept", 10), on("reject", 10), on("reopen", 10, reason="anna: accept; ben: reject")
    )
    (spot,) = fold(decisions).spots(1)
    assert (spot.verdict, spot.contested) == ("skipped", "anna: accept; ben: reject")
    assert not len(known_spots([spot]))
    assert fold(decisions).in_effect(3)
    assert not fold(decisions).in_effect(2)
    again = fold(added(decisions, on("accept", 10))).spots(1)[0]
    assert (again.verdict, again.contested) == ("accepted", "")
    undone = fold(added(decisions, Decision(verb="undo", undoes=3))).spots(1)[0]
    assert (undone.verdict, undone.contested) == ("rejected", "")


def test_a_moved_spot_is_accepted_elsewhere_and_known_where_it_was() -> None:
    state = fold(journal(on("move", 13, 1, from_x=10, from_y=0)))
    (spot,) = state.spots(1)
    assert (spot.x, spot.y, spot.verdict) == (13, 1, "accepted")
    assert (spot.anchor_x, spot.anchor_y) == (10, 0)
    known = known_spots(state.spots(1))
    assert (known.x.tolist(), known.y.tolist(), known.present.tolist()) == ([10], [0], [True])


def test_an_added_spot_that_moves_is_known_where_it_is_now() -> None:
    decisions = journal(on("add", 10), on("move", 50, 5, from_x=10, from_y=0), on("accept", 50, 5))
    assert verdicts(decisions) == [(50, 5, "added")]
    assert known_spots(fold(decisions).spots(1)).x.tolist() == [50]


def test_a_spot_keeps_its_place_when_it_is_judged_again_after_a_move() -> None:
    decisions = journal(
        on("move", 14, from_x=10, from_y=0, number=2, run=1), on("reject", 14, number=2, run=1)
    )
    assert verdicts(decisions) == [(14, 0, "rejected")]


def test_decisions_on_one_spot_find_each_other() -> None:
    by_number = journal(on("accept", 10, number=3, run=7), on("reject", 12, number=3, run=7))
    by_place = journal(on("accept", 10, number=3, run=7), on("reject", 10.6, number=9, run=8))
    by_hand = journal(on("accept", 10, number=3, run=7), on("reject", 25, number=9, run=8, about=1))
    for decisions in (by_number, by_place, by_hand):
        assert verdicts(decisions) == [(10, 0, "rejected")]
    apart = journal(on("accept", 10, number=3, run=7), on("reject", 12, number=3, run=8))
    assert len(verdicts(apart)) == 2


def test_two_spots_can_be_added_at_one_place() -> None:
    assert len(verdicts(journal(on("add", 10), on("add", 10.5)))) == 2


def test_exclusion_has_a_reason_and_an_end() -> None:
    out = Decision(verb="exclude", annotators=("W012",), reason="clicks anywhere")
    back = Decision(verb="include", annotators=("W012",))
    assert fold(journal(out)).excluded == {"W012": "clicks anywhere"}
    assert fold(journal(out, back)).excluded == {}
    assert fold(journal(out, back, out)).excluded == {"W012": "clicks anywhere"}


def test_of_exclusion_and_weight_the_last_word_counts() -> None:
    out = Decision(verb="exclude", annotators=("W1",), reason="clicks anywhere")
    back = Decision(verb="include", annotators=("W1", "W2"))
    half, quarter = weigh("W1", 0.5, "hasty"), weigh("W1", 0.25, "very hasty")
    assert fold(journal(half)).weighed == {"W1": Weighed(0.5, "hasty")}
    assert fold(journal(half, quarter, weigh("W2"))).weights == {"W1": 0.25, "W2": 0.5}
    left_out = fold(journal(half, out))
    assert (left_out.excluded, left_out.weighed) == ({"W1": "clicks anywhere"}, {})
    weighed = fold(journal(out, half))
    assert (weighed.excluded, weighed.weights) == ({}, {"W1": 0.5})
    for before in (out, half):
        full = fold(journal(before, back))
        assert (full.excluded, full.weighed) == ({}, {})


def test_undoing_an_exclusion_brings_the_weight_back() -> None:
    decisions = journal(weigh("W1"), Decision(verb="exclude", annotators=("W1",), reason="worse"))
    decisions = added(decisions, review.undo(fold(decisions)))
    assert fold(decisions).weights == {"W1": 0.5}
    decisions = added(decisions, review.undo(fold(decisions)))
    assert fold(decisions).weights == {}
    decisions = added(decisions, review.redo(fold(decisions)))
    assert fold(decisions).weights == {"W1": 0.5}


# Undo and redo


def test_undo_and_redo_step_by_step() -> None:
    decisions = journal(on("accept", 10, number=1), on("reject", 20, number=2))
    state = fold(decisions)
    assert state.undoable == decisions[1]
    assert state.redoable is None
    assert review.redo(state) is None
    decisions = added(decisions, review.undo(state))
    assert verdicts(decisions) == [(10, 0, "accepted")]
    assert fold(decisions).undoable == decisions[0]
    assert fold(decisions).redoable == decisions[1]
    decisions = added(decisions, review.undo(fold(decisions)))
    assert verdicts(decisions) == []
    assert fold(decisions).undoable is None
    assert review.undo(fold(decisions)) is None
    decisions = added(decisions, review.redo(fold(decisions)))
    assert verdicts(decisions) == [(10, 0, "accepted")]
    decisions = added(decisions, review.redo(fold(decisions)))
    assert verdicts(decisions) == [(10, 0, "accepted"), (20, 0, "rejected")]
    assert fold(decisions).redoable is None
    assert fold(decisions).undoable == decisions[1]


def test_a_new_decision_cuts_off_redo() -> None:
    decisions = journal(on("accept", 10))
    decisions = added(decisions, review.undo(fold(decisions)))
    decisions = added(decisions, on("reject", 20))
    assert fold(decisions).redoable is None
    assert fold(decisions).undoable == decisions[2]
    decisions = added(decisions, review.undo(fold(decisions)))
    assert fold(decisions).undoable is None


def test_an_older_decision_can_be_taken_back_alone() -> None:
    decisions = journal(on("accept", 10), on("reject", 20), on("add", 30))
    decisions = added(decisions, review.undo(fold(decisions), 2))
    assert verdicts(decisions) == [(10, 0, "accepted"), (30, 0, "added")]
    state = fold(decisions)
    assert [state.stands(number) for number in (1, 2, 3, 4, 9)] == [True, False, True, True, False]
    assert review.undo(state, 2) is None
    assert state.redoable == decisions[1]


def test_undoing_an_exclusion_brings_the_annotator_back() -> None:
    decisions = journal(Decision(verb="exclude", annotators=("W1",), reason="r"))
    decisions = added(decisions, review.undo(fold(decisions)))
    assert fold(decisions).excluded == {}


steps = st.lists(
    st.tuples(
        st.sampled_from(
            [*SpotSubject.verbs, *ImageSubject.verbs, "several", "exclude", "weigh", "include", "undo",
             "redo", "older"]
        ),
        st.integers(0, 6),
        st.integers(1, 2),
    ),
    max_size=30,
)  # fmt: skip


def played(moves: Sequence[tuple[str, int, int]]) -> list[Decision]:
    """Play a session: each step is a key that was pressed."""
    decisions: list[Decision] = []
    for verb, number, image in moves:
        state = fold(decisions)
        x = 20.0 * number
        created: Decision | None
        if verb == "undo":
            created = review.undo(state)
        elif verb == "redo":
            created = review.redo(state)
        elif verb == "older":
            created = review.undo(state, number)
        elif verb in ("exclude", "include"):
            created = Decision(verb=verb, annotators=(f"W{number}",), reason="r")
        elif verb == "weigh":
            created = weigh(f"W{number}", 0.25 * image)
        elif verb == "several":
            spots = tuple(SpotOf(image=1 + index % 2, x=20.0 * index, y=5.0) for index in range(number, 7))
            created = Decision(verb="reject", item=spots[0].image, subject=SpotsSubject(spots=spots))
        elif verb in ImageSubject.verbs:
            created = Decision(verb=verb, item=image, subject=ImageSubject(name="a.png"), reason="blurred")
        elif verb == "move":
            moved = SpotSubject(x=x, y=9.0, number=number, from_x=x, from_y=5.0)
            created = Decision(verb="move", item=image, subject=moved)
        else:
            created = Decision(verb=verb, item=image, subject=SpotSubject(x=x, y=5.0, number=number))
        if created is not None:
            decisions = journal(*decisions, created)
    return decisions


def shown(state: ReviewState) -> tuple[object, ...]:
    decided = {
        image: (state.spots(image), state.flag(image), state.control_mark(image))
        for image in state.items("clicks")
    }
    return (decided, state.excluded, state.weighed, state.undoable)


@settings(max_examples=50, deadline=None)
@given(steps)
def test_undo_then_redo_is_the_identity(moves: list[tuple[str, int, int]]) -> None:
    decisions = played(moves)
    before = fold(decisions)
    undone = review.undo(before)
    if undone is None:
        return
    decisions = journal(*decisions, undone)
    assert shown(fold(decisions)) != shown(before)
    decisions = added(decisions, review.redo(fold(decisions)))
    assert shown(fold(decisions)) == shown(before)


@settings(max_examples=50, deadline=None)
@given(steps, st.integers(1, 6))
def test_as_many_redos_as_undos_bring_everything_back(moves: list[tuple[str, int, int]], times: int) -> None:
    decisions = played(moves)
    before = fold(decisions)
    count = 0
    for _ in range(times):
        undone = review.undo(fold(decisions))
        if undone is not None:
            decisions = journal(*decisions, undone)
            count += 1
    for _ in range(count):
        decisions = added(decisions, review.redo(fold(decisions)))
    after = fold(decisions)
    assert shown(after)[:2] == shown(before)[:2]
    assert after.redoable == before.redoable


@settings(max_examples=50, deadline=None)
@given(steps)
def test_undoing_everything_leaves_nothing(moves: list[tuple[str, int, int]]) -> None:
    decisions = played(moves)
    while (undone := review.undo(fold(decisions))) is not None:
        decisions = journal(*decisions, undone)
    state = fold(decisions)
    assert state.items("clicks") == []
    assert (state.excluded, state.weighed) == ({}, {})


@settings(max_examples=50, deadline=None)
@given(steps)
def test_what_is_undone_might_as_well_never_have_been(moves: list[tuple[str, int, int]]) -> None:
    decisions = played(moves)
    state = fold(decisions)
    standing = [decision for decision in decisions if decision.verb != "undo" and state.stands(decision.id)]
    second = fold(standing)
    assert shown(second)[:3] == shown(state)[:3]


@settings(max_examples=50, deadline=None)
@given(steps)
def test_reading_on_is_reading_all_again(moves: list[tuple[str, int, int]]) -> None:
    decisions = played(moves)
    state = fold([])
    for count in range(1, len(decisions) + 1):
        state = fold(decisions[:count], state)
    full = fold(decisions)
    assert shown(state) == shown(full)
    assert state.redoable == full.redoable
    assert all(state.stands(decision.id) == full.stands(decision.id) for decision in decisions)


# Several spots at once, images as a whole


def several(verb: str, *positions: tuple[int, float], **more: object) -> Decision:
    spots = tuple(SpotOf(image=image, x=x, y=0.0, **more) for image, x in positions)  # type: ignore[arg-type]
    return Decision(verb=verb, item=positions[0][0], subject=SpotsSubject(spots=spots))


def test_several_spots_on_several_images_are_one_decision_and_one_undo() -> None:
    decisions = journal(on("accept", 10), several("reject", (1, 10), (1, 40), (2, 10)))
    assert verdicts(decisions) == [(10, 0, "rejected"), (40, 0, "rejected")]
    assert verdicts(decisions, 2) == [(10, 0, "rejected")]
    assert fold(decisions).in_words(decisions[-1]) == "reject 3 spots in 2 images"
    decisions = added(decisions, review.undo(fold(decisions)))
    assert verdicts(decisions) == [(10, 0, "accepted")]
    assert verdicts(decisions, 2) == []
    decisions = added(decisions, review.redo(fold(decisions)))
    assert verdicts(decisions, 2) == [(10, 0, "rejected")]


def test_a_later_word_on_one_of_several_finds_that_one() -> None:
    decisions = journal(several("reject", (1, 10), (1, 40), (1, 90)))
    # After a new fusion the spot bears another number and lies a little elsewhere.
    decisions = journal(*decisions, on("accept", 43, number=7, run=2, about=1))
    assert verdicts(decisions) == [(10, 0, "rejected"), (40, 0, "accepted"), (90, 0, "rejected")]


def test_the_last_word_on_an_image_is_its_flag_and_changes_no_fusion() -> None:
    flag = Decision(verb="flag", item=1, subject=ImageSubject(name="a.png"), reason="blurred")
    decisions = journal(flag)
    assert fold(decisions).flag(1) == review.Flag("blurred", 1)
    assert fold(decisions).flag(2) is None
    assert not differ(fold([]), fold(decisions), "clicks")
    unflag = Decision(verb="unflag", item=1, subject=ImageSubject(name="a.png"))
    assert fold(journal(flag, unflag)).flag(1) is None
    decisions = added(decisions, review.undo(fold(decisions)))
    assert fold(decisions).flag(1) is None


def test_a_control_mark_changes_what_a_fusion_is_held_to_until_it_is_undone() -> None:
    def mark(verb: str) -> Decision:
        return Decision(verb=verb, item=1, subject=ImageSubject(name="a.png"))

    decisions = journal(mark("negative"))
    before, state = fold([]), fold(decisions)
    assert state.control(1) == review.Control(holds=False, decision=1)
    assert state.control(2) is None
    assert review.differ(before, state, "clicks", 1)
    assert state.in_words(decisions[0]) == "mark as negative control"
    decisions = added(decisions, mark("positive"))
    positive = fold(decisions)
    assert positive.control(1) == review.Control(holds=True, decision=2)
    assert [positive.status(number) for number in (1, 2)] == ["superseded", "in effect"]
    assert positive.undone_since(state, "clicks", 1) == []
    decisions = added(decisions, review.undo(positive))
    assert fold(decisions).control(1) == review.Control(holds=False, decision=1)
    decisions = added(decisions, review.undo(fold(decisions)))
    undone = fold(decisions)
    assert undone.control(1) is None
    assert undone.undone_since(state, "clicks", 1) == [1]
    assert not review.differ(before, undone, "clicks")
    assert fold(journal(mark("positive"), mark("uncontrol"))).control_mark(1) is None


def test_an_accepted_spot_contradicts_a_negative_control() -> None:
    mark = Decision(verb="negative", item=1, subject=ImageSubject(name="a.png"))
    decisions = journal(mark, on("reject", 10))
    assert fold(decisions).control(1) == review.Control(holds=False, decision=1)
    decisions = added(decisions, on("accept", 20))
    assert fold(decisions).control(1) is None
    assert fold(decisions).control_mark(1) == review.Control(holds=False, decision=1)
    decisions = added(decisions, review.undo(fold(decisions)))
    assert fold(decisions).control(1) is not None
