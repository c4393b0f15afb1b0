"""Files held between their readers: parsed once, bounded, and independent of the order of readers."""

import json
from pathlib import Path

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats import sources
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.masks import holds_masks, read_masks
from raterscope.app.formats.points import has_points, read_points
from raterscope.app.formats.sources import Source, Sources
from tests.app.test_reads import ALL_KINDS, coco_of_all_kinds


def taken(path: Path) -> list[object]:
    """Everything that the three kinds take from a file."""
    points, (labels,), masks = read_points(path).clicks, read_labels(path), read_masks(path).masks
    return [
        points.annotators, points.images, points.x.tolist(), points.y.tolist(), points.looked, points.extents,
        labels.annotators, labels.tasks, labels.outputs, labels.label.tolist(),
        [(mask.annotator, mask.item, mask.structure, np.argwhere(mask.whole()).tolist()) for mask in masks],
    ]  # fmt: skip


def test_a_file_with_nan_gives_what_it_gives_without(tmp_path: Path) -> None:
    """Such a file goes another way: its annotations are decoded at once, and not each when it is taken."""
    path = coco_of_all_kinds(tmp_path / "a.json")
    expected = taken(path)
    content = json.loads(path.read_text())
    content["annotations"][0]["score"] = float("nan")
    path.write_text(json.dumps(content))
    assert "NaN" in path.read_text()
    assert taken(path) == expected


@pytest.mark.parametrize(
    ("field", "value", "read"),
    [
        ("keypoints", b'["\xff"]', read_points),
        ("segmentation", b'[["\xff"]]', read_masks),
        ("attributes", b'{"annotator": "\xff"}', read_labels),
    ],
)
def test_damaged_text_is_refused_with_its_annotation(tmp_path: Path, field: str, value: bytes, read) -> None:
    path = tmp_path / "a.json"
    content = b'{"images": [{"id": 1, "width": 9, "height": 9}], "annotations": [{"image_id": 1, "%s": %s}]}'
    path.write_bytes(content % (field.encode(), value))
    with pytest.raises(InputError, match=r"a\.json, field annotations\[0\]: is not JSON"):
        read(path)
    assert (has_points(path), find_labels(path), holds_masks(path)) == (None, None, False)


@pytest.mark.parametrize("name", list(ALL_KINDS))
def test_contents_list_what_can_be_imported(tmp_path: Path, name: str) -> None:
    source = Source(ALL_KINDS[name](tmp_path / name))
    assert source.contents("points") == {"points", "areas", "labels"}
    assert (has_points(source), find_labels(source), holds_masks(source)) == ("beside", None, True)
    assert find_labels(source, alone=False) == "labels"


def test_a_file_that_cannot_be_read_is_read_once_and_refused_each_time(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.json"
    path.write_text("{")
    source = Source(path)
    times = []
    monkeypatch.setattr(sources, "read_bytes", lambda path: times.append(path) or path.read_bytes())
    for _ in range(3):
        with pytest.raises(InputError, match="is not JSON"):
            source.document()
    assert len(times) == 1
    path.write_text("[]")
    source.release()
    assert source.document() is None


def test_what_is_held_at_once_is_bounded(tmp_path: Path, monkeypatch) -> None:
    """The first files stay, the last one is there, those between are read again when they are asked for."""
    paths = [coco_of_all_kinds(tmp_path / f"{n}.json") for n in range(5)]
    monkeypatch.setattr(sources, "_MAX_MEMORY", 2 * paths[0].stat().st_size)
    files = Sources()
    opened = [files.open(path) for path in paths if files.open(path).document()]
    assert [source.memory > 0 for source in opened] == [True, True, False, False, True]


def test_what_was_released_is_held_until_a_question_is_answered(tmp_path: Path, monkeypatch) -> None:
    path = coco_of_all_kinds(tmp_path / "a.json")
    files = Sources(is_lasting=True)
    source = files.open(path)
    source.document()
    files.release(path)
    assert source.memory > 0
    monkeypatch.setattr(sources, "_MAX_MEMORY", 1)
    files.release(path)
    assert source.memory == 0
    files.close()


def test_only_what_is_kept_stays(tmp_path: Path) -> None:
    paths = [coco_of_all_kinds(tmp_path / f"{n}.json") for n in range(3)]
    sources = Sources()
    opened = [sources.open(path) for path in paths if sources.open(path).document()]
    sources.keep(paths[:1])
    assert [source.memory > 0 for source in opened] == [True, False, False]
