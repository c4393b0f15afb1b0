"""What every test may use: where the real data is."""

import os
from pathlib import Path

import pytest

# Before numpy is loaded: the arrays are small, and threads would only wait for each other.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, or a skip that says how to name it."""
    folder = os.environ.get("RATERSCOPE_DATA")
    if not folder:
        pytest.skip("set RATERSCOPE_DATA to the folder with the real data")
    return Path(folder)
