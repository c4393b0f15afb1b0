"""The command `plan`."""

import pytest

from tests.app.commands import run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("acceptance --acceptable 0.025 --unacceptable 0.16", "Re-read 32, accept with at most 2 errors."),
        ("acceptance --acceptable 0.025 --unacceptable 0.16 --checked 20 3", "3 errors: reject"),
        ("acceptance --acceptable 0.025 --unacceptable 0.16 --checked 32 2", "2 errors: accept"),
        ("acceptance --acceptable 0.01 --unacceptable 0.1 --sequential --checked 24 0", "0 errors: accept"),
        ("acceptance --acceptable 0.01 --unacceptable 0.1 --sequential --checked 9 1", "go on checking"),
        ("acceptance --acceptable 0.01 --unacceptable 0.1 --sequential", "reject with"),
        ("cases icc --expected 0.8 --width 0.2", "55 cases"),
        ("cases kappa --expected 0.8 --width 0.2", "139 cases"),
        ("cases proportion --expected 0.5 --width 0.2", "93 cases"),
        ("cases limits --width 0.68", "101 cases"),
    ],
)
def test_plans(arguments, words, capsys):
    assert run("plan", *arguments.split()) == 0
    assert words in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("acceptance --acceptable 0.2 --unacceptable 0.1", "expected an acceptable one below"),
        ("acceptance --acceptable 2 --unacceptable 3", "--acceptable: 2; expected 0 to 1"),
        ("acceptance --acceptable 0.02 --unacceptable 0.1 --checked 3 4", "4 errors among 3"),
        ("acceptance --acceptable 0.02 --unacceptable 0.1 --sequential --lot 50", "--lot"),
        ("cases icc --width 0.2", "--expected is missing"),
    ],
)
def test_what_cannot_be_planned_is_stated(arguments, words, refusal):
    assert words in refusal("plan", *arguments.split())
