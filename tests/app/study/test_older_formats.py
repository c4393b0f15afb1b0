"""Studies that older versions wrote."""

import sqlite3
from pathlib import Path

import pytest

from raterscope.app.review import Decision, SpotSubject
from raterscope.app.study import Study
from raterscope.app.study.schema import VERSION
from tests.app.study.files import as_an_older_format, edited, grid_in, with_a_case


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_study_of_an_older_format_opens_with_all_that_was_decided(closed: Path, version: int) -> None:
    with Study.open(closed) as study:
        moved = SpotSubject(number=2, x=5.0, y=4.0, from_x=3.0, from_y=4.0)
        study.record(Decision(verb="move", item=1, subject=moved, about=1, reason='it\'s "there"'))
        study.record(Decision(verb="exclude", annotators=("W1",), reason="bored"))
        study.record(Decision(verb="undo", undoes=2))
        before = study.decisions()
    as_an_older_format(closed, version)
    with Study.open(closed) as study:
        assert study.decisions() == before
        assert study.record(Decision(verb="undo", undoes=3)).id == 5
        assert study.shown.result(1, "clicks") is not None
        assert (study.shown.answers() == {1: None}) == (version < 5)  # its runs keep no outline
    with edited(closed) as connection, pytest.raises(sqlite3.IntegrityError, match="never changed"):
        connection.execute("UPDATE decisions SET who = 'another'")


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_volumes_of_an_older_format_keep_their_geometry(closed: Path, version: int) -> None:
    grid = with_a_case(closed, None)
    as_an_older_format(closed, version)
    assert grid_in(closed) == grid
