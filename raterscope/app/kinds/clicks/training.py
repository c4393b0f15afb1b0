"""Training sets from clicks: boxes of YOLO or COCO, or crops for classifiers, with soft labels, by patient.

YOLO: images/train, labels/train, images/val, labels/val, data.yaml and soft_labels.csv. A label file has a
line for each detection: class, centre and size of the box as shares of the image. An image without detections
has an empty one.

COCO: images/train, images/val, annotations/train.json, annotations/val.json and soft_labels.csv. The boxes
are in pixels, and both files have the same categories.

Crops: a square PNG of each cluster, structures and artefacts, in the pixels of the image, and crops.csv with
posterior, probabilities of the classes and decision.

Images of a group (patient, slide) are all in train or all in val.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from raterscope.algorithms.click_classes import sort_classes
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain, system_reason
from raterscope.app.exports import Request, folder_of
from raterscope.app.formats.images import load_image
from raterscope.app.formats.masks.naming import strip_suffixes
from raterscope.app.formats.output_files import (
    make_folder,
    new_folder,
    open_output,
    open_text_output,
    unique_name,
    write_table,
)
from raterscope.app.formats.points.writing import ImageDetections, box_within, write_coco
from raterscope.app.formats.pyramids import PyramidReader, crop_of, is_large, open_pyramid
from raterscope.app.kinds.clicks.exports import read_detections, rows_of_images
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.image_groups import split_groups
from raterscope.text import counted

UNNAMED = "structure"
"""Class of detections without classes."""

_CROP_COLUMNS = (
    "file", "image", "split", "group", "x", "y", "side", "um_per_px", "posterior", "detected", "decision"
)  # fmt: skip
_SMALLEST_SIDE, _SIDE_STEP = 32, 16
_SURROUNDINGS = 2.0
"""Side of a crop as a multiple of the extent of a typical cluster (four standard deviations)."""


@dataclass(frozen=True)
class _Split:
    """Group of each image by number, and the groups of the validation set."""

    group_of: Mapping[int, str]
    validation: frozenset[str]

    def name(self, image: int) -> str:
        return "val" if self.group_of[image] in self.validation else "train"


def export_training(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the clusters as a training set; see `exports.Writer`.

    Raises `InputError` if there is no fusion or decision, or a file cannot be written.
    """
    groups = {number: name for name, numbers in request.groups.items() for number in numbers}
    if groups:
        chosen = tuple(number for number in groups if not request.items or number in request.items)
        if not chosen:
            raise InputError("no group has any of these images", file=study.path)
        request = replace(request, items=chosen)
    export = _export_crops if request.format == "crops" else _export_boxes
    with new_folder(folder_of(request)):
        return export(study, request, groups, watch)


def _split(entries: Sequence[ImageEntry], groups: Mapping[int, str], request: Request) -> _Split:
    group_of = {entry.id: groups.get(entry.id, entry.name) for entry in entries}
    if len(set(group_of.values())) == 1:
        request.say("A single group cannot be split: all images are in train.")
    return _Split(group_of, next(iter(split_groups(group_of.values())), frozenset()))


def _export_boxes(study: Study, request: Request, groups: Mapping[int, str], watch: Watch) -> list[Path]:
    images = read_detections(study, request, part(watch, 0.0, 0.5))
    entries = {entry.name: entry for entry in study.images()}
    split = _split([entries[image.name] for image in images], groups, request)
    names = sort_classes([detection.label for image in images for detection in image.detections]) or (
        UNNAMED,
    )
    folder, used = folder_of(request), set[str]()
    for name in ("train", "val"):
        make_folder(folder / "images" / name)
    placed: dict[str, list[ImageDetections]] = {"train": [], "val": []}
    soft: list[Sequence[object]] = []
    for image, step in steps_of(part(watch, 0.5, 1.0), images):
        step(0.0, f"writing {plain(image.name)}")
        entry = entries[image.name]
        name, group = split.name(entry.id), split.group_of[entry.id]
        source = study.locate(entry)
        suffix = Path(image.name).suffix if source is None else source.suffix
        file_name = unique_name(strip_suffixes(Path(image.name)), used) + suffix
        placed[name].append(replace(image, name=file_name))
        if source is None:
            request.say(f"{plain(image.name)} has no file; copy it to images/{name}/{plain(file_name)}.")
        else:
            _copy(source, folder / "images" / name / file_name)
        soft += [
            (image.name, name, group, detection.x, detection.y, detection.score, detection.label,
             *(detection.shares.get(each) for each in names))
            for detection in image.detections
        ]  # fmt: skip
    header = ("image", "split", "group", "x", "y", "score", "class", *(f"p({name})" for name in names))
    write = _write_coco if request.format == "coco-boxes" else _write_yolo
    return [*write(folder, placed, names), write_table(folder / "soft_labels.csv", header, soft)]


