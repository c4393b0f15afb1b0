"""A study of clicks that the command line made of files."""

import numpy as np
import pytest
from PIL import Image

from tests.app.commands import run
from tests.app.tables import rows_of
from tests.kernels import kernels_are_listed

__all__ = ["kernels_are_listed"]

CENTRES = [(30.0, 40.0), (150.0, 60.0), (90.0, 150.0)]


@pytest.fixture
def files(tmp_path):
    """Two images, ten people's clicks on them, the truth."""
    rng = np.random.default_rng(1)
    lines, truth = ["annotator,image,x,y"], ["image,x,y"]
    for name in ("one.png", "two.png"):
        Image.new("RGB", (200, 180), "pink").save(tmp_path / name)
        for x, y in CENTRES:
            truth.append(f"{name},{x},{y}")
            lines += [f"w{n},{name},{x + rng.normal():.1f},{y + rng.normal():.1f}" for n in range(10)]
    (tmp_path / "clicks.csv").write_text("\n".join(lines))
    (tmp_path / "truth.csv").write_text("\n".join(truth))
    return [tmp_path / name for name in ("clicks.csv", "truth.csv", "one.png", "two.png")]


@pytest.fixture
def study(files, tmp_path, capsys):
    assert run("import", tmp_path / "s.rscope", *files) == 0
    capsys.readouterr()
    return tmp_path / "s.rscope"


@pytest.fixture
def export(capsys):
    """Export of a study to CSV; gives the rows."""

    def exported(study, kind):
        out = study.with_name(f"{kind}.csv")
        assert run("export", study, "--what", kind, "-o", out) == 0
        assert capsys.readouterr().out.strip().endswith(str(out))
        return rows_of(out)

    return exported
