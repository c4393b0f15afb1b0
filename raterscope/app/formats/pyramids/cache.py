"""The folder in which pyramids are kept: bounded, the one not looked at for longest goes first."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from raterscope.app.errors import InputError
from raterscope.app.formats.pyramids.container import DamagedError, Kept

__all__ = ["PyramidCache"]

MOST_BYTES = 20_000_000_000
_SUFFIX, _UNFINISHED = ".pyramid", ".part"
_ABANDONED = 3600.0
"""Seconds after which what nobody writes any more was left by a crash."""


@dataclass(frozen=True)
class PyramidCache:
    """Pyramids by what they were made from.

    Attributes
    ----------
    folder : Path
    most_bytes : int
        What all of them may take together; the one made last stays in any case.
    """

    folder: Path
    most_bytes: int = MOST_BYTES

    @classmethod
    def of_user(cls) -> PyramidCache:
        """Give the cache where the system keeps the user's caches."""
        from platformdirs import user_cache_path

        return cls(user_cache_path("raterscope", appauthor=False) / "pyramids")

    def find(self, path: Path, digest: str | None) -> Kept | None:
        """Find what was made of a file; what is damaged is removed and not found.

        Parameters
        ----------
        path : Path
        digest : str or None
            Of the file's content, where it is known; else its place, size and time stand for it.
        """
        place = self._place(path, digest)
        try:
            found = Kept(place)
        except FileNotFoundError:
            return None
        except (DamagedError, OSError):
            self.forget(path, digest)
            return None
        with contextlib.suppress(OSError):
            os.utime(place)  # the time of a file here is when it was last looked at
        return found

    def make(self, path: Path, digest: str | None, write: Callable[[IO[bytes]], None]) -> Kept:
        """Keep what `write` writes for a file; on an error, or when it is cancelled, nothing is left.

        Raises
        ------
        InputError
            When the folder cannot be written to.
        """
        place = self._place(path, digest)
        with (
            self._told(),
            tempfile.NamedTemporaryFile(dir=self.room(), suffix=_UNFINISHED, delete=False) as file,
        ):
            unfinished = Path(file.name)
            try:
                write(file)
                file.close()
                unfinished.replace(place)
            except BaseException:
                file.close()
                unfinished.unlink(missing_ok=True)
                raise
        self._prune(place)
        return Kept(place)

    def room(self) -> Path:
        """Give the folder, made where it is not there."""
        with self._told():
            self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def forget(self, path: Path, digest: str | None) -> None:
        """Remove what was made of a file."""
        with contextlib.suppress(OSError):
            self._place(path, digest).unlink()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"cannot be written to: {error.strerror or error}", file=self.folder) from error

    def _place(self, path: Path, digest: str | None) -> Path:
        status = path.stat()
        where = digest or f"{path.resolve()}\n{status.st_mtime_ns}"
        name = hashlib.sha256(f"{where}\n{status.st_size}".encode()).hexdigest()[:40]
        return self.folder / f"{name}{_SUFFIX}"

    def _prune(self, newest: Path) -> None:
        others = []
        for file in self.folder.iterdir():
            with contextlib.suppress(OSError):  # another window may remove it first
                status = file.stat()
                if file.suffix == _UNFINISHED and time.time() - status.st_mtime > _ABANDONED:
                    file.unlink()
                elif file.suffix == _SUFFIX and file != newest:
                    others.append((status.st_mtime, status.st_size, file))
        room = self.most_bytes - newest.stat().st_size
        for _, size, file in sorted(others, reverse=True):
            room -= size
            if room < 0:
                with contextlib.suppress(OSError):
                    file.unlink()
