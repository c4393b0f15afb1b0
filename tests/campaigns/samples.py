"""Small valid files of every format that is read, made here or taken from a folder of real data.

A sample is a set of files that belong together; `targets` are those that a campaign may change.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import nibabel
import nrrd
import numpy as np
import pyarrow
import SimpleITK
import tifffile
from PIL import Image
from pyarrow import parquet

from raterscope.app.formats.masks.export import write_masks
from raterscope.app.formats.masks.terminology import Structure
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.masks.test_annotations import coco as coco_masks
from tests.app.formats.masks.test_lidc import message, nodule, ring, roi
from tests.app.formats.masks.test_shapes import brush, packed, runs
from tests.app.formats.points.crowds import WRITERS
from tests.app.formats.test_zooniverse import HEADER, drawing, looked, point, point_2
from tests.app.formats.volumes import made_dicom

__all__ = ["READERS", "Sample", "samples_of"]

LARGEST = 400_000
"""Bytes: larger files of real data say nothing that smaller ones do not, and take long."""


@dataclass(frozen=True)
class Sample:
    """Files that are read together.

    Attributes
    ----------
    files : dict of name to content
        Names may have folders.
    targets : tuple of str
        The names of those that may be changed.
    read : tuple of str
        What the program is asked to read: files, or the folder "".
    kind : str, optional
        As ``raterscope import --kind`` takes it.
    grows : bool
        Whether it is followed as a source that grows.
    columns : dict of column to field
        As ``raterscope import --map`` takes them.
    """

    files: dict[str, bytes]
    targets: tuple[str, ...]
    read: tuple[str, ...]
    kind: str | None = None
    grows: bool = False
    columns: dict[str, str] = field(default_factory=dict)


def _alone(content: bytes, name: str, kind: str | None = None, *, grows: bool = False) -> Sample:
    return Sample({name: content}, (name,), (name,), kind, grows)


def _folder(folder: Path, targets: str = "*", kind: str | None = None) -> Sample:
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    changed = tuple(name for name in files if Path(name).match(targets))
    return Sample(files, changed, tuple(files), kind)


def _picture(width: int = 24, height: int = 18) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 255, (height, width, 3), dtype=np.uint8)


def _image(form: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(_picture()).save(buffer, form)
    return buffer.getvalue()


def _png(folder: Path) -> list[Sample]:
    deep = io.BytesIO()
    Image.fromarray(_picture()[..., 0].astype(np.uint16) * 200).save(deep, "PNG")
    palette = io.BytesIO()
    Image.fromarray(_picture()).quantize(16).save(palette, "PNG")
    return [_alone(content, "a.png") for content in (_image("PNG"), deep.getvalue(), palette.getvalue())]


def _jpeg(folder: Path) -> list[Sample]:
    return [_alone(_image("JPEG"), "a.jpg")]


def _tiff(folder: Path) -> list[Sample]:
    def written(pixels: np.ndarray, **options: object) -> bytes:
        buffer = io.BytesIO()
        tifffile.imwrite(buffer, pixels, **options)
        return buffer.getvalue()

    grey = np.random.default_rng(1).integers(0, 4000, (40, 48), dtype=np.uint16)
    return [
        _alone(written(_picture(), photometric="rgb"), "a.tif"),
        _alone(written(grey, compression="zlib", predictor=True), "a.tif"),
        _alone(written(grey, compression="lzw"), "a.tif"),
        _alone(written(grey, tile=(16, 16), bigtiff=True), "a.tiff"),
        _alone(written(np.stack([grey, grey]), ome=True, metadata={"axes": "CYX"}), "a.ome.tif"),
        _alone(written(np.stack([grey, grey]), imagej=True, metadata={"axes": "CYX"}), "a.tif"),
    ]


def _click_tables(folder: Path) -> list[Sample]:
    rows = "".join(f"w{n % 3},a.png,{n}.5,{2 * n},{n}\n" for n in range(12))
    return [
        _alone(f"annotator,image,x,y,time\n{rows}".encode(), "clicks.csv"),
        _alone(f"rater;picture;x;y;t\n{rows.replace(',', ';')}".encode("utf-16"), "clicks.csv"),
        _alone(b"image,width,height\na.png,40,30\nb.png,40,30\n", "sizes.csv"),
        _alone(f"annotator\timage\tx\ty\ttime\n{rows}".replace(",", "\t").encode("latin-1"), "clicks.tsv"),
    ]


def _truth_tables(folder: Path) -> list[Sample]:
    return [_alone(b"image,x,y\na.png,3,4\na.png,5,6.5\nb.png,7,8\n", "truth.csv", "truth")]


def _label_tables(folder: Path) -> list[Sample]:
    rows = "".join(f"w{n % 3},t{n // 3},{'cat' if n % 2 else 'dog'},{n}\n" for n in range(12))
    votes = f"annotator,task,label,time\n{rows}".encode()
    wide = "task,anna,ben,carl\n" + "".join(f"t{n},cat,dog,{'cat' if n % 2 else ''}\n" for n in range(6))
    return [
        _alone(votes, "labels.csv"),
        replace(
            _alone(wide.encode(), "wide.csv", "labels"),
            columns=dict.fromkeys(("anna", "ben", "carl"), "votes"),
        ),
        Sample(
            {"labels.csv": votes, "truth.csv": b"task,truth\nt0,cat\nt1,dog\n"},
            ("truth.csv",),
            ("labels.csv", "truth.csv"),
        ),
    ]


def _pair_tables(folder: Path) -> list[Sample]:
    rows = "".join(f"w{n % 3},i{n % 4},i{(n + 1) % 5},{('left', 'right', 'tie')[n % 3]}\n" for n in range(12))
    numbers = "".join(f"w{n % 3},i{n % 4},i{(n + 1) % 5},{n % 5 - 2}\n" for n in range(12))
    return [
        _alone(f"annotator,left,right,choice\n{rows}".encode(), "pairs.csv"),
        _alone(f"judge,left,right,choice\n{numbers}".encode(), "pairs.csv", "pairs"),
    ]


def _parquet(folder: Path) -> list[Sample]:
    columns = {"annotator": ["ann", "bob"], "task": ["t1", "t1"], "label": ["cat", "dog"], "time": [1.5, 2.5]}
    parquet.write_table(pyarrow.table(columns), folder / "labels.parquet")
    columns = {"annotator": ["ann", "bob"], "image": ["a.png", "a.png"], "x": [1.5, 2.5], "y": [3, 4]}
    parquet.write_table(pyarrow.table(columns), folder / "clicks.parquet", compression="zstd")
    return [_alone(path.read_bytes(), path.name) for path in sorted(folder.glob("*.parquet"))]


def _zooniverse_csv() -> bytes:
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, HEADER, restval="")
    writer.writeheader()
    rows = [
        looked("ann", "7", drawing(point(1.5, 2), point(3, 4))),
        looked("bob", "7", [*drawing(point_2(5, 6)), {"task": "T1", "task_label": "What?", "value": "yes"}]),
        looked("cy", "8", drawing(), name="b.png"),
    ]
    writer.writerows({"classification_id": number, **row} for number, row in enumerate(rows, start=1))
    return buffer.getvalue().encode()


def _zooniverse(folder: Path) -> list[Sample]:
    content = _zooniverse_csv()
    return [_alone(content, "classifications.csv", kind) for kind in (None, "clicks", "labels")]


MARKS = {("anna", "a.png"): [(3.5, 4.0), (20.0, 30.0)], ("ben", "a.png"): [(5.0, 6.0)], ("ben", "b.png"): []}


def _points(name: str) -> Callable[[Path], list[Sample]]:
    def make(folder: Path) -> list[Sample]:
        WRITERS[name](folder, MARKS)
        return [_folder(folder), _folder(folder, kind="clicks")]

    return make


def _label_files(folder: Path) -> list[Sample]:
    """Answers of Label Studio, tags of CVAT, categories of COCO."""
    studio = [
        {
            "id": 1, "data": {"image": "a.png"},
            "annotations": [
                {
                    "completed_by": {"id": 1, "email": annotator},
                    "result": [{"type": "choices", "from_name": "kind", "to_name": "image",
                                "value": {"choices": ["cat"]}}],
                }
                for annotator in ("anna", "ben")
            ],
        }
    ]  # fmt: skip
    cvat = (
        "<annotations><version>1.1</version><meta><job><assignee><username>anna</username></assignee></job>"
        '</meta><image id="0" name="a.png" width="20" height="10"><tag label="cat" source="manual"/></image>'
        '<image id="1" name="b.png" width="20" height="10"><tag label="dog" source="manual"/></image>'
        "</annotations>"
    )
    coco = coco_masks({"id": 1}, {"id": 2, "category_id": 2})
    return [
        _alone(json.dumps(studio).encode(), "studio.json", "labels"),
        _alone(cvat.encode(), "tags.xml", "labels"),
        _alone(json.dumps(coco).encode(), "coco.json", "labels"),
    ]


SHAPE = (4, 12, 14)


def _voxels() -> np.ndarray:
    return np.random.default_rng(2).integers(-100, 900, SHAPE).astype(np.int16)


def _ball() -> np.ndarray:
    at = np.indices(SHAPE) - np.array([2, 6, 7])[:, None, None, None]
    return ((at**2).sum(axis=0) < 14).astype(np.uint8)


def _nifti(folder: Path) -> list[Sample]:
    affine = np.diag([-1.0, -1.5, 2.5, 1.0])
    names = ("a.nii", "a.nii.gz", "b.nii", "c.hdr")
    nibabel.save(nibabel.Nifti1Image(_voxels().T, affine), folder / "a.nii")
    nibabel.save(nibabel.Nifti1Image(_voxels().T, affine), folder / "a.nii.gz")
    nibabel.save(nibabel.Nifti2Image(_voxels().T.astype(np.float32), affine), folder / "b.nii")
    nibabel.save(nibabel.Nifti1Pair(_voxels().T, affine), folder / "c.img")
    created = [_alone((folder / name).read_bytes(), name, "volume") for name in names[:3]]
    pair = {name: (folder / name).read_bytes() for name in ("c.hdr", "c.img")}
    return [*created, Sample(pair, ("c.hdr", "c.img"), ("c.hdr",), "volume")]


def _nrrd(folder: Path) -> list[Sample]:
    header = {"space": "left-posterior-superior", "space directions": np.diag([1.0, 1.5, 2.5]),
              "space origin": [1.0, 2.0, 3.0]}  # fmt: skip
    for name, encoding in (("a.nrrd", "gzip"), ("b.nrrd", "raw"), ("c.nrrd", "ascii")):
        nrrd.write(str(folder / name), _voxels().T, {**header, "encoding": encoding})
    nrrd.write(str(folder / "d.nhdr"), _voxels().T, {**header, "encoding": "raw"}, detached_header=True)
    alone = [_alone((folder / f"{name}.nrrd").read_bytes(), f"{name}.nrrd", "volume") for name in "abc"]
    pair = {path.name: path.read_bytes() for path in folder.glob("d.*")}
    return [*alone, Sample(pair, ("d.nhdr",), ("d.nhdr",), "volume")]


def _metaimage(folder: Path) -> list[Sample]:
    image = SimpleITK.GetImageFromArray(_voxels())
    image.SetSpacing((1.0, 1.5, 2.5))
    SimpleITK.WriteImage(image, str(folder / "a.mha"))
    SimpleITK.WriteImage(image, str(folder / "b.mha"), True)
    SimpleITK.WriteImage(image, str(folder / "c.mhd"))
    pair = {path.name: path.read_bytes() for path in folder.glob("c.*")}
    return [
        *(_alone((folder / name).read_bytes(), name, "volume") for name in ("a.mha", "b.mha")),
        Sample(pair, ("c.mhd",), ("c.mhd",), "volume"),
    ]


def _series(folder: Path) -> Path:
    for at, pixels in enumerate(_voxels()):
        tags = {"InstanceNumber": at + 1, "StudyInstanceUID": "1.2.3", "FrameOfReferenceUID": "1.2.9"}
        tags |= {"SOPInstanceUID": f"1.2.3.4.{at}", "RescaleSlope": 1, "RescaleIntercept": 0}
        made_dicom.save(made_dicom.image(pixels, (0.0, 0.0, 2.0 * at), **tags), folder / f"{at}.dcm")
    return folder


def _dicom(folder: Path) -> list[Sample]:
    return [_folder(_series(folder), kind="volume"), _folder(folder)]


def _enhanced_dicom(folder: Path) -> list[Sample]:
    data = made_dicom.enhanced(_voxels(), [0.0, 2.0, 4.0, 6.0], [0.0] * 4)
    made_dicom.save(data, folder / "a.dcm")
    return [_folder(folder, kind="volume")]


def _masks_on_series(kind: str) -> Callable[[Path], list[Sample]]:
    def make(folder: Path) -> list[Sample]:
        _series(folder)
        (volume,) = find_volumes(folder)
        structures = [Structure("liver", _ball().astype(bool)), Structure("lesion", _voxels() > 500)]
        write_masks(folder / "mask", kind, structures, volume.grid, source=volume)
        return [_folder(folder, "mask*")]

    return make


def _label_maps(folder: Path) -> list[Sample]:
    affine = np.diag([-1.0, -1.5, 2.5, 1.0])
    nibabel.save(nibabel.Nifti1Image(_voxels().T, affine), folder / "ct.nii.gz")
    nibabel.save(nibabel.Nifti1Image(_ball().T, affine), folder / "ct_anna.nii.gz")
    nibabel.save(nibabel.Nifti1Image((2 * _ball()).T, affine), folder / "ct_ben.nii.gz")
    together, alone = _folder(folder, "ct_*"), _folder(folder, "ct_*", "masks")
    return [together, replace(alone, read=alone.targets)]


MASK = np.zeros((10, 20), dtype=bool)
MASK[2:5, 3:9] = True


def _coco_masks(folder: Path) -> list[Sample]:
    counts = runs(MASK.T.ravel())
    square = [[1, 1, 4, 1, 4, 3, 1, 3]]
    content = coco_masks(
        {"id": 1, "segmentation": {"size": [10, 20], "counts": counts}, "iscrowd": 1,
         "attributes": {"annotator": "anna"}},
        {"id": 2, "segmentation": {"size": [10, 20], "counts": packed(counts)}, "iscrowd": 1},
        {"id": 3, "segmentation": square, "category_id": 2}, images=2,
    )  # fmt: skip
    return [_alone(json.dumps(content).encode(), "coco.json", "masks")]


def _cvat_masks(folder: Path) -> list[Sample]:
    counts = ", ".join(map(str, runs(MASK[2:5, 3:9].ravel())))
    content = (
        "<annotations><version>1.1</version><meta><job><assignee><username>anna</username></assignee></job>"
        '</meta><image id="0" name="a.png" width="20" height="10">'
        f'<mask label="cell" rle="{counts}" left="3" top="2" width="6" height="3"/>'
        '<polygon label="p" points="1,1;4,1;4,3;1,3"/>'
        '<ellipse label="e" cx="10" cy="5" rx="4" ry="2" rotation="30"/></image></annotations>'
    )
    return [_alone(content.encode(), "masks.xml", "masks")]


def _label_studio_masks(folder: Path) -> list[Sample]:
    values = np.repeat(255 * MASK.astype(int).ravel(), 4).tolist()
    size = {"original_width": 20, "original_height": 10, "from_name": "tag", "to_name": "image"}
    results = [
        {"type": "brushlabels", **size,
         "value": {"format": "rle", "rle": brush(values, repeat=True), "brushlabels": ["a"]}},
        {"type": "polygonlabels", **size, "value": {"points": [[5, 5], [50, 5], [50, 60]],
                                                    "polygonlabels": ["b"]}},
        {"type": "ellipselabels", **size, "value": {"x": 50, "y": 50, "radiusX": 20, "radiusY": 10,
                                                    "rotation": 20, "ellipselabels": ["c"]}},
    ]  # fmt: skip
    task = {"id": 1, "data": {"image": "a.png"}, "annotations": [{"completed_by": 1, "result": results}]}
    return [_alone(json.dumps([task]).encode(), "studio.json", "masks")]


def _labelme_masks(folder: Path) -> list[Sample]:
    shapes = [
        {"label": "cell", "points": [[1, 1], [8, 1], [8, 6]], "shape_type": "polygon", "group_id": None},
        {"label": "cell", "points": [[3, 3], [6, 3]], "shape_type": "circle", "group_id": 2},
        {"label": "box", "points": [[3, 3], [6, 8]], "shape_type": "rectangle"},
    ]
    content = {"version": "5.4", "shapes": shapes, "imagePath": "a.png", "imageData": None,
               "imageWidth": 20, "imageHeight": 10}  # fmt: skip
    return [_alone(json.dumps(content).encode(), "anna.json", "masks")]


def _lidc(folder: Path) -> list[Sample]:
    rois = (roi(ring(10, 20, 20, 30)), roi(ring(14, 24, 16, 26), hole=True), roi(ring(4, 5, 8, 9), z=2.5))
    session = nodule(*rois)
    return [_alone(message(session, session).encode(), "158.xml", "masks")]


def _growing(folder: Path) -> list[Sample]:
    rows = "".join(f"w{n % 3},a.png,{n}.5,{2 * n},{n}\n" for n in range(12))
    clicks = [{"annotator": f"w{n % 3}", "image": "a.png", "x": n, "y": 2.5 * n} for n in range(12)]
    lines = "".join(json.dumps(click) + "\n" for click in clicks)
    return [
        _alone(f"annotator,image,x,y,time\n{rows}".encode(), "clicks.csv", grows=True),
        _alone(lines.encode(), "clicks.jsonl", grows=True),
        _alone(_zooniverse_csv(), "classifications.csv", grows=True),
    ]


READERS: dict[str, Callable[[Path], list[Sample]]] = {
    "png": _png, "jpeg": _jpeg, "tiff": _tiff,
    "click-tables": _click_tables, "truth-tables": _truth_tables, "label-tables": _label_tables,
    "pair-tables": _pair_tables, "parquet": _parquet, "zooniverse": _zooniverse, "label-files": _label_files,
    **{f"points-{name.replace('_', '-')}": _points(name) for name in WRITERS},
    "nifti": _nifti, "nrrd": _nrrd, "metaimage": _metaimage, "dicom": _dicom,
    "enhanced-dicom": _enhanced_dicom,
    "label-maps": _label_maps, "seg-nrrd": _masks_on_series("seg.nrrd"),
    "dicom-seg": _masks_on_series("dicom-seg"), "rtstruct": _masks_on_series("rtstruct"),
    "coco-masks": _coco_masks, "cvat-masks": _cvat_masks, "label-studio-masks": _label_studio_masks,
    "labelme-masks": _labelme_masks, "lidc": _lidc, "growing": _growing,
}  # fmt: skip
"""Samples by reader; each is given an empty folder to work in."""

REAL: dict[str, tuple[str, ...]] = {
    "jpeg": ("formats/bccd/*.jpg",), "click-tables": ("formats/synthetic/malaria*.csv",),
    "label-tables": ("formats/synthetic/crowd_labels.csv",),
    "pair-tables": ("formats/synthetic/crowd_pairwise.csv",),
    "zooniverse": ("formats/zooniverse/*.csv", "formats/synthetic/zooniverse_points.csv"),
    "points-geojson": ("formats/synthetic/qupath.geojson",),
    "points-cvat": ("formats/synthetic/cvat_job*.xml",),
    "points-napari": ("formats/synthetic/napari*.csv",),
    "points-labelme": ("formats/synthetic/labelme.json",),
    "points-coco": ("formats/synthetic/coco*.json",),
    "points-label-studio": ("formats/label_studio/*.json", "formats/synthetic/label_studio*.json"),
    "cvat-masks": ("formats/cvat/*.xml", "formats/bccd/*.xml"), "coco-masks": ("formats/coco/*.json",),
    "lidc": ("formats/lidc/*.xml",), "nifti": ("formats/nifti/*.nii", "formats/nifti/*.nii.gz"),
    "nrrd": ("formats/nrrd/*.nrrd",), "dicom": ("formats/dicom/pydicom/*.dcm",),
}  # fmt: skip
"""Files of real data by reader, where the folder is named by RATERSCOPE_DATA."""


def samples_of(reader: str, data: Path | None = None) -> list[Sample]:
    """Return the samples of a reader, those of real data too where there is a folder of it."""
    with TemporaryDirectory() as name:
        created = READERS[reader](Path(name))
    for pattern in REAL.get(reader, ()) if data is not None else ():
        for path in sorted(data.glob(pattern)):
            if path.stat().st_size <= LARGEST:
                created.append(_alone(path.read_bytes(), path.name))
    return created
