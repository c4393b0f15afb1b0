"""LIDC-IDRI reading sessions."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats.masks import holds_masks, read_masks
from raterscope.app.formats.records import VolumeFile

HEAD = (
    '<LidcReadMessage xmlns="http://www.nih.gov"><ResponseHeader><SeriesInstanceUid>{uid}</SeriesInstanceUid>'
)


def ring(left: int, top: int, right: int, bottom: int) -> list[tuple[int, int]]:
    """Walk around a box, pixel by pixel."""
    walk = [(x, top) for x in range(left, right)] + [(right, y) for y in range(top, bottom)]
    walk += [(x, bottom) for x in range(right, left, -1)] + [(left, y) for y in range(bottom, top, -1)]
    return [*walk, walk[0]]


def roi(points: list[tuple[int, int]], z: float = 0.0, uid: str = "", hole: bool = False) -> str:
    edges = "".join(f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>" for x, y in points)
    return (
        f"<roi><imageZposition>{z}</imageZposition><imageSOP_UID>{uid}</imageSOP_UID>"
        f"<inclusion>{'FALSE' if hole else 'TRUE'}</inclusion>{edges}</roi>"
    )


def nodule(*rois: str) -> str:
    return f"<unblindedReadNodule><noduleID>1</noduleID>{''.join(rois)}</unblindedReadNodule>"


def message(*sessions: str, uid: str = "1.2.3") -> str:
    read = "".join(f"<readingSession>{session}</readingSession>" for session in sessions)
    return f"{HEAD.format(uid=uid)}</ResponseHeader>{read}</LidcReadMessage>"


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "158.xml"
        path.write_text(text)
        return path

    return write


def test_the_outline_itself_is_outside(written) -> None:
    table = read_masks(written(message(nodule(roi(ring(10, 20, 15, 26))))))
    (mask,) = table.masks
    assert (mask.annotator, mask.structure, mask.item) == ("reader 1", "nodule 1", "1.2.3")
    assert mask.grid.shape == (1, 512, 512)
    expected = np.zeros((512, 512), dtype=bool)
    expected[21:26, 11:15] = True
    np.testing.assert_array_equal(mask.whole()[0], expected)
    assert "CT is not available" in table.notices[0]


def test_a_hole_has_its_outline(written) -> None:
    rois = (roi(ring(14, 24, 16, 26), hole=True), roi(ring(10, 20, 20, 30)))
    (mask,) = read_masks(written(message(nodule(*rois)))).masks
    expected = np.zeros((512, 512), dtype=bool)
    expected[21:30, 11:20] = True
    expected[24:27, 14:17] = False
    np.testing.assert_array_equal(mask.whole()[0], expected)


def test_nodules_that_overlap_are_one_structure(written) -> None:
    """The second is outlined by one reader alone; the fourth reader marked nothing but a point."""
    first = nodule(roi(ring(10, 10, 20, 20)), roi(ring(10, 10, 18, 18), z=2.5))
    same = nodule(roi(ring(15, 15, 25, 25)))
    third = nodule(roi(ring(100, 100, 110, 110), z=-5.0))
    point = nodule(roi([(5, 5)])) + "<nonNodule/><nonNodule/>"
    path = written(message(third + first, same, same, point))
    assert holds_masks(path) is True
    table = read_masks(path)
    result = {(mask.structure, mask.annotator): int(mask.values.sum()) for mask in table.masks}
    assert result == {
        ("nodule 1", "reader 1"): 81 + 49, ("nodule 1", "reader 2"): 81, ("nodule 1", "reader 3"): 81,
        ("nodule 1", "reader 4"): 0, ("nodule 2", "reader 1"): 81, ("nodule 2", "reader 2"): 0,
        ("nodule 2", "reader 3"): 0, ("nodule 2", "reader 4"): 0,
    }  # fmt: skip
    assert table.masks[0].grid.shape == (4, 512, 512)
    assert (
        table.notices[1] == "Skipped: marks that are not nodules 2, nodules under 3 mm, which are points 1."
    )


def test_outlines_on_missing_slices_are_listed(written, series: Callable[..., VolumeFile]) -> None:
    """By height an outline goes to the slice at its true position, or to none."""
    volume = series((5, 20, 30), heights=[0.0, 2.5, 5.0, 12.5, 15.0])
    outlines = [roi(ring(3, 4, 9, 12), z=55.0 + height, uid="9.9") for height in (2.5, 7.5, 12.5)]
    table = read_masks(written(message(nodule(*outlines), uid=volume.identifier)), [volume])
    assert np.flatnonzero(table.masks[0].whole().any(axis=(1, 2))).tolist() == [1, 3]
    assert table.notices == (
        "1 outline could not be placed: the CT has no slice there (nodule 1 by reader 1 at 62.5 mm).",
    )


def test_the_ct_gives_the_slices(written, series: Callable[..., VolumeFile]) -> None:
    volume = series((4, 20, 30))
    heights = [55.0, 57.5, 60.0, 62.5]
    by_uid = roi(ring(3, 4, 9, 12), z=1000.0, uid=volume.instances[2])
    by_height = roi(ring(3, 4, 9, 12), z=heights[1], uid="9.9")
    path = written(message(nodule(by_uid, by_height), uid=volume.identifier))
    table = read_masks(path, [volume])
    (mask,) = table.masks
    assert mask.grid is volume.grid
    assert np.flatnonzero(mask.whole().any(axis=(1, 2))).tolist() == [1, 2]
    assert table.notices == ()
    with pytest.raises(InputError, match="add the folder of that series first"):
        read_masks(written(message(nodule(roi(ring(3, 4, 9, 12))), uid="1.2.3")), [volume])
    with pytest.raises(InputError, match="not a slice of"):
        read_masks(written(message(nodule(roi(ring(3, 4, 9, 12), z=400)), uid=volume.identifier)), [volume])
    with pytest.raises(InputError, match="beyond 20 x 30"):
        read_masks(written(message(nodule(roi(ring(3, 4, 9, 40), z=55)), uid=volume.identifier)), [volume])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (message(), "no reading sessions"),
        (message("<nonNodule/>"), "no outlines of nodules"),
        (message(nodule(roi([(1, 1)]))), "under 3 mm"),
        (message(nodule(roi(ring(3, 4, 9, 600)))), "beyond 512 x 512"),
        (message(nodule(roi([(1, 2**70), (1, 1)]))), "not a number"),
        (
            message(nodule(roi(ring(3, 4, 9, 9)), roi(ring(3, 4, 9, 9), z=1e9), roi(ring(3, 4, 9, 9), z=1))),
            "slices",
        ),
    ],
)
def test_what_cannot_be_read(written, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_masks(written(text))


def test_a_file_of_the_collection(real_data: Path) -> None:
    """The second and the fourth reader outlined one nodule alike."""
    table = read_masks(real_data / "formats/lidc/189_158.xml")
    first = {mask.annotator: mask for mask in table.masks if mask.structure == "nodule 1"}
    assert [mask.values.any() for mask in first.values()] == [False, True, False, True]
    second, fourth = first["reader 2"].whole(), first["reader 4"].whole()
    assert 2 * (second & fourth).sum() / (second.sum() + fourth.sum()) > 0.7
