"""The command line, for tests."""

import pytest

from raterscope.app.cli import main

__all__ = ["refusal", "run"]


def run(*arguments):
    """Run a command; gives its status."""
    return main([str(argument) for argument in arguments])


@pytest.fixture
def refusal(capsys):
    """Run a command that fails; gives the one line that it says, without the program's name."""

    def refused(*arguments):
        capsys.readouterr()
        assert run(*arguments) == 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1, err
        return err.removeprefix("raterscope: ").strip()

    return refused
