"""The inputs of the table of speeds, simulated and written as users have them: volumes, tables, images."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

__all__ = ["write_comparisons", "write_organ", "write_smears", "write_volumes", "write_votes"]


def write_organ(
    folder: Path, shape: tuple[int, int, int], raters: int, share: float, structures: int = 1
) -> None:
    """Write raters' masks of ellipsoids that take up a share of the volume, with wavering outlines."""
    import nibabel

    generator = np.random.default_rng(0)
    axes = [np.linspace(-1, 1, n, dtype=np.float32) for n in shape]
    each = (6 * share / np.pi / structures) ** (1 / 3)
    for rater in range(raters):
        volume = np.zeros(shape, dtype=np.uint8)
        for number in range(structures):
            centre = (2 * number + 1) / structures - 1 if structures > 1 else 0.0
            stretch = min(1.0, 1 / structures / max(each, 1e-6)) if structures > 1 else 1.0
            radii = np.array([each / stretch**0.5, each / stretch**0.5, each * stretch])
            radii = np.minimum(radii, 0.95)
            away = sum(
                (((axis - (centre if axis_number == 2 else 0)) / radius) ** 2).reshape(
                    [-1 if axis_number == other else 1 for other in range(3)]
                )
                for axis_number, (axis, radius) in enumerate(zip(axes, radii, strict=True))
            )
            coarse = generator.normal(0, 0.06, (8, 8, 8))
            ranks = [np.minimum((np.arange(n) * 8) // n, 7) for n in shape]
            volume[away + coarse[np.ix_(*ranks)] + generator.normal(0, 0.02) < 1] = number + 1
        image = nibabel.Nifti1Image(volume.transpose(2, 1, 0), np.diag([0.5, 0.5, 0.75, 1]))
        nibabel.save(image, folder / f"case_rater{rater + 1}.nii.gz")


def write_volumes(folder: Path, count: int) -> None:
    """Write small volumes, each with four raters' masks."""
    import nibabel

    generator = np.random.default_rng(0)
    for number in range(count):
        image = generator.integers(0, 1000, (32, 32, 8), dtype=np.int16)
        nibabel.save(nibabel.Nifti1Image(image, np.eye(4)), folder / f"case{number:04d}.nii.gz")
        for rater in range(4):
            mask = np.zeros(image.shape, dtype=np.uint8)
            mask[8 : 24 - rater, 8:24, 2:6] = 1
            nibabel.save(
                nibabel.Nifti1Image(mask, np.eye(4)), folder / f"case{number:04d}_rater{rater}.nii.gz"
            )


def write_smears(folder: Path, images: int, clicks: int, *, pictures: bool = False) -> None:
    """Write clicks of 24 annotators on images of 1000 x 800 pixels; one in ten is stray."""
    from PIL import Image

    generator = np.random.default_rng(0)
    each = clicks // images
    with (folder / "clicks.csv").open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["annotator", "image", "x", "y"])
        for image in range(images):
            spots = generator.uniform((20, 20), (980, 780), (max(2, each // 12), 2))
            chosen = generator.integers(0, len(spots), each)
            positions = spots[chosen] + generator.normal(0, 3, (each, 2))
            stray = generator.random(each) < 0.1
            positions[stray] = generator.uniform((0, 0), (1000, 800), (int(stray.sum()), 2))
            annotators = generator.integers(0, 24, each)
            for annotator, (x, y) in zip(
                annotators.tolist(), positions.clip(0, (999, 799)).tolist(), strict=True
            ):
                writer.writerow([f"v{annotator:02d}", f"image{image:05d}.png", f"{x:.1f}", f"{y:.1f}"])
    if pictures:
        noise = generator.integers(150, 220, (100, 125, 3), dtype=np.uint8)
        content = io.BytesIO()
        Image.fromarray(noise).resize((1000, 800)).save(content, "PNG", compress_level=1)
        for image in range(images):
            (folder / f"image{image:05d}.png").write_bytes(content.getvalue())


def write_votes(folder: Path, count: int, classes: int, annotators: int) -> None:
    """Write votes on tasks, five a task, by annotators, each right in .5 to .95 of cases."""
    generator = np.random.default_rng(0)
    tasks = count // 5
    truth = generator.integers(0, classes, tasks)
    task = np.repeat(np.arange(tasks), 5)
    annotator = generator.integers(0, annotators, len(task))
    right = generator.random(len(task)) < generator.uniform(0.5, 0.95, annotators)[annotator]
    label = np.where(right, truth[task], generator.integers(0, classes, len(task)))
    with (folder / "votes.csv").open("w") as lines:
        lines.write("annotator,task,label\n")
        for begin in range(0, len(task), 100_000):
            rows = zip(
                *(column[begin : begin + 100_000].tolist() for column in (annotator, task, label)),
                strict=True,
            )
            lines.write("".join(f"a{a},t{t},c{c}\n" for a, t, c in rows))


def write_comparisons(folder: Path, count: int) -> None:
    """Write comparisons of 200 items by 500 annotators, 25 of which prefer the left side."""
    generator = np.random.default_rng(0)
    scores, bias = generator.normal(0, 1, 200), np.where(np.arange(500) < 25, 1.0, 0.0)
    annotator, left = generator.integers(0, 500, count), generator.integers(0, 200, count)
    right = (left + generator.integers(1, 200, count)) % 200
    chance = 1 / (1 + np.exp(-(scores[left] - scores[right] + bias[annotator])))
    choice = np.where(generator.random(count) < chance, "left", "right")
    with (folder / "pairs.csv").open("w") as lines:
        lines.write("annotator,left,right,choice\n")
        rows = zip(annotator.tolist(), left.tolist(), right.tolist(), choice.tolist(), strict=True)
        lines.writelines(f"a{a},i{first},i{second},{side}\n" for a, first, second, side in rows)
