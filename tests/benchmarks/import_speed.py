"""Time and memory of one COCO file with points, masks and classes, imported in one pass.

    python -m tests.benchmarks.import_speed [--megabytes 300]

Makes the file, reads it with `importing.read_files`, and prints the seconds, the largest memory of the
process, and how often the file was opened.
"""

from __future__ import annotations

import argparse
import builtins
import io
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from raterscope.app.importing import read_files
from tests.benchmarks.measuring import most_memory

_SIZE = 600
_IMAGES = 50
_BLOCK = 2000


def write_coco(path: Path, megabytes: float) -> int:
    """Write a file of that size: half points, half polygons and run lengths, and a class for each image.

    Returns
    -------
    int
        Annotations.
    """
    rng = np.random.default_rng(0)
    images = [
        {"id": n, "file_name": f"image {n}.png", "width": _SIZE, "height": _SIZE} for n in range(_IMAGES)
    ]
    categories = [{"id": n, "name": f"class {n}"} for n in range(1, 5)]
    with path.open("w") as file:
        file.write(f'{{"images": {json.dumps(images)}, "categories": {json.dumps(categories)}')
        file.write(', "annotations": [')
        labels = [_annotation(n, n % 20, category_id=1 + n % 4) for n in range(_IMAGES)]
        file.write(", ".join(map(json.dumps, labels)))
        count = len(labels)
        while file.tell() < megabytes * 1e6:
            for _ in range(_BLOCK):
                image, annotator = rng.integers(_IMAGES), rng.integers(20)
                x, y = rng.uniform(60, _SIZE - 60, 2).round(2).tolist()
                if count % 2:
                    shape: dict[str, Any] = {"keypoints": [x, y, 2], "num_keypoints": 1}
                elif count % 4:
                    shape = {"segmentation": [_polygon(rng, x, y)]}
                else:
                    shape = {"segmentation": _runs(int(x), int(y))}
                file.write(", " + json.dumps(_annotation(image, annotator, category_id=1, **shape)))
                count += 1
        file.write("]}")
    return count


def _annotation(image: int, annotator: int, **options: Any) -> dict[str, Any]:
    return {"image_id": int(image), "attributes": {"annotator": f"annotator {annotator}"}, **options}


def _polygon(rng: np.random.Generator, x: float, y: float) -> list[float]:
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    radius = rng.uniform(6, 12, 40)
    return np.column_stack([x + radius * np.cos(angle), y + radius * np.sin(angle)]).round(2).ravel().tolist()


def _runs(left: int, top: int, side: int = 12) -> dict[str, Any]:
    """Give a square as COCO's run lengths, down the columns."""
    counts = [left * _SIZE + top]
    for _ in range(side - 1):
        counts += [side, _SIZE - side]
    counts.append(side)
    return {"size": [_SIZE, _SIZE], "counts": [*counts, _SIZE * _SIZE - sum(counts)]}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=300.0)
    parser.add_argument("--folder", type=Path, help="where the file is made; by default a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "objects.json"
        count = write_coco(path, options.megabytes)
        before = most_memory()
        opened: Counter[str] = Counter()
        real = io.open

        def counting(file: Any, *arguments: Any, **named: Any) -> Any:
            opened[str(file)] += 1
            return real(file, *arguments, **named)

        io.open = builtins.open = counting  # type: ignore[assignment]
        began = time.perf_counter()
        readings = read_files([path])
        seconds = time.perf_counter() - began
        io.open = builtins.open = real
        points = sum(map(len, readings.clicks))
        votes = sum(len(table) for table in readings.labels)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {count:,} annotations: {seconds:.1f} s")
        print(f"{points:,} points, {len(readings.attributed):,} masks, {votes:,} classes")
        print(f"memory {most_memory():.0f} MB, {before:.0f} MB before; opened {opened[str(path)]} times")


if __name__ == "__main__":
    main()
