"""Contours on series whose slices are missing, uneven, tilted or in any order."""

from pathlib import Path

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.dicom_builder import (
    ORIENTATIONS,
    BuiltSeries,
    disc,
    disc_mask,
    write_contours,
    write_series,
)

UNEVEN = (0.0, 4.2, 5.3, 9.5, 16.9, 21.1, 22.0, 26.0, 33.0, 34.0, 38.0, 45.0)


def drawn(path: Path, series: BuiltSeries, **kwargs: bool) -> Path:
    """Write a disc that grows from slice to slice."""
    discs = [disc(series, at, 3.0 + 0.5 * at, **kwargs) for at in range(len(series.uids))]
    return write_contours(path, series, {"tumour": discs}, rater="anna")


def expected(series: BuiltSeries) -> np.ndarray:
    return np.stack([disc_mask((32, 40), 3.0 + 0.5 * at) for at in range(len(series.uids))])


def test_contours_stay_on_their_slices_where_ten_of_120_are_missing(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct", (120, 32, 40), missing=range(40, 50))
    spots = [30, 38, 39, 40, 41, 60, 109]
    contours = [disc(series, at, 6.0) for at in spots]
    (volume,) = find_volumes(series.folder)
    path = write_contours(tmp_path / "a.dcm", series, {"tumour": contours}, rater="anna")
    (one,) = (table := read_masks(path, [volume])).masks
    assert np.flatnonzero(one.whole().any(axis=(1, 2))).tolist() == spots
    assert table.notices == ()
    np.testing.assert_array_equal(one.whole()[40], disc_mask((32, 40), 6.0))


@pytest.mark.parametrize("refer", [True, False])
@pytest.mark.parametrize("orientation", ORIENTATIONS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"positions": UNEVEN},
        {"missing": (4, 5, 9)},
        {"reverse": True},
        {"tilt": 18.5, "positions": UNEVEN},
    ],
    ids=["even", "uneven", "missing", "reversed", "tilted"],
)
def test_a_contour_lies_on_the_slice_at_its_position(tmp_path, orientation, options, refer) -> None:
    series = write_series(tmp_path / "ct", orientation=orientation, **options)
    (volume,) = find_volumes(series.folder)
    table = read_masks(drawn(tmp_path / "a.dcm", series, refer=refer), [volume])
    np.testing.assert_array_equal(table.masks[0].whole(), expected(series))
    assert table.notices == ()


@pytest.mark.parametrize("refer", [True, False])
def test_contours_on_missing_slices_are_listed_and_not_moved(tmp_path: Path, refer: bool) -> None:
    series = write_series(tmp_path / "ct", missing=(4, 5, 6))
    contours = [disc(series, 3, 5.0), disc(series, 1, 5.0, missing=True, refer=refer), disc(series, 4, 5.0)]
    (volume,) = find_volumes(series.folder)
    path = write_contours(tmp_path / "a.dcm", series, {"tumour": contours}, rater="anna")
    table = read_masks(path, [volume])
    assert np.flatnonzero(table.masks[0].whole().any(axis=(1, 2))).tolist() == [3, 4]
    assert table.notices == (
        "1 contour could not be placed: the image has no slice there "
        "(tumour by anna, contour 2 at 52.50 mm).",
    )


def test_contours_at_other_positions_do_not_fit(tmp_path: Path) -> None:
    series = write_series(tmp_path / "ct", positions=UNEVEN)
    even = write_series(tmp_path / "other", series="1.2.3.9")
    with pytest.raises(InputError, match="the volumes at hand are others"):
        read_masks(drawn(tmp_path / "a.dcm", series), find_volumes(even.folder))


def test_the_tilted_uneven_ct_keeps_contours_on_their_slices(real_data: Path, tmp_path: Path) -> None:
    import pydicom

    (volume,) = find_volumes(real_data / "volumes" / "ct_ge")
    heads = [pydicom.dcmread(path, stop_before_pixels=True) for path in volume.files]
    turn = np.array(heads[0].ImageOrientationPatient, dtype=float)
    spacing = tuple(float(value) for value in heads[0].PixelSpacing)
    series = BuiltSeries(
        folder=volume.path,
        files=volume.files,
        uids=volume.instances,
        places=np.array([head.ImagePositionPatient for head in heads], dtype=float),
        row=turn[:3],
        column=turn[3:],
        spacing=(4.0, *spacing),
        series=volume.identifier,
    )
    for refer in (True, False):
        discs = [disc(series, at, 20.3, (250.0, 200.0), refer=refer) for at in (20, 21, 22, 23)]
        path = write_contours(tmp_path / f"{refer}.dcm", series, {"tumour": discs}, rater="anna")
        table = read_masks(path, [volume])
        whole = table.masks[0].whole()
        assert np.flatnonzero(whole.any(axis=(1, 2))).tolist() == [20, 21, 22, 23]
        np.testing.assert_array_equal(whole[21], disc_mask((512, 512), 20.3, (250.0, 200.0)))
        assert table.notices == ()
