"""Files made to do harm: what any reader must refuse in one sentence, before it costs much."""

import base64
import bz2
import functools
import gzip
import json
import lzma
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import tifffile

from raterscope.app import formats
from raterscope.app.errors import InputError
from raterscope.app.formats.image_structure import series_of
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.points import read_points
from raterscope.app.formats.volumes import find_volumes
from tests.app.formats.masks.test_annotations import MASK, coco, labelme, painted, region, studio
from tests.app.formats.masks.test_shapes import runs

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


def refusal_of(read, path: Path) -> str:
    try:
        read(path)
    except InputError as error:
        return str(error)
    return "none"


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_device_is_never_read(tmp_path: Path, read) -> None:
    for ending in ENDINGS:
        path = tmp_path / f"a.{ending}"
        path.symlink_to("/dev/null")
        assert "is a pipe or a device" in refusal_of(read, path), ending


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_name_that_is_no_text_is_refused(tmp_path: Path, read) -> None:
    for ending in ENDINGS:
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/sm\xe9ar." + ending.encode()))
        path.write_bytes(b"x")
        refusal = refusal_of(read, path)
        assert "is not UTF-8; rename it" in refusal, ending
        refusal.encode()


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
    """Return the way to each value that is neither a list nor an object; of long lists the first values."""
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


WIDE = 30_000
HUGE = (512, 512, 2000)
"""Of doubles: 4 GB."""

NRRD = f"""NRRD0004
type: double
dimension: 3
space: left-posterior-superior
sizes: {" ".join(map(str, HUGE))}
space directions: (1,0,0) (0,1,0) (0,0,1)
kinds: domain domain domain
endian: little
encoding: %s
space origin: (0,0,0)
Segment0_ID:=Segment_1
Segment0_LabelValue:=1
Segment0_Layer:=0

"""
META = f"""ObjectType = Image
NDims = 3
BinaryData = True
CompressedData = True
DimSize = {" ".join(map(str, HUGE))}
ElementType = MET_DOUBLE
ElementDataFile = LOCAL
"""
PACKED = zlib.compress(bytes(4 << 20), 9)
"""Stands for the 4 MB of a bomb that really unpacks: what the header claims must be refused before."""


def coco_of(segmentations: list[object], width: int = WIDE) -> str:
    return json.dumps(
        {
            "images": [{"id": 0, "file_name": "a.png", "width": width, "height": width}],
            "annotations": [
                {"id": at, "image_id": 0, "category_id": at, "segmentation": entry}
                for at, entry in enumerate(segmentations)
            ],
        }
    )


@functools.cache
def painted_all(side: int) -> list[int]:
    """Pack a brush over a whole image, 65,536 values a run."""
    bits, left = f"{4 * side * side:032b}{7:05b}" + "0000" * 3 + "1111", 4 * side * side
    while left:
        count = min(left, 1 << 16)
        bits += f"111{count - 1:016b}{255:08b}"
        left -= count
    bits += "0" * (-len(bits) % 8)
    return [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]


