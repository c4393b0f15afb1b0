"""OME-Zarr images, written by the zarr library."""

import nibabel
import numpy as np
import pytest

from raterscope.algorithms.progress import silent
from raterscope.app.errors import InputError
from raterscope.app.formats import remote
from raterscope.app.formats.remote import ome_zarr
from raterscope.app.importing import NOTHING
from raterscope.app.window.import_reading import Batch, offer_import, read_or_ask

pytest.importorskip("fsspec")
zarr = pytest.importorskip("zarr")


def write(folder, values, axes, scale, *, version=2, unit="micrometer", levels=1):
    group = zarr.open_group(str(folder), mode="w", zarr_format=version)
    datasets = []
    for level in range(levels):
        name, step = str(level), 2**level
        smaller = values[..., ::step, ::step, ::step]
        array = group.create_array(
            name, shape=smaller.shape, dtype=values.dtype, chunks=tuple(min(8, n) for n in smaller.shape)
        )
        array[...] = smaller
        factors = [float(s) * (step if a in "zyx" else 1) for s, a in zip(scale, axes, strict=True)]
        datasets.append({"path": name, "coordinateTransformations": [{"type": "scale", "scale": factors}]})
    described = [
        {"name": a, "type": "space", "unit": unit} if a in "zyx" else {"name": a, "type": "channel"}
        for a in axes
    ]
    content = {"multiscales": [{"axes": described, "datasets": datasets}]}
    group.attrs.update(content if version == 2 else {"ome": content})
    return folder


def values_of(shape, dtype=np.int16):
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize(("version", "name"), [(2, "head.zarr"), (3, "head.ome.zarr")])
def test_a_volume_has_its_name_voxels_and_spacing(tmp_path, version, name):
    values = values_of((10, 12, 14))
    address = write(tmp_path / name, values, "zyx", (2000, 500, 250), version=version)
    (path,) = remote.fetch(str(address), tmp_path / "files")
    image = nibabel.load(path)
    assert path.name == "head.nii.gz"
    assert np.array_equal(np.asarray(image.dataobj).T, values)
    assert np.allclose(np.diag(image.affine), (-0.25, -0.5, 2.0, 1.0))
    assert remote.fetch(str(address), tmp_path / "files") == [path]


def test_the_window_reads_a_dropped_image_and_proposes_a_study_beside_it(tmp_path):
    address = write(tmp_path / "head.ome.zarr", values_of((10, 12, 14)), "zyx", (2000, 500, 250))
    understood = read_or_ask(Batch((address,), None), NOTHING, silent)
    assert understood.study == tmp_path / "head.rscope"
    (volume,) = understood.readings.volumes
    assert volume.name == "head.nii.gz"
    assert volume.grid.shape == (10, 12, 14)
    offer = offer_import(understood.readings, understood.preview, understood.study, "")
    assert offer.listed["Images"][1] == [("head.nii.gz", "10 x 12 x 14, 2 x 0.5 x 0.25 mm")]


def test_the_first_channel_and_time_are_read_whatever_the_order_of_axes(tmp_path):
    values = values_of((2, 3, 6, 5, 4))
    address = write(tmp_path / "a.zarr", values, "tcxyz", (1, 1, 3, 2, 1), unit="millimeter")
    (path,) = remote.fetch(str(address), tmp_path / "files")
    assert np.array_equal(np.asarray(nibabel.load(path).dataobj), values[0, 0])


def test_of_a_large_image_a_smaller_level_is_read(tmp_path, monkeypatch):
    values = values_of((8, 8, 8))
    address = write(tmp_path / "a.zarr", values, "zyx", (1, 1, 1), unit="millimeter", levels=3)
    monkeypatch.setattr(ome_zarr, "MAX_VOXELS", 100)
    (path,) = remote.fetch(str(address), tmp_path / "files")
    image = nibabel.load(path)
    assert image.shape == (4, 4, 4)
    assert image.header.get_zooms() == (2.0, 2.0, 2.0)


def test_an_image_in_memory_is_read(tmp_path):
    local = write(tmp_path / "a.zarr", values_of((4, 4, 4)), "zyx", (1, 1, 1))
    import fsspec

    system = fsspec.filesystem("memory")
    system.put(str(local), "/bucket/a.zarr", recursive=True)
    (path,) = remote.fetch("memory://bucket/a.zarr", tmp_path / "files")
    assert nibabel.load(path).shape == (4, 4, 4)
    system.store.clear()


def test_codecs_that_run_code_are_refused(tmp_path):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=2)
    import numcodecs

    group.create_array("0", shape=(2, 2, 2), dtype="i2", chunks=(2, 2, 2), filters=[numcodecs.Pickle()])
    axes = [{"name": name, "type": "space"} for name in "zyx"]
    scale = {"type": "scale", "scale": [1, 1, 1]}
    group.attrs["multiscales"] = [
        {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": [scale]}]}
    ]
    with pytest.raises(InputError, match="pickle"):
        remote.fetch(str(tmp_path / "a.zarr"), tmp_path / "files")


def test_a_folder_that_is_no_image_is_refused(tmp_path):
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=2)
    (tmp_path / "a.zarr" / ".zattrs").write_text('{"multiscales": [{"axes": [{}]}]}')
    with pytest.raises(InputError, match="is not an OME-Zarr image"):
        remote.fetch(str(tmp_path / "a.zarr"), tmp_path / "files")


@pytest.mark.parametrize("names", [("ct.zarr", "ct.ome.zarr"), ("ct.ome.zarr", "ct.zarr")])
def test_images_of_the_same_name_and_different_formats_have_files_of_their_own(tmp_path, names):
    import fsspec

    system, bucket = fsspec.filesystem("memory"), f"first-{names[0]}".replace(".", "-")
    for number, name in enumerate(names):
        local = write(tmp_path / name, np.full((4, 4, 4), number, np.int16), "zyx", (1, 1, 1))
        system.put(str(local), f"/{bucket}/{name}", recursive=True)
    system.pipe(f"/{bucket}/ct.nii.gz", b"a volume")
    folder = tmp_path / "files"
    for _ in range(2):
        paths = remote.fetch_all([f"memory://{bucket}/{name}" for name in (*names, "ct.nii.gz")], folder)
        assert [path.name for path in paths] == ["ct.nii.gz", "ct-2.nii.gz", "ct-3.nii.gz"]
        assert [np.asarray(nibabel.load(path).dataobj).max() for path in paths[:2]] == [0, 1]
        assert paths[2].read_bytes() == b"a volume"
    system.store.clear()
