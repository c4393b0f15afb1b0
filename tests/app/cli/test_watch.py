"""`raterscope watch`: JSON lines, stopping, killing, and going on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from raterscope.app.cli import main
from raterscope.app.cli.options import parser_of
from raterscope.app.study import Study

PLACES = np.array([[40.0, 40.0], [120.0, 50.0], [60.0, 130.0], [150.0, 150.0]])
HEADER = "annotator,image,x,y\n"
VISITS = 4


def visit(number: int, image: str = "a.png") -> str:
    positions = PLACES + np.random.default_rng(number).normal(0, 1.5, PLACES.shape)
    return "".join(f"W{number},{image},{x:.2f},{y:.2f}\n" for x, y in positions)


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def arguments(tmp_path: Path, *more: str) -> list[str]:
    return [
        "watch", str(tmp_path / "watched.rscope"), str(tmp_path / "clicks.csv"),
        "--extent", "200", "200", *more,
    ]  # fmt: skip


def of_images(event_list: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in event_list if event["event"] == "image"]


def test_what_is_there_is_reported_step_by_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append(tmp_path / "clicks.csv", HEADER + "".join(visit(number) for number in range(6)))
    assert main(arguments(tmp_path, "--once")) == 0
    event_list = events(capsys.readouterr().out)
    assert event_list[0]["event"] == "watching"
    assert not event_list[0]["resumed"]
    steps = of_images(event_list)
    assert [step["annotators"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert [step["clicks"] for step in steps] == [4, 8, 12, 16, 20, 24]
    assert steps[-1]["detections"] == len(PLACES)
    assert 0 <= steps[-1]["chance_of_change"] <= 1
    assert event_list[-1]["event"] == "stopped"
    with Study.open(tmp_path / "watched.rscope") as study:
        assert [run.id for run in study.runs.all()] == [event_list[-1]["run"]]


def test_restarted_it_reports_its_position_and_reads_new_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path / "clicks.csv", HEADER + "".join(visit(number) for number in range(3)))
    main(arguments(tmp_path, "--once"))
    capsys.readouterr()
    append(tmp_path / "clicks.csv", visit(3))
    assert main(arguments(tmp_path, "--once")) == 0
    event_list = events(capsys.readouterr().out)
    assert event_list[0]["resumed"]
    assert [image_event["annotators"] for image_event in of_images(event_list)] == [3, 4]


def test_it_ends_by_itself_once_every_image_meets_the_stop_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path / "clicks.csv", HEADER + "".join(visit(number) for number in range(25)))
    assert main(arguments(tmp_path, "--until-stop-rule", "--set", "limit=0.2", "--every", "0.1")) == 0
    last = of_images(events(capsys.readouterr().out))[-1]
    assert last["stop_rule_met"]
    assert last["firm"]


def test_the_former_name_of_an_option_is_understood() -> None:
    former, present = (
        parser_of("watch").parse_args(["watch", "s.rscope", "in", option])
        for option in ("--until-firm", "--until-stop-rule")
    )
    assert vars(former) == vars(present)


def test_a_line_that_is_invalid_is_reported_and_the_others_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path / "clicks.csv", HEADER + visit(0) + "W1,a.png,here,there\n" + visit(2))
    assert main(arguments(tmp_path, "--once")) == 0
    event_list = events(capsys.readouterr().out)
    (notice,) = [event["words"] for event in event_list if event["event"] == "notice"]
    assert "clicks.csv, line 6" in notice
    (settling,) = [event["words"] for event in event_list if event["event"] == "settling"]
    detections = [event["detections"] for event in event_list if event["event"] in ("image", "settled")]
    assert f"of {detections[-1]} detection" in settling
    assert of_images(event_list)[-1]["annotators"] == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--set", "limit=2"), "limit"),
        (("--set", "colour=red"), "--set colour is not a setting here; expected one of"),
        (("--set", "limt=0.1"), "nearest: limit, "),
        (("--set", "limt=0.1"), "--list-settings lists all."),
        (("--every", "soon"), "no time above 0"),
    ],
)
def test_what_is_invalid_is_reported_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], words: str
) -> None:
    append(tmp_path / "clicks.csv", HEADER + visit(0))
    assert main(arguments(tmp_path, "--once", *more)) == 1
    output = capsys.readouterr().err
    assert words in output
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello\n", "bad.csv: has no columns"),
        ("who,picture,px,py\na,b,1,2\n", "by --map column=field"),
    ],
)
def test_a_source_of_no_use_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    study = tmp_path / "new.rscope"
    assert main(["watch", str(study), str(tmp_path / "bad.csv"), "--once"]) == 1
    assert words in capsys.readouterr().err
    assert not study.exists()


def test_a_study_is_no_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "one.rscope"
    Study.create(study).close()
    assert main(["watch", str(study), str(study), "--once"]) == 1
    assert "is a study" in capsys.readouterr().err
    assert main(["watch", str(study), str(tmp_path / "later.csv"), "--once"]) == 0


def test_an_image_of_an_unknown_size_stops_it_before_anything_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(tmp_path / "clicks.csv", HEADER + "".join(visit(number) for number in range(3)))
    without_size = [
        argument for argument in arguments(tmp_path, "--once") if argument not in ("--extent", "200")
    ]
    assert main(without_size) == 1
    assert '"a.png"' in capsys.readouterr().err
    assert main(arguments(tmp_path, "--once")) == 0
    assert of_images(events(capsys.readouterr().out))[-1]["clicks"] == 12


TWO_LIVES = """
import io, os, sys
from contextlib import redirect_stdout
from raterscope.app.cli import main
from raterscope.app.cli.options import parser_of

