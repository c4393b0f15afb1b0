"""What every test may use: where the real data is."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before numpy is loaded: the arrays are small, and threads would only wait for each other.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


# How long examples take to be made says nothing where other work keeps the processors busy.
settings.register_profile("patient", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, or a skip that says how to name it."""
    folder = os.environ.get("RATERSCOPE_DATA")
    if not folder:
        pytest.skip("set RATERSCOPE_DATA to the folder with the real data")
    return Path(folder)