@functools.cache
@functools.cache
def white(side: int) -> bytes:
    """Return a PNG of one bit a pixel, all white."""
    row = zlib.compress((b"\0" + b"\xff" * -(-side // 8)) * side, 9)
    parts = ((b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)), (b"IDAT", row), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def pages_of_one_strip(pages: int, side: int) -> bytes:
    """Return a TIFF of doubles whose pages all have the same pixels."""
    data = zlib.compress(bytes(side * side * 8), 9)
    data += bytes(len(data) % 2)
    out = b"II*\0" + struct.pack("<I", 8 + len(data)) + data
    values = {
        256: side,
        257: side,
        258: 64,
        259: 8,
        262: 1,
        273: 8,
        277: 1,
        278: side,
        279: len(data),
        339: 3,
    }
    for page in range(pages):
        out += struct.pack("<H", len(values))
        out += b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in values.items())
        out += struct.pack("<I", len(out) + 4 if page < pages - 1 else 0)
    return out


def nifti() -> bytes:
    import nibabel

    header = nibabel.Nifti1Header()
    header.set_data_dtype(np.float64)
    header.set_data_shape(HUGE)
    header["magic"], header["vox_offset"] = b"n+1", 352
    return gzip.compress(bytes(header.binaryblock) + bytes(4 << 20))


def lidc(nodules: int) -> str:
    corner = "<edgeMap><xCoord>{0}</xCoord><yCoord>{0}</yCoord></edgeMap>"
    rois = "".join(
        f"<roi><imageZposition>{z}</imageZposition><inclusion>TRUE</inclusion>{corner.format(0)}"
        f"{corner.format(511)}</roi>"
        for z in (0, 1, 2000)
    )
    nodule = f"<unblindedReadNodule>{rois}</unblindedReadNodule>"
    return f"<LidcReadMessage><readingSession>{nodule * nodules}</readingSession></LidcReadMessage>"


def segments(path: Path, count: int) -> None:
    """Write a segmentation whose segments all reach from the first slice to the last of very many."""
    from pydicom.dataset import Dataset

    from tests.app.formats.volumes.made_dicom import image, save

    def item(**values: object) -> Dataset:
        built = Dataset()
        for name, value in values.items():
            setattr(built, name, value)
        return built

    data = image(np.ones((64, 64), dtype=np.uint8), None)
    data.SOPClassUID, data.Modality = "1.2.840.10008.5.1.4.1.1.66.4", "SEG"
    data.NumberOfFrames, data.PixelData = 2 * count, bytes(64 * 64 * 2 * count)
    data.SegmentationType, data.SegmentSequence = (
        "BINARY",
        [item(SegmentNumber=k) for k in range(1, count + 1)],
    )
    turn = item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])
    sizes = item(PixelSpacing=[1, 1], SpacingBetweenSlices=1)
    data.SharedFunctionalGroupsSequence = [
        item(PlaneOrientationSequence=[turn], PixelMeasuresSequence=[sizes])
    ]
    data.PerFrameFunctionalGroupsSequence = [
        item(
            PlanePositionSequence=[item(ImagePositionPatient=[0, 0, z])],
            SegmentIdentificationSequence=[item(ReferencedSegmentNumber=k)],
        )
        for k in range(1, count + 1)
        for z in (0, 199_999)
    ]
    save(data, path)


def contours(folder: Path, count: int) -> None:
    """Write structures that each reach from the first slice of a scan to the last, and the scan."""
    from pydicom.dataset import Dataset

    from tests.app.formats.volumes.made_dicom import image, save

    side = 1000
    for z in (0, 999):
        save(
            image(np.zeros((side, side), dtype=np.uint8), (0, 0, z), PixelSpacing=[1, 1]), folder / f"{z}.dcm"
        )
    data = image(np.zeros((1, 1), dtype=np.uint8), None)
    data.SOPClassUID, data.Modality = "1.2.840.10008.5.1.4.1.1.481.3", "RTSTRUCT"
    rois = []
    for number in range(1, count + 1):
        roi, drawn = Dataset(), []
        for z in (0, 999):
            contour = Dataset()
            contour.ContourGeometricType = "CLOSED_PLANAR"
            contour.ContourData = [0, 0, z, side - 1, 0, z, side - 1, side - 1, z, 0, side - 1, z]
            drawn.append(contour)
        roi.ReferencedROINumber, roi.ContourSequence = number, drawn
        rois.append(roi)
    data.ROIContourSequence = rois
    save(data, folder / "rt" / "a.dcm")


def region_of(side: int, at: int) -> dict[str, object]:
    value = {"format": "rle", "rle": painted_all(side), "brushlabels": [f"c{at}"]}
    return {"type": "brushlabels", "original_width": side, "original_height": side, "value": value}


