import numpy as np
import pytest

from raterscope.widgets.volume.volume_view import VolumeView
from tests.widgets.volume.viewing import GRID, SHAPE


@pytest.fixture
def view(qtbot):
    widget = VolumeView()
    qtbot.addWidget(widget)
    widget.resize(900, 560)
    widget.show()
    widget.set_volume(np.full(SHAPE, 90, dtype=np.int16), GRID, modality="CT", window=(90, 200))
    return widget
