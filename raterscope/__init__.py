"""Raterscope: an expert's review of what many annotators marked."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("raterscope")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"
