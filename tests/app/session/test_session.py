"""The observable state of a workspace."""

from typing import Any

import pytest
from PySide6.QtCore import QObject, Signal

from raterscope.app.session import Session, while_shown


@pytest.fixture
def session(qtbot: Any) -> Session[str, int]:
    return Session()


def heard(session: Session[str, int]) -> list[object]:
    """List what observers hear."""
    told: list[object] = []
    session.scene_changed.connect(lambda scene: told.append(("scene", scene)))
    session.cleared.connect(lambda: told.append("cleared"))
    session.selection_changed.connect(lambda selection: told.append(("selection", selection)))
    session.blind_changed.connect(lambda blind: told.append(("blind", blind)))
    return told


def test_observers_hear_of_a_scene_and_that_it_is_cleared(session):
    told = heard(session)
    session.show("first", 1)
    session.clear()
    assert told == [("scene", "first"), "cleared"]
    assert not session.shown


def test_without_a_scene_there_is_none_to_be_had(session):
    with pytest.raises(LookupError):
        _ = session.scene
    with pytest.raises(LookupError):
        _ = session.analysis


def test_changes_made_together_are_told_once_and_see_one_state(session):
    told = heard(session)
    seen = []
    session.scene_changed.connect(lambda scene: seen.append((scene, session.selection, session.blind)))
    with session.change():
        session.select((1,))
        session.show("first", 1)
        session.set_blind(True)
        session.show("second", 2)
        session.select((2, 3))
        assert told == []
    assert told == [("scene", "second"), ("blind", True), ("selection", (2, 3))]
    assert seen == [("second", (2, 3), True)]


def test_nested_groups_are_told_at_the_end_of_the_outermost(session):
    told = heard(session)
    with session.change():
        with session.change():
            session.show("first")
        assert told == []
    assert told == [("scene", "first")]


def test_the_last_of_showing_and_clearing_counts(session):
    told = heard(session)
    with session.change():
        session.show("first")
        session.clear()
    assert told == ["cleared"]
    with session.change():
        session.clear()
        session.show("second")
    assert told == ["cleared", ("scene", "second")]


def test_the_scene_before_is_known_while_observers_are_called(session):
    before = []
    session.scene_changed.connect(lambda _scene: before.append(session.before))
    session.show("first")
    session.show("second")
    assert before == [None, "first"]
    assert session.before is None


def test_what_an_observer_changes_is_told_after_it(session):
    told = heard(session)
    session.scene_changed.connect(lambda _scene: session.select((7,)))
    with session.change():
        session.show("first")
        session.set_blind(True)
    assert told == [("scene", "first"), ("blind", True), ("selection", (7,))]


def test_an_unchanged_blind_mode_is_not_told(session):
    told = heard(session)
    session.set_blind(False)
    assert told == []


def test_an_amended_scene_is_told_apart_from_another_one(session):
    session.show("first", 1)
    told = heard(session)
    session.scene_amended.connect(lambda scene: told.append(("amended", scene)))
    session.amend("first, settled")
    assert told == [("amended", "first, settled")]
    assert session.scene == "first, settled"
    assert session.analysis == 1


def test_views_are_called_once_for_scene_part_and_cover(session):
    told = heard(session)
    session.part_changed.connect(lambda part: told.append(("part", part)))
    session.view_changed.connect(lambda scene: told.append(("view", scene, session.part, session.covered)))
    session.scene_changed.connect(lambda _scene: session.set_covered(True))
    session.show("first", part="GTV")
    assert told == [("scene", "first"), ("view", "first", "GTV", True)]
    told.clear()
    session.set_part("CTV")
    assert told == [("part", "CTV"), ("view", "first", "CTV", True)]
    told.clear()
    session.set_covered(False)
    assert told == [("view", "first", "CTV", False)]


def test_only_the_scene_that_stays_is_settled(session, qtbot):
    settled = []
    session.scene_settled.connect(settled.append)
    session.show("first")
    session.show("second")
    qtbot.waitUntil(lambda: bool(settled))
    assert settled == ["second"]
    session.show("third")
    session.clear()
    qtbot.wait(20)
    assert settled == ["second"]


class Part(QObject):
    """Something with a slot that needs a scene."""

    pressed = Signal(int)

    def __init__(self, session: Session[str, int]) -> None:
        super().__init__()
        self._session = session
        self.done: list[str] = []
        self.pressed.connect(self.act)

    @while_shown
    def act(self) -> None:
        """Note the scene."""
        self.done.append(self._session.scene)


def test_a_slot_waits_for_a_scene_and_takes_no_more_than_it_wants(session):
    part = Part(session)
    part.pressed.emit(1)
    assert part.done == []
    session.show("first")
    part.pressed.emit(1)
    part.act()
    assert part.done == ["first", "first"]
