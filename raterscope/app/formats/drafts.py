"""Names of drafts: files that take their own name when they are whole.

A draft's name says which process on which machine writes it, so that those of processes that were killed can
be told from those that are being written, and are removed by the next one that writes into the same folder.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

__all__ = ["draft_for", "remove_stray_drafts"]

_OLD = 600.0
"""Seconds without a change, after which a draft of a process that is gone is removed."""
_LONGEST = 120
"""Bytes of the file's own name: with what is put before, a name has at most 255."""
_DRAFT = re.compile(r"\.draft-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{8}\.", re.ASCII)
_LOOKED_INTO: set[Path] = set()


def draft_for(path: Path) -> Path:
    """Name a draft of a file, beside it; its name ends as the file's does.

    The first one in a folder removes the drafts that killed processes left there.
    """
    if path.parent not in _LOOKED_INTO:
        _LOOKED_INTO.add(path.parent)
        remove_stray_drafts(path.parent)
    name = os.fsdecode(os.fsencode(path.name)[-_LONGEST:])
    return path.with_name(f".draft-{_machine()}-{os.getpid()}-{uuid4().hex[:8]}.{name}")


def remove_stray_drafts(folder: Path) -> None:
    """Remove the old drafts in a folder whose process ran on this machine and is gone; others stay."""
    now = time.time()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _DRAFT.match(entry.name)
            if found is None or found[1] != _machine() or _runs(int(found[2])):
                continue
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False) and now - entry.stat().st_mtime > _OLD:
                    Path(entry.path).unlink()


@cache
def _machine() -> str:
    """Tell this machine, or this container on it, from others that see the same folder."""
    spaces = ""
    if sys.platform == "linux":
        with suppress(OSError):
            spaces = str(Path("/proc/self/ns/pid").readlink())
    return blake2b(f"{socket.gethostname()} {spaces}".encode(), digest_size=4).hexdigest()


def _runs(process: int) -> bool:
    """Tell whether a process runs; where that cannot be told, it is taken to."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
