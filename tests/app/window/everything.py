"""A study of all kinds with a stack, classes, sounds, pictures and two runs: every key has an effect."""

import csv
from pathlib import Path

import nibabel as nib
import numpy as np
import tifffile
from PIL import Image

from raterscope.app.cli.program import main
from raterscope.app.study import Study
from tests.app.formats.test_sounds import write_tone

NAMES = tuple(f"Zyxw-Petersen {number}" for number in range(12))
"""Annotators, by a name that stands nowhere else."""
SPOTS = tuple((30 + 40 * column, 25 + 35 * row) for column in range(3) for row in range(2))
DISPUTED = 2
"""Number of spots of each image that a third of the annotators marked."""
PARENTS = ("cell/ring", "cell/schizont", "debris")
MANY_CLASSES = tuple(f"class {number:02}" for number in range(14))


def make_study(folder: Path) -> Path:
    """Import the files of all kinds, and fuse each twice."""
    study, files = folder / "all.rscope", folder / "input"
    files.mkdir()
    rng = np.random.default_rng(7)
    kinds = {
        _clicks: ("cem", "oem --detector majority"),
        _masks: ("majority --kind masks", "laplace"),
        _labels: ("dynibcc", "pooled --set correlation=0"),
        _pairs: ("lasso --set rate=0.25", "iss"),
    }
    for write, algorithms in kinds.items():
        for arguments in write(files, rng):
            _run("import", study, *arguments)
        if write is _clicks:
            _run("run", study, "oem")
            _run("import", study, _scores(study, files))
        for algorithm in algorithms:
            _run("run", study, *algorithm.split())
    return study


def _run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0, arguments


def _table(path: Path, *rows: tuple[object, ...]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def _clicks(files: Path, rng: np.random.Generator) -> list[list[object]]:
    stack = rng.integers(0, 4000, (2, 3, 2, 120, 160)).astype(np.uint16)
    tifffile.imwrite(files / "stack.ome.tif", stack, ome=True, metadata={"axes": "TZCYX"})
    Image.new("L", (160, 120), 180).save(files / "two.png")
    rows: list[tuple[object, ...]] = [("annotator", "image", "x", "y", "class")]
    for image in ("stack.ome.tif", "two.png"):
        for number, name in enumerate(NAMES):
            for at, (x, y) in enumerate(SPOTS if number < 4 else SPOTS[:-DISPUTED]):
                dx, dy = rng.normal(0, 1, 2)
                rows.append((name, image, x + dx, y + dy, ("ring", "schizont")[at % 2]))
    images = [files / "stack.ome.tif", files / "two.png", "--kind", "image"]
    return [images, [_table(files / "clicks.csv", *rows)]]


def _scores(study: Path, files: Path) -> Path:
    rows: list[tuple[object, ...]] = [("image", "x", "y", "score")]
    with Study.open(study) as opened:
        for entry in opened.images():
            _, fusion = opened.shown.result(entry.id, "clicks")
            rows += [(entry.name, x, y, 1) for x, y in fusion.clustering.mean]
    return _table(files / "found.csv", *rows)


def _masks(files: Path, rng: np.random.Generator) -> list[list[object]]:
    z, y, x = np.mgrid[:8, :24, :24]
    cases, masks = [], []
    for case in ("case1", "case2"):
        cases.append(files / f"{case}.nii.gz")
        nib.save(nib.Nifti1Image(rng.normal(100, 20, (24, 24, 8)).astype(np.int16), np.eye(4)), cases[-1])
        for name, beyond in zip(NAMES, (0.0, 0.2, 3.0, 3.0), strict=False):
            mask = (np.hypot(x - 12, y - 12) < 6 + beyond - abs(z - 5) * beyond / 3) & (abs(z - 4) < 3)
            mask |= (y == 12) & (abs(x - 12) < 9) & (z == 4)  # a spike that smoothing removes
            masks.append(files / f"{case}_{name}.nii.gz")
            nib.save(nib.Nifti1Image(mask.T.astype(np.uint8), np.eye(4)), masks[-1])
    return [[*cases, "--kind", "volume"], [*masks, "--naming", "{item}_{annotator}"]]


def _labels(files: Path, rng: np.random.Generator) -> list[list[object]]:
    rows: list[tuple[object, ...]] = [("annotator", "question", "task", "label")]
    pictures = []
    for task in range(30):
        pictures.append(files / f"cell-{task:02}.png")
        Image.new("RGB", (40, 30), (8 * task, 60, 90)).save(pictures[-1])
        for name in NAMES[:8]:
            label = task % 3 if rng.random() < 0.7 else rng.integers(3)
            rows.append((name, "Infected?", pictures[-1].name, PARENTS[label]))
    for task in range(20):
        write_tone(files / "clips" / f"{task}.wav")
        for name in NAMES[:8]:
            label = task % len(MANY_CLASSES) if rng.random() < 0.7 else rng.integers(len(MANY_CLASSES))
            rows.append((name, "Which sound?", f"clips/{task}.wav", MANY_CLASSES[label]))
    return [[_table(files / "labels.csv", *rows), *pictures]]


def _pairs(files: Path, rng: np.random.Generator) -> list[list[object]]:
    rows: list[tuple[object, ...]] = [("annotator", "question", "left", "right", "choice")]
    for question in ("Which is worse?", "Which is larger?"):
        for number, name in enumerate(NAMES):
            for first in range(8):
                for second in range(first + 1, 8):
                    left, right = (first, second) if rng.random() < 0.5 else (second, first)
                    to_left = rng.random() < 0.93 if number < 3 else (left < right) == (rng.random() < 0.8)
                    choice = "left" if to_left else "right"
                    rows.append((name, question, f"cell-{left:02}.png", f"cell-{right:02}.png", choice))
    return [[_table(files / "pairs.csv", *rows)]]
