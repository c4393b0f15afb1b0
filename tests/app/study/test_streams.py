"""Clicks of a source and the position up to which it was read: both are in the study, or neither."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.clicks.result import Fusion
from raterscope.app.study import Study, StudyError, streams
from tests.app.study.made import a_fusion, a_table


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.create(tmp_path / "watched.rscope")


def test_marks_and_place_come_together_and_stay(study: Study, tmp_path: Path) -> None:
    source = tmp_path / "clicks.csv"
    with study:
        stream = streams.begin(study, source, {"limit": 0.1})
        summary = streams.take_in(study, stream.id, a_table(1, ("a.png",)), {"read": 10})
        assert summary is not None
        assert summary.marks == 60
    with Study.open(study.path) as second:
        (entry,) = streams.streams(second)
        assert entry.source == source
        assert entry.settings == {"limit": 0.1}
        assert entry.position == {"read": 10}
        assert entry.started < entry.seen <= datetime.now(UTC)
        assert len(second.clicks(1)) == 60


def test_neither_marks_nor_place_where_an_image_is_unknown(study: Study, tmp_path: Path) -> None:
    unknown = replace(a_table(2, ("a.png", "b.png")), extents={0: (100.0, 100.0)})
    with study:
        stream = streams.begin(study, tmp_path / "clicks.csv", {})
        with pytest.raises(StudyError, match=r'"b\.png" is not among'):
            streams.take_in(study, stream.id, unknown, {"read": 10})
        assert streams.streams(study) == [stream]
        assert study.images() == []
        assert streams.take_in(study, stream.id, unknown, {"read": 10}, extent=(50.0, 50.0))
        assert len(study.images()) == 2


def test_a_position_alone_moves_on(study: Study, tmp_path: Path) -> None:
    with study:
        stream = streams.begin(study, tmp_path / "clicks.csv", {})
        assert streams.take_in(study, stream.id, None, {"read": 3}) is None
        (entry,) = streams.streams(study)
        assert entry.position == {"read": 3}
        assert entry.seen == stream.seen


def test_a_source_that_is_watched_again_goes_on_where_it_was(study: Study, tmp_path: Path) -> None:
    with study:
        stream = streams.begin(study, tmp_path / "clicks.csv", {"limit": 0.1})
        streams.take_in(study, stream.id, a_table(1, ("a.png",)), {"read": 10})
        second = streams.begin(study, tmp_path / "clicks.csv", {"limit": 0.2})
        assert (second.id, second.position) == (stream.id, {"read": 10})
        assert second.settings == {"limit": 0.2}
        other = streams.begin(study, tmp_path / "others.csv", {})
        assert (other.id, other.position) != (stream.id, {"read": 10})


def test_what_it_has_come_to_is_replaced_and_forgotten_whole(study: Study, tmp_path: Path) -> None:
    with study:
        stream = streams.begin(study, tmp_path / "clicks.csv", {})
        streams.take_in(study, stream.id, a_table(1, ("a.png",)), {})
        clicks = study.clicks(1)
        with study.reading() as connection:
            (empty,) = connection.execute("SELECT count(*) FROM objects").fetchone()
        for seed in (1, 2):
            streams.keep(study, stream.id, {1: a_fusion(clicks, seed)})
        result = streams.kept(study, stream.id, Fusion)
        np.testing.assert_array_equal(result[1].clustering.mean, a_fusion(clicks, 2).clustering.mean)
        streams.forget(study, stream.id)
        assert streams.streams(study) == []
        with study.reading() as connection:
            assert connection.execute("SELECT count(*) FROM objects").fetchone() == (empty,)
        assert len(study.clicks(1)) == 60


def test_arrivals_are_distinguished_by_import(study: Study, tmp_path: Path) -> None:
    with study:
        stream = streams.begin(study, tmp_path / "clicks.csv", {})
        for seed in (1, 2, 3):
            streams.take_in(study, stream.id, a_table(seed, ("a.png",), clicks=10 * seed), {})
        arrived = streams.arrivals(study, 1)
        assert [len(record.x) for _, record in arrived] == [10, 20, 30]
        since = streams.arrivals(study, 1, arrived[0][0])
        assert [number for number, _ in since] == [number for number, _ in arrived[1:]]


def test_the_reason_a_source_stopped_is_kept_until_it_is_watched_again(tmp_path: Path) -> None:
    with Study.create(tmp_path / "study.rscope") as study:
        stream = streams.begin(study, tmp_path / "clicks.csv", {"limit": 0.1})
        assert stream.ended == ""
        streams.end(study, stream.id, 'The disk of "the clinic" is gone.')
        (entry,) = streams.streams(study)
        assert entry.ended == 'The disk of "the clinic" is gone.'
        assert entry.settings["limit"] == 0.1
        assert streams.begin(study, tmp_path / "clicks.csv", {"limit": 0.1}).ended == ""
