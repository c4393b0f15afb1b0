"""Every kernel that these tests call is compiled in advance."""

from tests.kernels import kernels_are_listed

__all__ = ["kernels_are_listed"]
