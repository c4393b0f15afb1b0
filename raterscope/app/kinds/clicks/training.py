"""Training set of YOLO from the detections: boxes with classes, soft labels, split by patient.

The folder has images/train, labels/train, images/val, labels/val, data.yaml and soft_labels.csv. A label file
has a line for each detection: class, centre and size of the box as shares of the image. An image without
detections has an empty one. Images of a group (patient, slide) are all in train or all in val.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from raterscope.algorithms.click_classes import sort_classes
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import plain
from raterscope.app.exports import Request, folder_of
from raterscope.app.formats.masks.naming import strip_suffixes
from raterscope.app.formats.output_files import make_folder, open_text_output, unique_name, write_table
from raterscope.app.formats.points.writing import ImageDetections, box_of
from raterscope.app.kinds.clicks.exports import read_detections
from raterscope.app.study import Study
from raterscope.app.study.groups import split_groups

UNNAMED = "structure"
"""Class of detections without classes."""


def export_training(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write the detections as a training set; see `exports.Writer`.

    Raises `InputError` if there is no fusion or decision, or a file cannot be written.
    """
    images = read_detections(study, request, part(watch, 0.0, 0.5))
    entries = {entry.name: entry for entry in study.images()}
    groups = {number: name for name, numbers in request.groups.items() for number in numbers}
    if groups:
        images = [image for image in images if entries[image.name].id in groups]
    group_of = {image.name: groups.get(entries[image.name].id, image.name) for image in images}
    validation = next(iter(split_groups(group_of.values())), frozenset())
    names = sort_classes([found.label for image in images for found in image.detections]) or (UNNAMED,)
    folder, used = folder_of(request), set[str]()
    make_folder(folder)
    for kind in ("images", "labels"):
        for split in ("train", "val"):
            make_folder(folder / kind)
            make_folder(folder / kind / split)
    files: list[Path] = [folder / "data.yaml"]
    soft: list[Sequence[object]] = []
    for image, step in steps_of(part(watch, 0.5, 1.0), images):
        step(0.0, f"writing {plain(image.name)}")
        split = "val" if group_of[image.name] in validation else "train"
        title = unique_name(strip_suffixes(Path(image.name)), used)
        path = folder / "labels" / split / f"{title}.txt"
        with open_text_output(path) as file:
            file.writelines(_lines(image, names))
        files.append(path)
        source = study.locate(entries[image.name])
        if source is None:
            request.say(f"{plain(image.name)} has no file; copy it to images/{split}.")
        else:
            shutil.copyfile(source, folder / "images" / split / f"{title}{source.suffix}")
        soft += [
            (image.name, split, group_of[image.name], found.x, found.y, found.score, found.label,
             *(found.shares.get(name) for name in names))
            for found in image.detections
        ]  # fmt: skip
    header = ("image", "split", "group", "x", "y", "score", "class", *(f"p({name})" for name in names))
    files.append(write_table(folder / "soft_labels.csv", header, soft))
    with open_text_output(files[0]) as file:
        file.write("train: images/train\nval: images/val\nnames:\n")
        file.writelines(f"  {index}: {json.dumps(name)}\n" for index, name in enumerate(names))
    return files


def _lines(image: ImageDetections, names: Sequence[str]) -> list[str]:
    """Return the lines of a label file; boxes are cut at the edges of the image."""
    lines = []
    for found in image.detections:
        left, top, width, height = box_of(found)
        right, bottom = min(left + width, image.width), min(top + height, image.height)
        left, top = max(left, 0.0), max(top, 0.0)
        if right <= left or bottom <= top:
            continue
        values = (
            (left + right) / 2 / image.width, (top + bottom) / 2 / image.height,
            (right - left) / image.width, (bottom - top) / image.height,
        )  # fmt: skip
        index = names.index(found.label) if found.label else 0
        lines.append(f"{index} {' '.join(f'{value:.6f}' for value in values)}\n")
    return lines
