"""Files of all four kinds with shared annotators."""

import csv
from pathlib import Path

import nibabel as nib
import numpy as np
from PIL import Image

from raterscope.app.cli.program import main

PEOPLE = ("anna", "ben", "cleo", "dan", "eve")
SKILL = dict(zip(PEOPLE, (0.95, 0.9, 0.9, 0.85, 0.4), strict=True))
SPOTS = [(30 + 40 * i, 30 + 40 * j) for i in range(4) for j in range(3)]


def write_files(folder: Path) -> list[list[str]]:
    """Write clicks, labels, comparisons and masks; returns the arguments of each import."""
    folder.mkdir()
    rng = np.random.default_rng(7)
    clicks = [("annotator", "image", "x", "y")]
    for name in ("one.png", "two.png"):
        Image.new("L", (200, 150), 180).save(folder / name)
        for annotator in PEOPLE:
            for x, y in SPOTS:
                if rng.random() < SKILL[annotator]:
                    dx, dy = rng.normal(0, 1.5, 2)
                    clicks.append((annotator, name, f"{x + dx:.2f}", f"{y + dy:.2f}"))
            if annotator == "eve":
                clicks += [(annotator, name, 190, 10), (annotator, name, 190, 140)]
    # On a third image the clicks of anna came under another name.
    Image.new("L", (200, 150), 180).save(folder / "three.png")
    for annotator in ("Anna K.", "ben", "cleo", "dan"):
        clicks += [(annotator, "three.png", x + rng.normal(0, 1.5), y + rng.normal(0, 1.5)) for x, y in SPOTS]
    labels = [("annotator", "task", "label", "time")]
    truth = rng.integers(0, 2, 60)
    for task, true in enumerate(truth.tolist()):
        for annotator in PEOPLE:
            right = rng.random() < SKILL[annotator]
            label = ("ring", "artefact")[true if right else 1 - true]
            labels.append((annotator, f"cell {task:02d}", label, task))
    pairs = [("annotator", "left", "right", "choice")]
    score = rng.normal(0, 1, 12)
    for annotator in PEOPLE[:4]:
        for _ in range(50):
            left, right = rng.choice(12, 2, replace=False).tolist()
            ahead = score[left] - score[right] + (3.0 if annotator == "dan" else 0.0) + rng.normal(0, 0.6)
            choice = "left" if ahead > 0 else "right"
            pairs.append((annotator, f"item {left:02d}", f"item {right:02d}", choice))
    for name, rows in (("clicks", clicks), ("labels", labels), ("pairs", pairs)):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    z, y, x = np.mgrid[:6, :24, :24]
    for case in ("case1", "case2"):
        scan = rng.normal(100, 20, (24, 24, 6)).astype(np.int16)
        nib.save(nib.Nifti1Image(scan, np.eye(4)), folder / f"{case}.nii.gz")
        for annotator, beyond in (("anna", 0.0), ("ben", 0.2), ("cleo", 2.0)):
            mask = (np.hypot(x - 12, y - 12) < 6 + beyond) & (abs(z - 3) < 2)
            nib.save(
                nib.Nifti1Image(mask.T.astype(np.uint8), np.eye(4)), folder / f"{case}_{annotator}.nii.gz"
            )
    masks = sorted(map(str, folder.glob("case?_*.nii.gz")))
    images = [str(folder / f"{name}.png") for name in ("one", "two", "three")]
    return [
        [*images, str(folder / "clicks.csv")],
        [str(folder / "labels.csv")],
        [str(folder / "pairs.csv")],
        [*(str(folder / f"{case}.nii.gz") for case in ("case1", "case2")), "--kind", "volume"],
        [*masks, "--naming", "{item}_{annotator}"],
    ]


def make_study(folder: Path) -> Path:
    """Import and fuse the files."""
    study = folder / "four.rscope"
    for arguments in write_files(folder / "input"):
        assert main(["import", str(study), *arguments]) == 0
    fuse_all(study)
    return study


def fuse_all(study: Path) -> None:
    """Fuse all kinds."""
    for algorithm in ("oem", "laplace", "pooled", "iss"):
        assert main(["run", str(study), algorithm]) == 0
