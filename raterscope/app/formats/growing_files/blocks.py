"""A file on disk: whether it is the one that was read, and its next bytes."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path
from typing import BinaryIO

from raterscope.app.errors import InputError
from raterscope.app.formats.records import refuse_special

__all__ = ["Hash", "Stamp", "digest_of", "is_settled", "is_still", "opened", "stamp_of"]

_BLOCK = 4096
_PIECE = 1 << 20
_BLOCKS = 16
_SETTLED = 2.0

Stamp = tuple[int, int, int, int]
Hash = hashlib.blake2b


def stamp_of(status: os.stat_result) -> Stamp:
    """Give what tells that a file was written to: size, times and inode."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def is_settled(stamp: Stamp) -> bool:
    """Tell whether a file with this stamp can be taken for unchanged as long as the stamp is the same.

    Clocks of file systems tick slowly: a file that was written to just now may be so again within the tick.
    """
    return time.time() - max(stamp[1:3]) / 1e9 > _SETTLED


def digest_of(stream: BinaryIO, offset: int) -> bytes:
    """Digest blocks spread evenly over the first bytes of a file, the first and the last among them.

    A file that was replaced differs in one of them, unless what came instead has the same length up to there
    and differs between the blocks alone.
    """
    digest = hashlib.blake2b(digest_size=16)
    for start in sorted({max(offset - _BLOCK, 0) * step // _BLOCKS for step in range(_BLOCKS + 1)}):
        stream.seek(start)
        digest.update(stream.read(min(_BLOCK, offset - start)))
    return digest.digest()


def is_still(stream: BinaryIO, start: int, stop: int, taken: Hash) -> bool:
    """Tell whether a part of a file is what was read of it: it may have been rewritten in between."""
    again = Hash()
    stream.seek(start)
    while stop > start and (data := stream.read(min(_PIECE, stop - start))):
        again.update(data)
        start += len(data)
    return start == stop and again.digest() == taken.digest()


def opened(path: Path) -> BinaryIO | None:
    """Open a file to read it; None where there is none.

    Raises
    ------
    InputError
        For what is a study, is no ordinary file, or cannot be read.
    """
    refuse_special(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("is no file with rows", file=path)
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
