"""Comparison of a picture of the screen with its stored reference.

Pixels are compared at half the size, so that anti-aliasing does not count. A picture differs if more than
`DIFFERING` of these pixels differ by more than `STEP` of 255 in a channel.
"""

from pathlib import Path

import numpy as np
from PIL import Image

REFERENCES = Path(__file__).parent / "reference"
STEP = 40
DIFFERING = 12
COLOURS = 256
"""Of a stored picture, which then takes a third of the space; the deviations are far below `STEP`."""


def store_reference(image: Image.Image, name: str) -> None:
    """Store a picture as the reference; leave the reference as it is if it still fits."""
    file = REFERENCES / f"{name}.png"
    if file.exists() and not differences(image, read(file)).any():
        return
    REFERENCES.mkdir(exist_ok=True)
    palette = image.quantize(COLOURS, Image.Quantize.MEDIANCUT, kmeans=1, dither=Image.Dither.NONE)
    # A small mark in a colour of its own can be lost in a palette.
    stored = image if differences(image, palette).any() else palette
    stored.save(file, optimize=True)


def read(file: Path) -> Image.Image:
    """Read a whole picture."""
    with Image.open(file) as image:
        return image.convert("RGB")


def differences(image: Image.Image, reference: Image.Image) -> np.ndarray:
    """Mark the pixels, at half the size, that differ; all of them if the sizes do."""
    if image.size != reference.size:
        return np.ones((image.height // 2, image.width // 2), bool)
    small = [clicks.convert("RGB").reduce(2) for clicks in (image, reference)]
    first, second = (np.asarray(clicks, np.int16) for clicks in small)
    return (np.abs(first - second) > STEP).any(axis=2)


def fits(image: Image.Image, name: str) -> bool:
    """Tell whether a picture looks as its reference."""
    file = REFERENCES / f"{name}.png"
    return file.exists() and np.count_nonzero(differences(image, read(file))) <= DIFFERING


def check(image: Image.Image, name: str, folder: Path) -> None:
    """Compare a picture with its reference; on failure save both and the difference into a folder.

    Raises
    ------
    AssertionError
        If there is no reference, or if the picture differs from it. The message names the files, and how to
        accept the picture.
    """
    reference = REFERENCES / f"{name}.png"
    accept = "If the screen is right, `make pictures` accepts it as the new reference."
    actual = folder / f"{name}-actual.png"
    if not reference.exists():
        image.save(actual)
        raise AssertionError(f"no reference picture for {name}; the screen is in {actual}. {accept}")
    if fits(image, name):
        return
    marked = differences(image, read(reference))
    image.save(actual)
    shown = folder / f"{name}-difference.png"
    marks = Image.fromarray(np.where(marked, 255, 0).astype(np.uint8)).resize(image.size)
    faded = Image.blend(image.convert("RGB"), Image.new("RGB", image.size, "white"), 0.7)
    Image.composite(Image.new("RGB", image.size, "red"), faded, marks).save(shown)
    rows, columns = np.nonzero(marked)
    where = f"x {2 * columns.min()} to {2 * columns.max() + 1}, y {2 * rows.min()} to {2 * rows.max() + 1}"
    raise AssertionError(
        f"the screen differs from {reference} ({where}): see {actual} and {shown}, where red pixels differ. "
        f"{accept}"
    )
