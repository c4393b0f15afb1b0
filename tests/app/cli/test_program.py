"""The program as it is started: real processes for what only they can show, calls for the rest."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

import raterscope
from raterscope.app.cli import main
from raterscope.app.cli.options import EXAMPLES, options_of
from raterscope.app.cli.program import COMMANDS
from raterscope.app.kinds.registry import KINDS


def start(*arguments, **options):
    """Run the program in a process of its own, without a display."""
    environment = {
        k: v for k, v in os.environ.items() if k not in {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}
    }
    environment |= options.pop("environment", {})
    return subprocess.run(
        [sys.executable, "-m", "raterscope", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        **options,
    )


def complaint(capsys, *arguments):
    """Return the error of the program for a command line that it refuses."""
    assert main([str(argument) for argument in arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("raterscope: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.removeprefix("raterscope: ").strip()


def test_help_names_the_commands_and_loads_nothing_heavy():
    code = (
        "import sys; from raterscope.app.cli import main; status = main(['--help']);"
        "heavy = {'numpy', 'scipy', 'numba', 'sklearn', 'PySide6', 'PIL'} & set(sys.modules);"
        "sys.exit(status or ' '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert done.returncode == 0
    for command in ("demo", "import", "run", "export", "fuse", "simulate", "papers"):
        assert f"\n    {command} " in done.stdout


def test_version():
    done = start("--version")
    assert (done.returncode, done.stdout) == (0, f"raterscope {raterscope.__version__}\n")


@pytest.mark.parametrize("command", [["demo"], ["import"], ["export"], ["fuse"], ["simulate"], ["papers"]])
def test_every_command_explains_itself(command, capsys):
    assert main([*command, "--help"]) == 0
    assert f"usage: raterscope {' '.join(command)} " in capsys.readouterr().out


def test_a_word_that_is_neither_file_nor_command(capsys):
    assert complaint(capsys, "fuze") == "fuze: there is no such file, nor is it a command."


def test_a_file_that_is_missing(capsys, tmp_path):
    assert complaint(capsys, tmp_path / "gone.rscope") == "gone.rscope: there is no such file."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nonsense"], "raterscope --help"),
        (["fuse"], "raterscope fuse --help"),
        (["fuse", "spots", "a"], "invalid choice: 'spots'"),
        (["export", "s.rscope", "--what", "everything", "-o", "x"], "invalid choice: 'everything'"),
        (["fuse", "clicks", "a.csv", "--extent", "0", "5", "-o", "x"], "'0' is no length above 0"),
        (["fuse", "clicks", "a.csv", "--extent", "nan", "5", "-o", "x"], "'nan' is no length above 0"),
        (["fuse", "clicks", "a.csv", "--set", "scatter", "-o", "x"], "'scatter' is no pair like name=value"),
        (["fuse", "clicks", "a.csv", "--jobs", "-1", "-o", "x"], "--jobs"),
        (["fuse", "clicks", "a.csv"], "-o/--output"),
    ],
)
def test_a_command_line_that_is_wrong(arguments, words, capsys):
    assert words in complaint(capsys, *arguments)


@pytest.mark.parametrize(
    ("command", "examples"),
    [
        *((name, EXAMPLES[name]) for name in COMMANDS if name != "fuse"),
        *((f"fuse {name}", kind.fuse_command.examples) for name, kind in KINDS.items()),
    ],
)
def test_the_help_of_each_command_has_examples_that_are_understood(command, examples, capsys):
    assert main([*command.split(), "--help"]) == 0
    help_text = capsys.readouterr().out
    assert examples
    for example in examples:
        assert f"raterscope {example}" in help_text
        assert example.startswith(command)
        options_of(shlex.split(example))


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "there is no display"),
        ({"QT_QPA_PLATFORM": "xcb", "DISPLAY": ":987"}, "cannot open the display"),
    ],
)
def test_without_a_display_the_window_is_refused_in_a_sentence(environment, words):
    done = start(environment=environment)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_what_strangers_wrote_does_not_steer_the_terminal(capsys, tmp_path):
    name = "evil\x1b[2J\nname.csv"
    output = complaint(capsys, tmp_path / name)
    assert "\x1b" not in output


def test_an_internal_error_is_one_line_unless_requested_more(capsys, monkeypatch):
    def fail(_):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("raterscope.app.cli.program._act", fail)
    assert complaint(capsys).startswith("internal error (ZeroDivisionError: two lines)")
    monkeypatch.setenv("RATERSCOPE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main([])


def test_a_reader_that_has_had_enough_is_no_error():
    program = subprocess.Popen(
        [sys.executable, "-m", "raterscope", "fuse", "clicks", "--list-settings"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    program.stdout.close()
    with program, program.stderr as output:
        assert (output.read(), program.wait(300)) == (b"", 0)


def test_without_qt_the_window_is_refused_and_the_commands_work_with_any_encoding(tmp_path):
    (tmp_path / "PySide6.py").write_text("raise ImportError('libEGL.so.1: no such file')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = start(environment={"PYTHONPATH": path, "DISPLAY": ":0"})
    assert done.returncode == 1
    assert done.stderr == (
        "raterscope: the window cannot be opened: "
        "its libraries cannot be loaded: libEGL.so.1: no such file.\n"
    )
    (tmp_path / "clicks.csv").write_text("annotator,image,x,y\na,i,3,4\n")
    arguments = ("fuse", "clicks", tmp_path / "clicks.csv", "--extent", 9, 9, "-o", tmp_path / "\u00e9\u4e2d")
    done = start(*arguments, environment={"PYTHONPATH": path, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stderr == (  # no progress where it is no terminal
        "note: No spots: a spot needs clicks of two annotators, and each image has clicks of one.\n"
    )
    assert done.stdout.endswith("/??\n")  # the encoding lacks the letters


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
class TestTerminal:
    def write_clicks(self, path, count):
        rng = np.random.default_rng(0)
        rows = [
            f"w{n % 40},i{n % 800},{x:.1f},{y:.1f}"
            for n, (x, y) in enumerate(rng.uniform(0, 900, (count, 2)))
        ]
        path.write_text("\n".join(["annotator,image,x,y", *rows]))
        return path

    def begin(self, clicks, stderr):
        """Start a fusion in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "raterscope", "fuse", "clicks", clicks, "--extent", "900", "900",
             "--set", "as_published=yes", "-o", clicks.parent / "out"],
            stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
            # A shell lets what it runs in the background ignore interrupts, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip

    def test_progress_is_one_line_and_interrupting_is_quiet(self, tmp_path):
        import pty

        clicks = self.write_clicks(tmp_path / "clicks.csv", 240_000)  # the work lasts until it is interrupted
        ours, theirs = pty.openpty()
        program = self.begin(clicks, theirs)
        os.close(theirs)
        content = b""
        while b"%" not in content or not re.search(rb"fused \d|i0", content):
            content += os.read(ours, 4096)
        os.killpg(program.pid, signal.SIGINT)
        while program.poll() is None:  # Python ignores an interrupt that comes while an object is finalized
            try:
                program.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(program.pid, signal.SIGINT)
        assert program.returncode in (130, -signal.SIGINT)
        with contextlib.suppress(OSError):  # Linux: the other end is closed
            while more := os.read(ours, 4096):
                content += more
        os.close(ours)
        program.stdout.close()
        assert b"\n" not in content
        assert content.endswith(b"\r\x1b[K")
        assert not (clicks.parent / "out" / "detections.csv").exists()

    def test_a_second_interrupt_while_threads_are_awaited_ends_silently(self):
        code = (
            "import sys, threading\n"
            "from raterscope.app.cli import program\n"
            "def interrupted(arguments):\n"
            "    threading.Thread(target=threading.Event().wait, args=(60,)).start()\n"
            "    raise KeyboardInterrupt\n"
            "program._act = interrupted\n"
            "print(program.main(), flush=True)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as program:  # fmt: skip
            assert program.stdout.readline() == b"130\n"
            os.killpg(program.pid, signal.SIGINT)
            assert program.communicate()[1] == b""
        assert program.returncode == -signal.SIGINT
