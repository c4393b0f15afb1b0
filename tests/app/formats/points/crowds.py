"""A crowd's clicks written as each program writes them, for tests: one dictionary of places per format."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

Marks = Mapping[tuple[str, str], Sequence[tuple[float, float]]]
"""Places by annotator and image."""

SIZE = (320, 240)


def geojson(folder: Path, marks: Marks) -> list[Path]:
    """QuPath: a file for each annotator and image, with all points in one object."""
    written = []
    for (annotator, image), positions in marks.items():
        shape = {"type": "MultiPoint", "coordinates": [list(position) for position in positions]}
        features = [feature(shape)] if positions else []
        written.append(folder / f"{Path(image).stem}_{annotator}.geojson")
        written[-1].write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return written


def feature(geometry: object, kind: str = "annotation", **properties: object) -> dict[str, object]:
    return {
        "type": "Feature",
        "id": "0b1f5f2e-0000-4000-8000-000000000001",
        "geometry": geometry,
        "properties": {"objectType": kind, **properties},
    }


def coco(folder: Path, marks: Marks) -> list[Path]:
    """COCO: a file an annotator, an object a point; images without a point are listed too."""
    written = []
    for annotator in annotators(marks):
        names = [image for name, image in marks if name == annotator]
        points = [(number, x, y) for number, image in enumerate(names) for x, y in marks[annotator, image]]
        content = {
            "images": [
                {"id": number, "file_name": name, "width": SIZE[0], "height": SIZE[1]}
                for number, name in enumerate(names)
            ],
            "categories": [{"id": 1, "name": "spot", "keypoints": ["centre", "tip"], "skeleton": []}],
            "annotations": [
                {
                    "id": at, "image_id": number, "category_id": 1, "num_keypoints": 1,
                    "keypoints": [x, y, 2, 0, 0, 0], "bbox": [x - 1, y - 1, 2, 2], "segmentation": [],
                    "attributes": {"annotator": annotator},
                }
                for at, (number, x, y) in enumerate(points)
            ],
        }  # fmt: skip
        written.append(folder / f"coco_{annotator}.json")
        written[-1].write_text(json.dumps(content))
    return written


def cvat(folder: Path, marks: Marks) -> list[Path]:
    """CVAT: a file a job; the points of an image are one shape."""
    written = []
    for annotator in annotators(marks):
        images = []
        for number, (name, image) in enumerate(marks):
            if name == annotator:
                positions = ";".join(f"{x!r},{y!r}" for x, y in marks[annotator, image])
                shape = f'<points label="spot" points="{positions}" z_order="0"/>' if positions else ""
                size = f'width="{SIZE[0]}" height="{SIZE[1]}"'
                images.append(f"<image id='{number}' name={quoteattr(image)} {size}>{shape}</image>")
        meta = f"<meta><job><assignee><username>{annotator}</username></assignee></job></meta>"
        written.append(folder / f"job_{annotator}.xml")
        written[-1].write_text(f"<annotations><version>1.1</version>{meta}{''.join(images)}</annotations>")
    return written


def label_studio(folder: Path, marks: Marks) -> list[Path]:
    """Label Studio: one file, a task an image, an annotation an annotator; places in percent."""
    tasks = []
    for number, name in enumerate(dict.fromkeys(image for _, image in marks)):
        annotations = [
            {
                "completed_by": {"id": at, "email": annotator, "first_name": "", "last_name": ""},
                "was_cancelled": False,
                "result": [keypoint(x, y) for x, y in positions],
            }
            for at, ((annotator, image), positions) in enumerate(marks.items())
            if image == name
        ]
        data = {"image": f"/data/upload/1/0a1b2c3d-{name}"}
        tasks.append({"id": number, "data": data, "annotations": annotations})
    path = folder / "tasks.json"
    path.write_text(json.dumps(tasks))
    return [path]


def keypoint(x: float, y: float, **more: object) -> dict[str, object]:
    percent = {"x": 100 * x / SIZE[0], "y": 100 * y / SIZE[1], "width": 0.5, "keypointlabels": ["spot"]}
    return {
        "type": "keypointlabels", "value": percent, "original_width": SIZE[0], "original_height": SIZE[1],
        **more,
    }  # fmt: skip


def labelme(folder: Path, marks: Marks) -> list[Path]:
    """labelme: a folder an annotator, a file an image."""
    written = []
    for (annotator, image), positions in marks.items():
        shapes = [
            {"label": "spot", "points": [list(position)], "shape_type": "point"} for position in positions
        ]
        content = {
            "version": "5.4.1", "shapes": shapes, "imagePath": f"..\\images\\{image}", "imageData": None,
            "imageWidth": SIZE[0], "imageHeight": SIZE[1],
        }  # fmt: skip
        (folder / annotator).mkdir(exist_ok=True)
        written.append(folder / annotator / f"{Path(image).stem}.json")
        written[-1].write_text(json.dumps(content))
    return written


def napari(folder: Path, marks: Marks) -> list[Path]:
    """napari: a layer for each annotator and image, counted from the centre of the first pixel."""
    written = []
    for (annotator, image), positions in marks.items():
        rows = [f"{at},{y - 0.5!r},{x - 0.5!r}" for at, (x, y) in enumerate(positions)]
        if rows:
            written.append(folder / f"{Path(image).stem}_{annotator}.csv")
            written[-1].write_text("\n".join(["index,axis-0,axis-1", *rows]) + "\n")
    return written


def annotators(marks: Iterable[tuple[str, str]]) -> list[str]:
    return list(dict.fromkeys(annotator for annotator, _ in marks))


WRITERS = {
    "geojson": geojson, "coco": coco, "cvat": cvat, "label_studio": label_studio, "labelme": labelme,
    "napari": napari,
}  # fmt: skip