def write_bombs(folder: Path) -> None:
    texts: dict[str, Callable[[], str | bytes]] = {
        "runs.json": lambda: coco_of([{"size": [WIDE, WIDE], "counts": [0, WIDE**2]}] * 40),
        "edges.json": lambda: coco_of([{"size": [WIDE, WIDE], "counts": [0, 1, WIDE**2 - 2, 1]}] * 40),
        "polygons.json": lambda: coco_of([[[0, 0, WIDE, 0, WIDE, WIDE, 0, WIDE]]] * 40),
        "parts.json": lambda: coco_of([[[0, 0, WIDE, 0, WIDE, WIDE, 0, WIDE]] * 40]),
        "cvat.xml": lambda: "<annotations>" + "".join(
            f'<image id="{k}" name="{k}" width="{WIDE}" height="{WIDE}"><mask label="a" rle="0,{WIDE**2}"'
            f' left="0" top="0" width="{WIDE}" height="{WIDE}"/></image>' for k in range(40)
        ) + "</annotations>",
        "studio.json": lambda: json.dumps(studio({"result": [region_of(8000, k) for k in range(10)]})),
        "labelme.json": lambda: json.dumps(labelme(*(
            {"label": f"{k}", "shape_type": "mask", "points": [[0, 0]],
             "mask": base64.b64encode(white(13_000)).decode()} for k in range(10)
        )) | {"imageHeight": 13_000, "imageWidth": 13_000}),
        "gzip.seg.nrrd": lambda: (NRRD % "gzip").encode() + gzip.compress(bytes(4 << 20)),
        "bzip2.seg.nrrd": lambda: (NRRD % "bzip2").encode() + bz2.compress(bytes(4 << 20)),
        "text.seg.nrrd": lambda: (NRRD % "ascii").replace("512 512 2000", "99 99 99") + "1 " * 970_298
        + "1" * 900_000,
        "zlib.mha": lambda: META.encode() + PACKED,
        "gzip.nii.gz": nifti,
        "pages.tif": lambda: pages_of_one_strip(1000, 1000),
        "lidc.xml": lambda: lidc(300),
        "table.csv.bz2": lambda: bz2.compress(bytes(100 << 20)),
        "table.csv.xz": lambda: lzma.compress(bytes(100 << 20), preset=0),
        "table.csv.gz": lambda: gzip.compress(b"annotator,image,x,y\n" + b"ann,a.png,1,2\n" * 10_000_000, 1),
    }  # fmt: skip
    for name, built in texts.items():
        content = built()
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    segments(folder / "segments.dcm", 200)
    contours(folder / "scan", 400)


def read_bombs(folder: Path, room: int) -> None:
    """Read every bomb in a process that may take no more than so many bytes; print the message on each."""
    import resource

    from raterscope.app.formats.volumes import load_volume

    scan = find_volumes(folder / "scan")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
    files = sorted(path for path in folder.iterdir() if path.is_file())
    reads: list[tuple[str, Callable[[], object]]] = [(p.name, lambda p=p: read_masks(p)) for p in files]
    reads += [("rt", lambda: read_masks(folder / "scan" / "rt" / "a.dcm", scan))]
    reads += [("as a volume", lambda: load_volume(find_volumes(folder / "gzip.nii.gz")[0]))]
    reads += [("as slices", lambda: load_volume(find_volumes(folder / "pages.tif")[0]))]
    tables = [path for path in files if path.name.startswith("table.csv")]
    reads += [(f"as a table {p.name}", lambda p=p: formats.read(p)) for p in tables]
    for name, read in reads:
        if name.startswith("table.csv"):
            continue
        try:
            read()
            print(name, "was read")
        except InputError as error:
            print(name, "-", error)


@pytest.mark.skipif(sys.platform != "linux", reason="only here a process can be given less room")
def test_what_a_small_file_claims_is_refused_before_room_is_made_for_it(tmp_path: Path) -> None:
    write_bombs(tmp_path)
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 5_000_000
    code = (
        "import sys, pathlib; from tests.app.formats.test_hostile_files import read_bombs;"
        "read_bombs(pathlib.Path(sys.argv[1]), 500_000_000)"
    )
    run = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr[-3000:]
    message = done.stdout.splitlines()
    assert len(message) == 21
    for line in message:
        assert any(word in line for word in ("expected", "unpacks to more")), line
        assert "memory" not in line
        assert "was read" not in line


@pytest.mark.parametrize(("name", "opened"), [("b.tif", 2), ("../b.tif", 1), ("&#46;&#46;&#47;b.tif", 1)])
def test_an_ome_description_opens_no_file_of_another_folder(tmp_path: Path, name: str, opened: int) -> None:
    folder, plane = tmp_path / "in", np.zeros((8, 8), np.uint8)
    folder.mkdir()
    planes = "".join(
        f'<TiffData IFD="0" FirstZ="{at}" PlaneCount="1"><UUID FileName="{file}">{file}</UUID></TiffData>'
        for at, file in enumerate(("a.tif", name))
    )
    description = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="a.tif">'
        '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYZCT" Type="uint8" SizeX="8" SizeY="8" '
        f'SizeZ="2" SizeC="1" SizeT="1"><Channel ID="Channel:0:0"/>{planes}</Pixels></Image></OME>'
    )
    for path in (tmp_path / "b.tif", folder / "b.tif"):
        tifffile.imwrite(path, plane)
    tifffile.imwrite(folder / "a.tif", plane, description=description, metadata=None)
    with tifffile.TiffFile(folder / "a.tif") as file:
        assert series_of(file)[0].size == 64 * opened
        assert len(file._files) == opened
