"""Volumes and masks as files, for tests of importing and fusing."""

from pathlib import Path

import nibabel
import numpy as np
from PIL import Image

from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries

SPACING = (2.0, 1.0, 1.0)
SHAPE = (12, 24, 24)


def write(path: Path, values: np.ndarray, *, shift: float = 0.0) -> Path:
    """Write (Z, Y, X) values as NIfTI, `shift` mm along x from where the others lie."""
    affine = np.diag([-SPACING[2], -SPACING[1], SPACING[0], 1.0])
    affine[0, 3] = shift
    path.parent.mkdir(exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values.T, affine), path)
    return path


def a_ball(centre=(6, 12, 12), radius: float = 6.0, shape=SHAPE) -> np.ndarray:
    """A ball in mm, (Z, Y, X) uint8."""
    steps = zip(np.ogrid[: shape[0], : shape[1], : shape[2]], centre, SPACING, strict=True)
    return (sum(((at - middle) * step) ** 2 for at, middle, step in steps) <= radius**2).astype(np.uint8)


def a_volume(path: Path, seed: int = 0) -> Path:
    """A volume of noise."""
    values = np.random.default_rng(seed).normal(0, 100, SHAPE).astype(np.int16)
    return write(path, values)


def four_raters(folder: Path, stem: str = "") -> list[Path]:
    """Four masks of one structure: three alike, one too large."""
    radii = {"anna": 5.5, "ben": 6.0, "carl": 6.4, "dora": 9.0}
    return [write(folder / f"{stem}{name}.nii.gz", a_ball(radius=size)) for name, size in radii.items()]


def marks(tmp_path):
    """Return annotator, structure and image of each mask, with the number of voxels."""
    with Study.open(tmp_path / "s.rscope") as study:
        names = {entry.id: entry.name for entry in study.images()}
        return {(names[e.image], e.annotator, e.structure): e.voxels for e in mask_entries(study)}


def painted(path, values, mode=None):
    Image.fromarray(values.astype(np.uint8), mode).save(path)
    return path


def a_photograph(path, shape=(60, 80), seed=1):
    return painted(path, np.random.default_rng(seed).integers(0, 255, shape))


def a_disc(shape=(60, 80), radius=15):
    y, x = np.ogrid[: shape[0], : shape[1]]
    return 255 * ((y - 30) ** 2 + (x - 40) ** 2 < radius**2)
