"""Search for the volume on which contours or segments were drawn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from raterscope.app.errors import InputError, plain
from raterscope.app.formats.volumes.records import VolumeFile

__all__ = ["series_among", "wanted"]


def series_among(
    volumes: Sequence[VolumeFile], series: Collection[str], instances: Collection[str]
) -> VolumeFile | None:
    """Find the volume that a file refers to.

    The series' UID decides and, of several volumes of one series, which has the most of the slices referred
    to; where no series fits, the slices alone. Else a single volume is taken if it has no UID of its own.
    """
    named = set(instances)

    def shared(volume: VolumeFile) -> int:
        return len(named.intersection(volume.instances))

    same = [volume for volume in volumes if volume.identifier and volume.identifier in series]
    candidates = same or [volume for volume in volumes if shared(volume)]
    if candidates:
        return max(candidates, key=shared)
    anonymous = [volume for volume in volumes if not volume.identifier]
    return anonymous[0] if len(anonymous) == 1 and len(volumes) == 1 else None


def wanted(path: Path, series: Collection[str], volumes: Sequence[VolumeFile]) -> InputError:
    """Say which series is to be added."""
    which = plain(next(iter(series), "that it does not name"), 70)
    others = "; the volumes at hand are others" if volumes else ""
    return InputError(
        f"was drawn on the series {which}{others}; add the folder of that series first", file=path
    )
