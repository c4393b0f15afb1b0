"""The programs that the table of speeds compares with: peers that do the same work, and the physical floor.

Usage: python -m tests.benchmarks.speed_peers NAME INPUT OUTPUT [SCRATCH]

Each reads the files of INPUT and writes into OUTPUT. Only ``floor`` reads both and writes into SCRATCH.
"""

from __future__ import annotations

import csv
import sys
import warnings
import zlib
from pathlib import Path


def floor(inputs: Path, outputs: Path, scratch: Path) -> None:
    """Read the input, inflating what is deflated, and write a command's output once more."""
    for file in sorted(file for file in inputs.rglob("*") if file.is_file()):
        data = file.read_bytes()
        if file.suffix == ".gz":
            zlib.decompress(data, 31)
    scratch.mkdir(exist_ok=True)
    for number, file in enumerate(sorted(file for file in outputs.rglob("*") if file.is_file())):
        (scratch / str(number)).write_bytes(file.read_bytes())


def staple(inputs: Path, output: Path) -> None:
    """Fuse masks by SimpleITK's STAPLE, one structure after the other."""
    import SimpleITK

    files = sorted(inputs.glob("*.nii.gz"))
    images = [SimpleITK.ReadImage(str(file), SimpleITK.sitkUInt8) for file in files]
    first = SimpleITK.GetArrayViewFromImage(images[0])
    for value in (value for value in range(1, 256) if (first == value).any()):
        answer = SimpleITK.STAPLE([image == value for image in images], 1.0)
        probability = SimpleITK.Cast(answer, SimpleITK.sitkFloat32)
        SimpleITK.WriteImage(probability, str(output / f"staple_{value}.nii.gz"), True)
        SimpleITK.WriteImage(answer > 0.5, str(output / f"mask_{value}.nii.gz"), True)


def hdbscan(inputs: Path, output: Path) -> None:
    """Cluster the clicks of each image by scikit-learn's HDBSCAN."""
    import numpy as np
    from sklearn.cluster import HDBSCAN

    warnings.simplefilter("ignore")
    images: dict[str, list[tuple[float, float]]] = {}
    with (inputs / "clicks.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            images.setdefault(row["image"], []).append((float(row["x"]), float(row["y"])))
    with (output / "detections.csv").open("w", newline="") as lines:
        writer = csv.writer(lines)
        for name, positions in images.items():
            points = np.array(positions)
            labels = HDBSCAN(min_cluster_size=4, copy=True).fit_predict(points)
            for number in range(labels.max() + 1):
                writer.writerow([name, number, *points[labels == number].mean(axis=0).tolist()])


def arrow(inputs: Path, output: Path) -> None:
    """Read tables by Arrow and write them again."""
    from pyarrow import csv as tables

    for file in sorted(inputs.glob("*.csv")):
        tables.write_csv(tables.read_csv(file), output / file.name)


def nibabel(inputs: Path, output: Path) -> None:
    """Read all volumes by nibabel."""
    from nibabel import load

    with (output / "volumes.txt").open("w") as lines:
        for file in sorted(inputs.rglob("*.nii.gz")):
            image = load(file)
            lines.write(f"{file.name} {image.shape} {int(image.dataobj[...].sum())}\n")


def pillow(inputs: Path, output: Path) -> None:
    """Read the sizes of images by Pillow, and the table of clicks by Arrow."""
    from PIL import Image

    arrow(inputs, output)
    with (output / "images.txt").open("w") as lines:
        for file in sorted(inputs.glob("*.png")):
            with Image.open(file) as image:
                lines.write(f"{file.name} {image.size}\n")


PEERS = {
    "floor": floor, "staple": staple, "hdbscan": hdbscan,
    "arrow": arrow, "nibabel": nibabel, "pillow": pillow,
}  # fmt: skip

if __name__ == "__main__":
    folders = [Path(word) for word in sys.argv[2:]]
    folders[1].mkdir(exist_ok=True)
    PEERS[sys.argv[1]](*folders)
