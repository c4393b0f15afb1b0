"""Readers' files are answered from Python and collected like those of the window."""

import numpy as np
import pytest

import raterscope as rs
from raterscope.app.reader_studies.collecting import collect
from raterscope.app.reader_studies.reading_file import ReadingFile
from raterscope.app.study import Study
from tests.app.reader_studies.making import make


def reading_file(folder):
    return min((folder / "readers").glob("*.rsread"))


def test_clicks_are_collected(tmp_path):
    folder = make("clicks", tmp_path)
    with rs.open_reading(reading_file(folder)) as reading:
        tasks = reading.tasks()
        assert len(tasks) == len(reading) == 4
        assert all(task.pictures[0].is_file() and not task.done for task in tasks)
        for task in tasks:
            reading.click(task.position, 5.5, 7)
            reading.click(task.position, 20, 30)
            reading.complete(task.position)
        assert reading.undo(0)
        assert reading.clicks(1) == [(5.5, 7.0), (20.0, 30.0)]
        assert reading.tasks()[1].done
        with pytest.raises(rs.DataError, match=r"\(500, 7\) is not on the picture of 60 x"):
            reading.click(0, 500, 7)
        with pytest.raises(rs.DataError, match="no case at position 4"):
            reading.click(4, 5, 5)
        with pytest.raises(rs.DataError, match="asks for clicks"):
            reading.answer(0, "yes")
        reading.finish()
        with pytest.raises(rs.DataError, match="session 1 is finished"):
            reading.click(0, 5, 5)
    collect([folder], tmp_path / "all.rscope", unblind="test")
    with Study.open(tmp_path / "all.rscope") as study:
        assert sum(len(study.clicks(entry.id).x) for entry in study.images()) >= 6


def test_a_mask_is_drawn_as_in_the_window(tmp_path):
    file = reading_file(make("masks", tmp_path))
    with ReadingFile.open(file, to_read=True) as stored:
        place = stored.assignment.places[0]
        _, rows, columns = stored.assignment.case(place.case).pictures[0].shape
    with rs.open_reading(file) as reading:
        mask = np.zeros((rows, columns), dtype=bool)
        mask[3:9, 4:20] = True
        reading.draw(0, ~mask, "cell")
        reading.draw(0, mask, "cell")
        np.testing.assert_array_equal(reading.masks(0)["cell"][0], mask)
        with pytest.raises(rs.DataError, match="name the structure: one of nucleus, cell"):
            reading.draw(0, mask)
        with pytest.raises(rs.DataError, match="the mask has the shape"):
            reading.draw(0, mask.T, "cell")


def test_questions_allow_their_answers_only(tmp_path):
    with rs.open_reading(reading_file(make("labels", tmp_path))) as reading:
        assert reading.questions["infected"] == ("yes", "no", "unsure")
        reading.answer(0, "no", "infected")
        assert not reading.tasks()[0].done
        reading.answer(0, "2", "sharp")
        assert reading.tasks()[0].done
        assert reading.answers(0) == {"infected": "no", "sharp": "2"}
        with pytest.raises(rs.DataError, match="maybe is no answer; expected yes, no, unsure"):
            reading.answer(0, "maybe", "infected")
        with pytest.raises(rs.DataError, match="name the question"):
            reading.answer(0, "yes")


def test_a_file_that_is_no_reading_file(tmp_path):
    (tmp_path / "a.rsread").write_text("nothing")
    with pytest.raises(rs.DataError, match=r"a\.rsread"):
        rs.open_reading(tmp_path / "a.rsread")
