"""Input of the tests that import tables of labels and of comparisons."""

import numpy as np
import pytest
from PIL import Image

from raterscope.app.study import Study

__all__ = ["digits", "study"]


@pytest.fixture
def study(tmp_path):
    """An empty study."""
    with Study.create(tmp_path / "made.rscope") as study:
        yield study


def digits(folder, names):
    """Write pictures of few grey values, as small as masks can be; gives their files."""
    folder.mkdir()
    paths = [folder / name for name in names]
    for at, path in enumerate(paths):
        picture = np.zeros((28, 28), dtype=np.uint8)
        picture[4 + at : 20, 8:16] = 255
        Image.fromarray(picture).save(path)
    return paths
