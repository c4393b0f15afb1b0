"""Playback of a sound by miniaudio, on the system's device or on another that is given."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from raterscope.app.formats.sounds import Sound


def open_device(rate: int) -> Any:
    """Open the system's sound device."""
    import miniaudio

    return miniaudio.PlaybackDevice(nchannels=2, sample_rate=rate)


class SoundPlayer:
    """Plays a sound; see `widgets.panels.sound_view.Player`."""

    def __init__(self, sound: Sound, device: Callable[[int], Any] = open_device) -> None:
        self._sound, self._open = sound, device
        self._device: Any = None
        self._at = 0
        self.playing = False

    @property
    def position(self) -> float:
        """Seconds that were played."""
        return self._at / self._sound.rate

    def play(self, start: float) -> None:
        """Play from a time on. Raises OSError if there is no sound device."""
        self.pause()
        self._at = int(start * self._sound.rate)
        try:
            self._device = self._open(self._sound.rate)
            stream = self._stream()
            next(stream)
            self.playing = True
            self._device.start(stream)
        except Exception as error:
            self.pause()
            raise OSError(str(error) or "there is no sound device") from error

    def pause(self) -> None:
        """Stop where it is."""
        self.playing = False
        device, self._device = self._device, None
        if device is not None:
            device.close()

    def _stream(self) -> Generator[bytes, int, None]:
        """Yield the next frames that the device requests."""
        needed = yield b""
        while self.playing and self._at < len(self._sound.samples):
            frames = self._sound.samples[self._at : self._at + needed]
            self._at += len(frames)
            needed = yield frames.tobytes()
        self.playing = False
