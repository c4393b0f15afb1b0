"""How the inner loops are compiled; only modules of kernels import this, for it loads numba.

What is compiled is kept beside the modules, or else in the user's cache folder. Where neither can be written,
as in a read-only installation without a home, it is kept in a folder for temporary files, and where there is
none either it is compiled at each start. The environment variable NUMBA_CACHE_DIR names another folder.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from numba import config, njit

__all__ = ["Array", "compiled"]

Array = Any
"""What numba compiles is not what a type checker sees; shapes and types stand in the docstrings."""

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


def compiled(
    *, error_model: Literal["python", "numpy"] = "python", fastmath: bool | set[str] = False
) -> Callable[[_Kernel], _Kernel]:
    """Compile a kernel: kept on disk for the next start, and without the lock, so that the window goes on.

    Parameters
    ----------
    error_model : {"python", "numpy"}
        Whether a division by zero raises, or gives an infinity without being looked for.
    fastmath : bool or set of str
        Liberties with the order and rounding of sums; see numba.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": error_model, "fastmath": fastmath}

    def decorate(kernel: _Kernel) -> _Kernel:
        try:
            return njit(cache=True, **options)(kernel)  # type: ignore[no-any-return]
        except RuntimeError:  # nowhere to keep it
            _keep_elsewhere()
        try:
            return njit(cache=True, **options)(kernel)  # type: ignore[no-any-return]
        except RuntimeError:
            _tell_once()
            return njit(cache=False, **options)(kernel)  # type: ignore[no-any-return]

    return decorate


_TOLD: list[bool] = []


def _keep_elsewhere() -> None:
    """Let numba keep what it compiles in a folder for temporary files that is this user's alone.

    Code in it is run: a folder that another user made there is left alone.
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    try:
        folder = Path(tempfile.gettempdir()) / f"raterscope-compiled-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return
    mine = not hasattr(os, "getuid") or (found.st_uid == user and not found.st_mode & 0o077)
    if stat.S_ISDIR(found.st_mode) and mine:
        config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(folder)


def _tell_once() -> None:
    if not _TOLD:
        _TOLD.append(True)
        logging.getLogger("raterscope").warning(
            "note: there is no folder to keep compiled code in: the first fusion takes longer at each start; "
            "set NUMBA_CACHE_DIR to a folder that can be written."
        )
