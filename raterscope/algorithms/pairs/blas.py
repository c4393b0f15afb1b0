"""Number of threads of the linear algebra."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def one_thread() -> AbstractContextManager[Any]:
    """Run linear algebra in one thread within the context."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """Find the libraries once: it takes as long as a small ranking, and stops all threads."""
    import scipy.linalg  # noqa: F401 - it loads a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
