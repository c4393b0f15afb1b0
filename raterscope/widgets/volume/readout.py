"""Value and position of a voxel in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.widgets.volume.plane import Index

UNITS = {"CT": " HU"}


def describe_voxel(values: NDArray[np.generic] | None, grid: Grid, index: Index, modality: str) -> str:
    """Describe a voxel: "-23 HU, x 12.3, y -45.1, z 88.0 mm"; without a known position, its row and column.

    Positions are those of DICOM: x to the patient's left, y to the back, z to the head.
    """
    words = []
    if values is not None:
        value = values[index]
        if np.ndim(value):
            words.append("RGB " + " ".join(str(part) for part in np.asarray(value).tolist()))
        else:
            number = float(np.asarray(value))
            words.append(
                (f"{number:.0f}" if number == round(number) else f"{number:.4g}") + UNITS.get(modality, "")
            )
    if grid.calibrated:
        position = np.round(grid.to_patient(np.array(index, dtype=float)), 1) + 0.0  # no -0.0
        x, y, z = position.tolist()
        words.append(f"x {x:.1f}, y {y:.1f}, z {z:.1f} mm")
    elif values is not None:
        words.append(f"row {index[1] + 1}, column {index[2] + 1}")
    return ", ".join(words)
