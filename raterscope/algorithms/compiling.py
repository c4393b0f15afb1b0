"""Compilation of the inner loops. Import this in modules of kernels only: it loads numba.

What is compiled is kept beside the modules, or else in the user's cache folder, or in the folder that the
environment variable NUMBA_CACHE_DIR names. Where none can be written, it is compiled at each start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from numba import njit

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
            _tell_once()
            return njit(cache=False, **options)(kernel)  # type: ignore[no-any-return]

    return decorate


_TOLD: list[bool] = []


def _tell_once() -> None:
    if not _TOLD:
        _TOLD.append(True)
        logging.getLogger("raterscope").warning(
            "note: there is no folder to keep compiled code in: the first fusion takes longer at each start; "
            "set NUMBA_CACHE_DIR to a folder that can be written."
        )
