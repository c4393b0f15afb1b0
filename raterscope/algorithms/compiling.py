"""How the inner loops are compiled; only modules of kernels import this, for it loads numba."""

from __future__ import annotations

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
    decorate: Callable[[_Kernel], _Kernel] = njit(
        cache=True, nogil=True, error_model=error_model, fastmath=fastmath
    )
    return decorate