def _write_yolo(
    folder: Path, placed: Mapping[str, Sequence[ImageDetections]], names: Sequence[str]
) -> list[Path]:
    files = [folder / "data.yaml"]
    with open_text_output(files[0]) as file:
        file.write("train: images/train\nval: images/val\nnames:\n")
        file.writelines(f"  {index}: {json.dumps(name)}\n" for index, name in enumerate(names))
    for split, images in placed.items():
        make_folder(folder / "labels" / split)
        for image in images:
            files.append(folder / "labels" / split / f"{Path(image.name).stem}.txt")
            with open_text_output(files[-1]) as file:
                file.writelines(_lines(image, names))
    return files


def _write_coco(
    folder: Path, placed: Mapping[str, Sequence[ImageDetections]], names: Sequence[str]
) -> list[Path]:
    make_folder(folder / "annotations")
    return [
        write_coco(folder / "annotations" / f"{split}.json", images, names)
        for split, images in placed.items()
    ]


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise InputError(f"cannot be copied: {system_reason(error)}", file=source) from error


def _lines(image: ImageDetections, names: Sequence[str]) -> list[str]:
    """Return the lines of a label file."""
    lines = []
    for detection in image.detections:
        left, top, width, height = box_within(detection, image)
        if not width or not height:
            continue
        values = (
            (left + width / 2) / image.width, (top + height / 2) / image.height,
            width / image.width, height / image.height,
        )  # fmt: skip
        index = names.index(detection.label) if detection.label else 0
        lines.append(f"{index} {' '.join(f'{value:.6f}' for value in values)}\n")
    return lines


def _export_crops(study: Study, request: Request, groups: Mapping[int, str], watch: Watch) -> list[Path]:
    header, by_image, _, measures = rows_of_images(study, request, part(watch, 0.0, 0.2))
    split = _split([entry for entry, _ in by_image], groups, request)
    clusters = [(entry, [dict(zip(header, row, strict=True)) for row in rows]) for entry, rows in by_image]
    side = _side_of([row for _, rows in clusters for row in rows])
    folder, used = folder_of(request), set[str]()
    make_folder(folder / "crops")
    classes = [name for name in header if name == "class" or name.startswith("p(")]
    files: list[Path] = [folder / "crops.csv"]
    table: list[Sequence[object]] = []
    missing = 0
    for (entry, rows), step in steps_of(part(watch, 0.2, 1.0), clusters):
        step(0.0, f"writing crops of {plain(entry.name)}")
        path = study.locate(entry)
        if path is None:
            missing += bool(rows)
            continue
        pixels = _open(path, entry, step)
        title = unique_name(strip_suffixes(Path(entry.name)), used)
        size = measures.pixel_size(entry.id, entry.pixel_size)
        for number, row in enumerate(rows, start=1):
            x, y = float(str(row["x"])), float(str(row["y"]))
            crop = crop_of(pixels, x, y, side / 2)
            if crop is None:
                continue
            file = folder / "crops" / f"{title}_{number:04d}.png"
            with open_output(file) as output:
                Image.fromarray(crop).save(output, "PNG")
            files.append(file)
            table.append((
                f"crops/{file.name}", entry.name, split.name(entry.id), split.group_of[entry.id], x, y, side,
                size, row["posterior"], row["detected"], row["verdict"], *(row[name] for name in classes),
            ))  # fmt: skip
    if not table:
        raise InputError("contains no spot on an image with a file; import the images first", file=study.path)
    if missing:
        request.say(f"{counted(missing, 'image')} without file skipped.")
    write_table(files[0], (*_CROP_COLUMNS, *classes), table)
    return files


def _side_of(rows: Sequence[Mapping[str, object]]) -> int:
    """Choose the side of all crops, in pixels, from the median size of the clusters."""
    variances = [float(str(row[name])) for row in rows for name in ("sxx", "syy") if row[name] != ""]
    finite = [value for value in variances if math.isfinite(value) and value > 0]
    extent = 4 * math.sqrt(float(np.median(finite))) if finite else 0.0
    return max(math.ceil(_SURROUNDINGS * extent / _SIDE_STEP) * _SIDE_STEP, _SMALLEST_SIDE)


def _open(path: Path, entry: ImageEntry, watch: Watch) -> np.ndarray | PyramidReader:
    if is_large(entry.width, entry.height):
        return open_pyramid(path, entry.digest, watch)
    return load_image(path)