with redirect_stdout(io.StringIO()):
    main(["watch", *sys.argv[1:3], "--extent", "200", "200", "--once"])
first = os.fork()
if first:
    print(first, flush=True)
    os.waitpid(first, 0)
sys.exit(main(sys.argv[3:]))
"""
"""The command, and again once it was killed; modules and kernels are loaded once, by another study."""


def started(tmp_path: Path) -> subprocess.Popen[str]:
    other = tmp_path / "other.csv"
    append(other, HEADER + visit(0) + visit(1))
    command = [sys.executable, "-c", TWO_LIVES, str(tmp_path / "other.rscope"), str(other)]
    command += arguments(tmp_path, "--every", "0.05")
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])


def heard_until(process: subprocess.Popen[str], clicks: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    event_list = []
    for line in process.stdout:
        event_list.append(json.loads(line))
        if event_list[-1].get("clicks", 0) >= clicks:
            return event_list
    raise AssertionError(f"it ended before {clicks} clicks had come: {event_list}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals")
def test_killed_it_loses_and_repeats_nothing_and_interrupted_it_keeps_a_run(tmp_path: Path) -> None:
    source = tmp_path / "clicks.csv"
    append(source, HEADER)
    steps: list[tuple[int, int]] = []
    with started(tmp_path) as process:
        assert process.stdout is not None
        first = int(process.stdout.readline())
        for number in range(VISITS):
            append(source, visit(number)[:-9])  # the writer stops in the middle of a line ...
            time.sleep(0.06)
            append(source, visit(number)[-9:])  # ... and goes on
            event_list = heard_until(process, (number + 1) * len(PLACES))
            steps += [(event["annotators"], event["clicks"]) for event in of_images(event_list)]
            if number == VISITS // 2 - 1:
                os.kill(first, signal.SIGKILL)
        process.send_signal(signal.SIGINT)
        remaining = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    assert events(remaining)[-1]["run"] == 1
    assert max(steps) == (VISITS, VISITS * len(PLACES))
    with Study.open(tmp_path / "watched.rscope") as study:
        clicks = study.clicks(1)
        assert sorted(clicks.annotators) == sorted(f"W{number}" for number in range(VISITS))
        assert len(clicks) == VISITS * len(PLACES)
        assert len(clicks.merged()[0]) == len(clicks)


def test_it_suggests_the_next_annotator_and_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    visits = [visit(number, "a.png") for number in range(6)] + [visit(number, "b.png") for number in (0, 1)]
    append(tmp_path / "clicks.csv", HEADER + "".join(visits))
    assert main(arguments(tmp_path, "--once", "--ask", "3")) == 0
    event_list = events(capsys.readouterr().out)
    (following,) = [event for event in event_list if event["event"] == "next"]
    assert following["image"] == "b.png"
    assert len(following["annotators"]) == 3
    assert {annotator["annotator"] for annotator in following["annotators"]} <= {
        f"W{number}" for number in range(2, 6)
    }
