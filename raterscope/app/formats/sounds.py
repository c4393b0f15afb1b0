"""Sounds and films of tasks: files by name, samples of a sound, and its outline for a waveform."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.app.errors import InputError, system_reason
from raterscope.app.formats.untrusted import refuse_special

SOUNDS = (".wav", ".mp3", ".flac", ".ogg", ".oga")
FILMS = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv")
_RATE, _LONGEST_FILE, _LONGEST_SECONDS = 44_100, 1 << 30, 3600
_FRAMES, _MAX_FOLDERS = 1 << 16, 200


@dataclass(frozen=True, eq=False)
class Sound:
    """Decoded sound."""

    samples: NDArray[np.int16]  # (N, 2): left and right
    rate: int  # samples per second

    @property
    def seconds(self) -> float:
        """Length, seconds."""
        return len(self.samples) / self.rate


def read_sound(path: Path) -> Sound:
    """Read a sound.

    Raises `InputError` for a file that is missing, damaged, too long or of another format, and if miniaudio
    is not installed.
    """
    refuse_special(path)
    try:
        import miniaudio
    except ImportError:
        raise InputError("cannot be played: install miniaudio (`pip install miniaudio`)", file=path) from None
    try:
        if path.stat().st_size > _LONGEST_FILE:
            raise InputError("is larger than 1 GB; expected a shorter sound", file=path)
        decoded = array("h")
        for part in miniaudio.stream_file(str(path), nchannels=2, sample_rate=_RATE, frames_to_read=_FRAMES):
            decoded.extend(part)  # a small file may claim, or hold, any length
            if len(decoded) > 2 * _RATE * _LONGEST_SECONDS:
                raise InputError("is longer than an hour; expected a shorter sound", file=path)
    except OSError as error:
        raise InputError(f"cannot be read: {system_reason(error)}", file=path) from error
    except miniaudio.MiniaudioError:
        expected = "expected WAV, MP3, FLAC or OGG"
        raise InputError(f"is damaged or of another format; {expected}", file=path) from None
    samples = np.frombuffer(decoded, dtype=np.int16).reshape(-1, 2)
    if not len(samples):
        raise InputError("contains no sound", file=path)
    return Sound(samples, _RATE)


def outline(sound: Sound, columns: int = 2000) -> NDArray[np.float32]:
    """Return the lowest and highest level in each of some columns of time, (C, 2), -1 to 1."""
    mono = sound.samples.mean(axis=1, dtype=np.float32) / 32768
    starts = np.unique(np.linspace(0, len(mono), min(columns, len(mono)), endpoint=False).astype(np.int64))
    low, high = np.minimum.reduceat(mono, starts), np.maximum.reduceat(mono, starts)
    return np.column_stack([low, high]).astype(np.float32)


def media_kind(text: str) -> str:
    """Return "sound" or "film" for a text that names such a file; empty for any other, and addresses."""
    name = text.strip()
    if "\n" in name or len(name) > 1000 or "://" in name:
        return ""
    ending = Path(name.replace("\\", "/")).suffix.casefold()
    return "sound" if ending in SOUNDS else "film" if ending in FILMS else ""


def find_media(text: str, folder: Path) -> Path | None:
    """Find a file by the path or name in a table: beside the study, or in a folder below; None if missing.

    Only the name of an absolute path is used, because a table must not open a file elsewhere, or on a server.
    """
    named = Path(text.strip().replace("\\", "/"))
    if named.anchor:
        named = Path(named.name)
    if not named.name or ".." in named.parts:
        return None
    try:
        for path in (folder / named, folder / named.name):
            if path.is_file():
                return path
        folders = [path for path in sorted(folder.iterdir())[:_MAX_FOLDERS] if path.is_dir()]
        paths = (below / part for below in folders for part in (named, named.name))
        return next((path for path in paths if path.is_file()), None)
    except OSError:  # a name that is too long, a folder that went
        return None
