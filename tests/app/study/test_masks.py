"""Masks kept in a study."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.masks.data import OPEN, Masks, Settled
from raterscope.algorithms.masks.fusion import CaseResult, report_on
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.masks.voting import MajoritySettings, majority
from raterscope.app.formats.records import VolumeFile
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.review import Decision, RegionSubject, fold
from raterscope.app.study import RunEntry, Study, StudyError
from raterscope.app.study.masks import (
    PlacedMask,
    add_case,
    add_masks,
    assemble,
    mask_entries,
    read_masks,
    settled_of,
)
from raterscope.app.study.references import check_moved_file

GRID = Grid((6, 20, 30), (0.8, 0, 0, -12, 0, -0.8, 0, 40, 0, 0, 2.5, -300))
BLOCK = np.ones((2, 4, 5), dtype=bool)


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with Study.create(tmp_path / "nodules.rscope") as opened:
        yield opened


def a_volume(folder: Path, name: str = "chest") -> VolumeFile:
    path = folder / f"{name}.nii"
    path.write_bytes(name.encode())
    return VolumeFile(name, path, GRID, "CT", (path,), identifier="1.2.3")


def marked(image: int, annotator: str | None, at: tuple[int, int, int] = (1, 5, 5)) -> PlacedMask:
    return PlacedMask(image, annotator, "nodule", at, BLOCK)


def a_result(names: tuple[str, ...], frame: tuple[int, int, int]) -> CaseResult:
    masks = Masks(
        np.repeat(BLOCK[None], len(names), axis=0), names, (2.5, 0.8, 0.8), ("nodule",), (1, 2, 3), frame
    )
    fusion = majority(masks, MajoritySettings())
    return CaseResult((fusion,), (report_on(fusion, masks),))


def a_run(**more: object) -> RunEntry:
    values = {
        "kind": "masks", "algorithm": "majority", "settings": {}, "versions": {}, "digest": "sha256:0",
        "started": datetime.now(UTC), "seconds": 0.1,
    }  # fmt: skip
    return RunEntry(**{**values, **more})  # type: ignore[arg-type]


def test_a_volume_keeps_its_geometry(study: Study, tmp_path: Path) -> None:
    (entry,) = study.add_images([a_volume(tmp_path)])
    second = study.image(entry.id)
    assert second.grid == GRID
    assert (second.modality, second.identifier, second.name) == ("CT", "1.2.3", "chest")
    assert len(study.add_images([a_volume(tmp_path)])) == len(study.images()) == 1


def test_every_mask_comes_back_voxel_by_voxel(study: Study) -> None:
    case = add_case(study, "case 1", GRID)
    soft = np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    words = add_masks(
        study,
        [marked(case.id, "b"), replace(marked(case.id, "a"), voxels=soft), marked(case.id, None, (0, 0, 0))],
        "masks.nrrd",
        ["Read so."],
    )
    assert words == "3 masks on 1 image by 2 annotators. Read so."
    stored = read_masks(study, case.id, "nodule")
    assert list(stored) == study.annotators() == ["b", "a"]
    np.testing.assert_array_equal(stored["b"].values, BLOCK)
    np.testing.assert_array_equal(stored["a"].values, soft)
    (truth,) = read_masks(study, case.id, "nodule", truth=True).values()
    assert truth.origin == (0, 0, 0)
    assert [(entry.annotator, entry.voxels) for entry in mask_entries(study)] == [
        (None, 40),
        ("b", 40),
        ("a", 12),
    ]


def test_of_two_imports_the_later_counts_and_a_run_sees_what_was_there(study: Study) -> None:
    case = add_case(study, "case 1", GRID)
    add_masks(study, [marked(case.id, "a"), marked(case.id, "b")], "first")
    number = study.runs.add(a_run(excluded=("b",)), {case.id: a_result(("a",), GRID.shape)})
    words = add_masks(study, [marked(case.id, "a", (0, 0, 0)), marked(case.id, "c")], "second")
    assert "1 replacing an earlier mask" in words
    assert read_masks(study, case.id, "nodule")["a"].origin == (0, 0, 0)
    assert list(read_masks(study, case.id, "nodule")) == ["a", "b", "c"]
    then = read_masks(study, case.id, "nodule", study.runs.get(number))
    assert {name: entry.origin for name, entry in then.items()} == {"a": (1, 5, 5)}
    assert [entry.annotator for entry in mask_entries(study, run=study.runs.get(number))] == ["a"]


def test_a_mask_off_its_image_is_refused_and_nothing_of_its_file_stays(study: Study) -> None:
    case = add_case(study, "case 1", GRID)
    with pytest.raises(StudyError, match="does not lie on its image"):
        add_masks(study, [marked(case.id, "a"), marked(case.id, "b", (5, 0, 0))], "far.nii")
    assert mask_entries(study) == []
    assert study.annotators() == []


def test_a_run_of_masks_and_one_of_clicks_do_not_stand_in_each_others_way(study: Study) -> None:
    case = add_case(study, "case 1", GRID)
    add_masks(study, [marked(case.id, "a")], "first")
    study.runs.add(a_run(), {case.id: a_result(("a",), GRID.shape)})
    assert study.shown.result(case.id, "clicks") is None
    latest = study.shown.result(case.id, "masks")
    assert latest is not None
    np.testing.assert_array_equal(latest[1].fusions[0].mask, BLOCK[None])
    assert latest[1].reports[0].compared[0].dice == 1.0
    with pytest.raises(StudyError, match="does not fit its masks"):
        study.runs.add(a_run(), {case.id: a_result(("a",), (9, 9, 9))})


def test_voxels_settled_outside_of_the_image_are_damage(study: Study) -> None:
    """The report made room up to where they claim to lie."""
    case = add_case(study, "case 1", GRID)
    settled = Settled((4, 18, 1 << 31), np.array([[[1, 0, OPEN]]], dtype=np.int8))
    region = RegionSubject(structure="nodule", origin=(4, 18, 0), shape=(1, 1, 3))
    written = study.record(Decision(verb="paint", item=case.id, subject=region, settled=settled))
    assert written.voxels is not None
    with pytest.raises(StudyError, match="outside of the image"):
        study.settled(written.voxels)


def test_the_input_of_a_fusion_holds_all_masks_and_what_was_settled(study: Study) -> None:
    case = add_case(study, "case 1", GRID)
    empty = replace(marked(case.id, "nothing"), voxels=np.zeros((0, 0, 0), dtype=bool))
    add_masks(study, [marked(case.id, "a"), marked(case.id, "b", (2, 7, 6)), empty], "first")
    settled = Settled((4, 18, 0), np.array([[[1, 0, OPEN]]], dtype=np.int8))
    region = RegionSubject(structure="nodule", origin=(4, 18, 0), shape=(1, 1, 3))
    written = study.record(Decision(verb="paint", item=case.id, subject=region, settled=settled))
    (kept,) = study.decisions()
    assert (kept.subject, kept.voxels, kept.settled) == (region, written.voxels, None)
    regions = fold(study.decisions()).regions(case.id)
    masks = assemble(
        read_masks(study, case.id, "nodule"), GRID, "nodule", margin=0.8, regions=regions,
        settled=settled_of(study, regions),
    )  # fmt: skip
    assert masks.annotators == ("a", "b", "nothing")
    assert masks.frame == GRID.shape
    assert masks.spacing == pytest.approx((2.5, 0.8, 0.8))
    mask = np.zeros((3, *GRID.shape), dtype=bool)
    mask[0, 1:3, 5:9, 5:10] = mask[1, 2:4, 7:11, 6:11] = True
    known = np.full(GRID.shape, OPEN)
    known[4, 18, 0], known[4, 18, 1] = 1, 0
    part = tuple(slice(at, at + n) for at, n in zip(masks.origin, masks.shape, strict=True))
    np.testing.assert_array_equal(masks.values, mask[:, *part])
    np.testing.assert_array_equal(masks.known, known[part])
    assert masks.values.sum() == mask.sum()


def test_a_volume_that_was_moved_is_found_again_and_another_is_refused(study: Study, tmp_path: Path) -> None:
    nibabel = pytest.importorskip("nibabel")
    for name, value in (("chest", 7), ("other", 8)):
        values = np.full((5, 6, 7), value, dtype=np.int16)
        nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / f"{name}.nii")
    (entry,) = study.add_images(find_volumes(tmp_path / "chest.nii"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "chest.nii").rename(elsewhere / "chest.nii")
    (tmp_path / "other.nii").rename(tmp_path / "chest.nii")
    with pytest.raises(StudyError, match="another image than chest"):
        check_moved_file(entry, tmp_path / "chest.nii")
    (tmp_path / "chest.nii").unlink()
    assert study.locate(study.image(entry.id)) is None
    assert [one.name for one in study.relocate_all(elsewhere)] == [entry.name]
    assert study.locate(study.image(entry.id)) == elsewhere / "chest.nii"
