"""What every test may use: where the real data is."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, or a skip that says how to name it."""
    folder = os.environ.get("RATERSCOPE_DATA")
    if not folder:
        pytest.skip("set RATERSCOPE_DATA to the folder with the real data")
    return Path(folder)
