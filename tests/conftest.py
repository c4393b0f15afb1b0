"""Fixtures of all tests: the folder of real data, and a random order."""

import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, settings

# Before numpy is loaded: the arrays are small, and threads would only wait for each other.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS"):
    os.environ.setdefault(_name, "1")

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before Qt is loaded

# Studies wait for the disk dozens of times a test: in memory that takes no time.
_IN_MEMORY = Path("/dev/shm")
_ROOM = 4 << 30
if (
    "TMPDIR" not in os.environ
    and os.access(_IN_MEMORY, os.W_OK)
    and shutil.disk_usage(_IN_MEMORY).free > _ROOM
):
    os.environ["TMPDIR"] = tempfile.tempdir = str(_IN_MEMORY)

os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir()) / "raterscope-tests")  # of reports of errors

# How long examples take to be made says nothing where other work keeps the processors busy.
settings.register_profile(
    "patient", max_examples=50, suppress_health_check=[HealthCheck.too_slow], deadline=None
)
settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage: there is little, and looking took a third of the time.

    Look for it seldom afterwards: that took a twentieth of the time. Tests with Qt do so by themselves.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(10_000, 10, 5)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--random-order", type=int, metavar="SEED", help="shuffle the files, and the tests of each"
    )
    parser.addoption(
        "--store-pictures", action="store_true", help="store the pictures of the screens as references"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--random-order")
    if seed is None:
        # The longest tests come first: at the end one worker would wait for the other.
        items.sort(key=lambda item: item.path.parent.name not in ("campaigns", "tests"))
        return
    random = Random(seed)
    files = [list(tests) for _, tests in itertools.groupby(items, key=lambda item: item.path)]
    random.shuffle(files)
    for tests in files:
        random.shuffle(tests)
    items[:] = itertools.chain.from_iterable(files)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data, or a skip that says how to name it."""
    folder = os.environ.get("RATERSCOPE_DATA")
    if not folder:
        pytest.skip("set RATERSCOPE_DATA to the folder with the real data")
    return Path(folder)
