"""Masks to fuse: drawn, and the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.data import Masks


def ball(shape, centre, radius, spacing=(1.0, 1.0, 1.0)):
    """(Z, Y, X) bool: voxels whose centres are within `radius` mm of the voxel `centre`."""
    at = np.meshgrid(*(np.arange(n, dtype=float) for n in shape), indexing="ij")
    away = sum(((a - c) * h) ** 2 for a, c, h in zip(at, centre, spacing, strict=True))
    return away <= radius**2


def named(values, **more):
    """Masks of raters named r1, r2 and so on."""
    return Masks(values, tuple(f"r{p + 1}" for p in range(len(values))), **more)


def nodule(real_data: Path, number: int = 3) -> Masks:
    with np.load(real_data / f"masks/lidc/nodulebin/nodulebin_{number:02d}.npz") as file:
        return named(file["masks"].astype(bool), spacing=tuple(file["spacing"].tolist()))


def noisy(seed: int, raters: int, shape=(12, 14, 16), classes: int = 2):
    """Labels of raters who err at random, and the truth; (P, Z, Y, X) and (Z, Y, X) uint8."""
    rng = np.random.default_rng(seed)
    truth = np.zeros(shape, dtype=np.uint8)
    for k in range(1, classes):
        centre = [n * (k / classes) for n in shape]
        truth[ball(shape, centre, min(shape) / 3)] = k
    labels = np.repeat(truth[None], raters, axis=0)
    for p in range(raters):
        wrong = rng.random(shape) < 0.05 + 0.05 * p
        labels[p][wrong] = rng.integers(0, classes, size=int(wrong.sum()))
    return labels, truth


def whole(fusion, maps):
    """Put (S, Z, Y, X) maps back onto the whole image."""
    full = np.zeros((len(maps), *fusion.frame), dtype=maps.dtype)
    full[:, *(slice(at, at + n) for at, n in zip(fusion.origin, fusion.shape, strict=True))] = maps
    return full
