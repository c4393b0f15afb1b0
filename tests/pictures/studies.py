"""Small studies, one per kind, that give the same screen everywhere: smooth images, fixed seeds and times."""

import csv
import sqlite3
from pathlib import Path

import nibabel
import numpy as np
from PIL import Image, ImageDraw

from raterscope.app.cli import main

STARTED = "2026-03-02T09:00:00+00:00"
"""Time of every run, which is on screen."""


def make_study(kind: str, folder: Path) -> Path:
    """Import the files of a kind into a study and fuse them, as on the command line."""
    study = folder / f"{kind}.rscope"
    files, extra = _FILES[kind](folder)
    _run("import", study, *files, *extra)
    _run("run", study, _ALGORITHMS[kind])
    with sqlite3.connect(study) as database:
        fixed = "log = json_replace(log, '$.images[0].seconds', 1.0)"
        database.execute(f"UPDATE runs SET started = ?, seconds = 1.0, {fixed}", (STARTED,))
    database.close()
    return study


def _run(*arguments: object) -> None:
    status = main([str(argument) for argument in arguments])
    assert status == 0, arguments


def _table(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def _clicks(folder: Path) -> tuple[list[Path], list[str]]:
    cells = [(60, 50), (150, 60), (250, 80), (90, 150), (200, 160), (270, 190), (140, 205)]
    image = Image.new("RGB", (320, 240), "#e8d8dc")
    draw = ImageDraw.Draw(image)
    for x, y in cells:
        draw.ellipse((x - 18, y - 18, x + 18, y + 18), fill="#d09aa8")
        draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill="#5b2a72")
    image.save(folder / "smear.png")
    rng = np.random.default_rng(5)
    rows: list[list[object]] = []
    for number in range(12):
        observed = [*(cells[:-1] if number < 8 else cells[:3]), *(cells[-1:] if number < 4 else ())]
        for x, y in observed:
            dx, dy = rng.normal(0, 1.5, 2)
            rows.append([f"volunteer {number + 1}", "smear.png", round(x + dx, 2), round(y + dy, 2)])
    return [folder / "smear.png", _table(folder / "clicks.csv", ["annotator", "image", "x", "y"], rows)], []


def _masks(folder: Path) -> tuple[list[Path], list[str]]:
    shape, spacing = (16, 40, 40), (2.0, 1.0, 1.0)
    z, y, x = (axis * step for axis, step in zip(np.mgrid[:16, :40, :40], spacing, strict=True))

    def distance(*centre: float) -> np.ndarray:
        return np.sqrt((z - centre[0]) ** 2 + (y - centre[1]) ** 2 + (x - centre[2]) ** 2)

    def write(name: str, values: np.ndarray) -> Path:
        affine = np.diag([-spacing[2], -spacing[1], spacing[0], 1.0])
        nibabel.save(nibabel.Nifti1Image(values.T, affine), folder / name)
        return folder / name

    assert distance(0, 0, 0).shape == shape
    body = np.where(distance(16, 20, 20) < 18, 40, -120) + np.where(distance(16, 20, 20) < 9, 60, 0)
    files = [write("ct.nii.gz", body.astype(np.int16))]
    for number, name in enumerate(("anna", "ben", "carl", "dora")):
        mask = distance(16, 20, 20) <= 8 + 0.25 * number
        if name == "dora":
            mask |= distance(16, 20, 30) <= 5
        files.append(write(f"ct_{name}.nii.gz", mask.astype(np.uint8)))
    return files, ["--naming", "{item}_{annotator}"]


def _labels(folder: Path) -> tuple[list[Path], list[str]]:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 40)
    classes = ("healthy", "infected")
    rows: list[list[object]] = []
    files = []
    for task, true in enumerate(truth):
        if task % 2 == 0:
            files.append(folder / f"cell-{task:02}.png")
            Image.new("RGB", (40, 30), (80 + task * 4, 70, 110)).save(files[-1])
        for annotator in range(10):
            right = annotator != 9 and rng.random() < 0.8
            values = true if right else 0 if annotator == 9 else 1 - true
            rows.append([f"annotator {annotator + 1}", f"cell-{task:02}", classes[values]])
    return [_table(folder / "votes.csv", ["annotator", "task", "label"], rows), *files], []


def _pairs(folder: Path) -> tuple[list[Path], list[str]]:
    rng = np.random.default_rng(28)
    rows: list[list[object]] = []
    for annotator in range(24):
        for first in range(8):
            for second in range(first + 1, 8):
                left, right = (first, second) if rng.random() < 0.5 else (second, first)
                better = left < right if rng.random() < 0.85 else left > right
                to_left = rng.random() < 0.93 if annotator < 5 else better
                choice = "left" if to_left else "right"
                rows.append([f"judge {annotator + 1:02}", f"lesion {left}", f"lesion {right}", choice])
    return [_table(folder / "pairs.csv", ["annotator", "left", "right", "choice"], rows)], []


_FILES = {"clicks": _clicks, "masks": _masks, "labels": _labels, "pairs": _pairs}
_ALGORITHMS = {"clicks": "oem", "masks": "laplace", "labels": "ibcc", "pairs": "iss"}
