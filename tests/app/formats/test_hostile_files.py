"""Files made to do harm: what any reader must refuse in one sentence, before it costs much."""

import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from raterscope.app import formats
from raterscope.app.errors import InputError
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.points import read_points
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.masks.test_annotations import MASK, coco, labelme, painted, region, studio
from tests.app.formats.masks.test_polygons import runs

SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4]]
READERS = [formats.read, read_labels, read_masks, read_pairs, read_points, find_volumes]
ENDINGS = [
    "csv",
    "tsv",
    "csv.gz",
    "json",
    "xml",
    "jsonl",
    "nii",
    "nii.gz",
    "nrrd",
    "mha",
    "mhd",
    "tif",
    "png",
    "jpg",
    "dcm",
]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_device_is_never_read(tmp_path: Path, read, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    path.symlink_to("/dev/null")
    with pytest.raises(InputError, match="is a pipe or a device"):
        read(path)


def samples() -> dict[str, object]:
    flat = [value for point in SQUARE for value in point]
    counts = runs(MASK.T.ravel())
    brush = region("brushlabels", format="rle", rle=painted(MASK), brushlabels=["cell"])
    polygon = region("polygonlabels", points=SQUARE, polygonlabels=["cell"])
    ellipse = region("ellipselabels", x=5, y=5, radiusX=3, radiusY=2, rotation=1, ellipselabels=["cell"])
    return {
        "coco": coco(
            {"segmentation": [flat], "id": 1, "attributes": {"annotator": 3}},
            {"segmentation": {"size": [10, 20], "counts": counts}},
            {"keypoints": [1, 2, 2], "num_keypoints": 1},
        ),
        "label_studio": studio({"id": 1, "completed_by": 7, "result": [brush, polygon, ellipse]}),
        "labelme": labelme(
            {"label": "cell", "points": SQUARE, "shape_type": "polygon"},
            {"label": "cell", "points": [[2, 2], [4, 4]], "shape_type": "circle"},
            {"label": "cell", "points": [[2, 2]], "shape_type": "point"},
        ),
    }


def leaves(content: object, where: tuple[object, ...] = ()):
    """Give the way to each value that is neither a list nor an object; of long lists the first values."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from leaves(value, (*where, key))
    elif isinstance(content, list):
        for at, value in enumerate(content[:4]):
            yield from leaves(value, (*where, at))
    else:
        yield where


NUMBERS = {
    "400 digits": "1" + "0" * 400, "below": "-1" + "0" * 400, "5000 digits": "9" * 5000,
    "exponent": "1e999999",
    "NaN": "NaN", "infinity": "-Infinity", "nested": "[" * 3000 + "]" * 3000, "longest": "9" * 309,
}  # fmt: skip


@pytest.mark.parametrize("number", list(NUMBERS.values()), ids=list(NUMBERS))
@pytest.mark.parametrize("name", list(samples()))
def test_a_number_without_bounds_is_read_or_refused_wherever_it_stands(
    tmp_path: Path, name: str, number: str
) -> None:
    sample = samples()[name]
    path = tmp_path / "a.json"
    ways = list(leaves(sample))
    assert len(ways) > 10
    for way in ways:
        spoilt = json.loads(json.dumps(sample))
        inner = spoilt
        for key in way[:-1]:
            inner = inner[key]
        inner[way[-1]] = "@@"
        path.write_text(json.dumps(spoilt).replace('"@@"', number, 1))
        for read in (read_masks, read_labels):
            with suppress(InputError):
                read(path)
        with suppress(InputError):
            assert np.isfinite(read_points(path).clicks.x).all()
