"""`raterscope fuse` of the kind that a file of tests is about: its name ends with it."""

import pytest

from tests.app.commands import run


@pytest.fixture
def kind(request):
    return request.module.__name__.rpartition("_")[2]


@pytest.fixture
def fuse(kind, tmp_path, capsys):
    """Fuse into a folder; return the folder and the output."""

    def fused(*arguments, folder="out"):
        status = run("fuse", kind, *arguments, "-o", tmp_path / folder)
        captured = capsys.readouterr()
        assert status == 0, captured.err
        return tmp_path / folder, captured.out + captured.err

    return fused


@pytest.fixture
def refusal(kind, refusal, tmp_path):
    """Fuse what cannot be fused; gives the one line that it says."""

    def refused(*arguments):
        return refusal("fuse", kind, "-o", tmp_path / "out", *arguments)

    return refused
