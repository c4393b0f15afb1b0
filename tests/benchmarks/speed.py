"""The speeds that users notice, in one table: from files to files, algorithms alone, and in the window.

A row from files to files is one command line, run as a process of its own. Its input is simulated once and
kept in a folder. It has the seconds from the start of the process to its end, the processor time, the largest
memory, the ratio to a named peer of the same run, and the ratio to the physical limit: a process that only
reads the same bytes (inflating what is deflated) and writes the command's output again. For algorithms
alone the limit is a copy of the input in memory, for the window one frame of a screen with 60 Hz. Growth is
measured over four sizes; its exponent is the slope of the logarithm of the time, less the time of starting.

Usage: OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.speed [NAME ...] [--quick] [--runs N]
           [--folder DIR] [--store] [--compare]

--quick leaves out the slow rows; --store keeps the table beside this module; --compare names the rows whose
ratio to the peer, or else to the limit, is worse by a quarter than in that table.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

import raterscope

from .speed_inputs import write_comparisons, write_organ, write_smears, write_volumes, write_votes

STORED = Path(__file__).with_suffix(".json")
PACKAGE = Path(raterscope.__file__).parent
SLOWER = 1.25
FRAME = 1000 / 60
RATERSCOPE = (sys.executable, "-m", "raterscope")

Row: TypeAlias = dict[str, float | str | None]
Words: TypeAlias = Callable[[Path, Path], Sequence[str]]


@dataclass(frozen=True)
class Command:
    """A row from files to files.

    Attributes
    ----------
    name : str
    words : callable
        Gives the command line from the folders of input and output.
    make : callable
        Writes the input into an empty folder.
    peer : str
        A program of `speed_peers`; empty for none.
    goal : float or None
        Seconds on two processors of 2024 with nothing else running.
    quick : bool
        Whether the row is among the quick ones.
    cold : bool
        Whether compiled code is made again.
    """

    name: str
    words: Words
    make: Callable[[Path], object]
    peer: str = ""
    goal: float | None = None
    quick: bool = False
    cold: bool = False


@dataclass(frozen=True)
class Interaction:
    """A row of the window: a line that a benchmark of the window prints.

    Attributes
    ----------
    name : str
    module : str
        The benchmark, a module beside this one.
    line : str
        The line's name in its output.
    goal : float
        The largest 95 % quantile, milliseconds.
    """

    name: str
    module: str
    line: str
    goal: float


@dataclass(frozen=True)
class Figures:
    """Medians over a command's runs: seconds, seconds of the processors, GB."""

    seconds: float
    processor: float
    memory: float


def measure(command: Sequence[str], log: Path, environment: dict[str, str] | None = None) -> Figures:
    """Run a process to its end.

    Raises
    ------
    RuntimeError
        With its last line, when it fails.
    """
    with log.open("w") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            list(command), stdout=output, stderr=subprocess.STDOUT, env=os.environ | (environment or {})
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        lines = log.read_text().strip().splitlines() or ["no output"]
        raise RuntimeError(f"{' '.join(command[2:6])}: {lines[-1]}")
    return Figures(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**20)


def median(figures: Sequence[Figures]) -> Figures:
    """Return the median of each figure."""
    return Figures(
        *(statistics.median(getattr(run, name) for run in figures) for name in Figures.__match_args__)
    )


def fuse_masks(*options: str) -> Words:
    """Return the command that fuses a folder of masks."""
    return lambda inputs, output: [
        *RATERSCOPE, "fuse", "masks", *map(str, sorted(inputs.glob("*.nii.gz"))), *options, "-o", str(output)
    ]  # fmt: skip


def fuse_clicks(*options: str) -> Words:
    """Return the command that fuses a table of clicks."""
    return lambda inputs, output: [
        *RATERSCOPE, "fuse", "clicks", str(inputs / "clicks.csv"), "--extent", "1000", "800", *options,
        "-o", str(output),
    ]  # fmt: skip


def fuse_table(kind: str, name: str, *options: str) -> Words:
    """Return the command that fuses a table of labels or pairs."""
    return lambda inputs, output: [
        *RATERSCOPE, "fuse", kind, str(inputs / name), *options, "-o", str(output)
    ]  # fmt: skip


def import_folder(inputs: Path, output: Path) -> Sequence[str]:
    """Return the command that imports a folder and the tables in it into a new study."""
    output.mkdir(exist_ok=True)
    tables = map(str, sorted(inputs.glob("*.csv")))
    return [*RATERSCOPE, "import", str(output / "study.rscope"), str(inputs), *tables]


def run_study(algorithm: str) -> Words:
    """Return the command that fuses a copy of a study."""

    def words(inputs: Path, output: Path) -> Sequence[str]:
        output.mkdir(exist_ok=True)
        study = shutil.copy(inputs / "study.rscope", inputs / "used.rscope")  # beside the images
        return [*RATERSCOPE, "run", str(study), algorithm]

    return words


def write_study(folder: Path, write: Callable[[Path], object]) -> None:
    """Write files and import them into a study beside them."""
    files = folder / "files"
    files.mkdir()
    write(files)
    subprocess.run(import_folder(files, folder), check=True)


ORGAN = (160, 500, 500)
CUBE = (384, 384, 384)

COMMANDS: tuple[Command, ...] = (
    Command("masks: organ, 7 raters, 160x500x500", fuse_masks(), lambda f: write_organ(f, ORGAN, 7, 0.115),
            "staple", 7.0),
    Command("masks: small object, 7 raters", fuse_masks(), lambda f: write_organ(f, ORGAN, 7, 0.009),
            "staple", 7.0, quick=True),
    Command("masks: 4 structures, 5 raters, 400x512x512", fuse_masks(),
            lambda f: write_organ(f, (400, 512, 512), 5, 0.06, 4), "staple", 12.0),
    *(Command(f"masks: 384x384x384, {raters} raters", fuse_masks(),
              partial(write_organ, shape=CUBE, raters=raters, share=0.03)) for raters in (3, 7, 20)),
    Command("import: 400 volumes, 4 raters", import_folder, lambda f: write_volumes(f, 400), "nibabel",
            quick=True),
    Command("import: 2,000 volumes, 4 raters", import_folder, lambda f: write_volumes(f, 2000), "nibabel",
            30.0),
    Command("import: 10,000 images, 1e6 clicks", import_folder,
            lambda f: write_smears(f, 10_000, 1_000_000, pictures=True), "pillow", 6.0),
    Command("clicks: 500 images, 1 job", fuse_clicks("--jobs", "1"), lambda f: write_smears(f, 500, 100_000),
            "hdbscan", 8.0),
    Command("clicks: 500 images, 2 jobs", fuse_clicks("--jobs", "2"), lambda f: write_smears(f, 500, 100_000),
            "hdbscan", 4.5, quick=True),
    Command("clicks: 1 image, 1,000 clicks", fuse_clicks(), lambda f: write_smears(f, 1, 1000), "hdbscan",
            quick=True),
    Command("clicks: OEM on a study of 10,000 images", run_study("oem"),
            lambda f: write_study(f, partial(write_smears, images=10_000, clicks=1_000_000, pictures=True)),
            goal=30.0),
    Command("labels: 1e6 votes, 30 classes", fuse_table("labels", "votes.csv"),
            lambda f: write_votes(f, 1_000_000, 30, 2000), "arrow", 4.0),
    Command("labels: 1e7 votes, 5 classes", fuse_table("labels", "votes.csv"),
            lambda f: write_votes(f, 10_000_000, 5, 20_000), "arrow", 9.0),
    Command("labels: IBCC, 1e6 votes, 5 classes", fuse_table("labels", "votes.csv", "--algorithm", "ibcc"),
            lambda f: write_votes(f, 1_000_000, 5, 20_000), "arrow"),
    Command("labels: 1e5 votes, 5 classes", fuse_table("labels", "votes.csv"),
            lambda f: write_votes(f, 100_000, 5, 2000), "arrow", quick=True),
    Command("pairs: 1e6 comparisons", fuse_table("pairs", "pairs.csv"),
            lambda f: write_comparisons(f, 1_000_000), "arrow", 3.0, quick=True),
    Command("cold: masks", fuse_masks(), lambda f: write_organ(f, (16, 48, 48), 3, 0.1), goal=4.0,
            cold=True),
    Command("cold: labels", fuse_table("labels", "votes.csv"), lambda f: write_votes(f, 1000, 3, 20),
            goal=4.0, cold=True, quick=True),
    Command("cold: pairs", fuse_table("pairs", "pairs.csv"), lambda f: write_comparisons(f, 1000), goal=4.0,
            cold=True),
    Command("cold: clicks", fuse_clicks(), lambda f: write_smears(f, 2, 400), goal=4.0, cold=True),
)  # fmt: skip

ALONE: dict[str, tuple[str, str, float | None]] = {
    "alone: Laplace, organ": ("organ", "staple", 2.0),
    "alone: Laplace, small object": ("object", "staple", 0.38),
    "alone: IBCC, 1e6 votes, 20,000 annotators": ("ibcc", "crowd-kit", 0.3),
    "alone: OEM, 1,000 clicks": ("oem", "hdbscan", 0.005),
}
"""Rows of algorithms alone: name in `speed_alone`, peer, goal in seconds."""

INTERACTIONS: tuple[Interaction, ...] = (
    Interaction("window: start to the first picture", "start_speed", "from the start to the first picture",
                500),
    Interaction("window: 10,000 images opened", "queue_window_speed", "study opened, an image shown", 1000),
    Interaction("window: 10,000 images, a decision", "queue_window_speed",
                "decision, on disk and on to the next", 40),
    Interaction("window: masks, accept", "masks_window_speed", "accept, on disk and on to the next", 30),
    Interaction("window: masks, undo", "masks_window_speed", "undo", 30),
    Interaction("window: pairs, a leap of the slider", "pairs_window_speed",
                "a leap of the slider, the items ranked again", 50),
    Interaction("window: pairs, a decision while fusing", "pairs_window_speed",
                "decided while a fusion is at work", 40),
    Interaction("window: 1e7 votes opened", "window_driving", "study opened, the first item shown", 3000),
)  # fmt: skip

GROWTH: dict[str, tuple[tuple[int, ...], Callable[[int], Command]]] = {
    "growth: volumes imported": (
        (50, 100, 200, 400),
        lambda n: Command(f"import-{n}", import_folder, lambda f: write_volumes(f, n)),
    ),
    "growth: raters of an organ": (
        (3, 6, 12, 20),
        lambda n: Command(f"raters-{n}", fuse_masks(), lambda f: write_organ(f, (96, 192, 192), n, 0.115)),
    ),
    "growth: voxels of a side": (
        (96, 128, 192, 256),
        lambda n: Command(f"side-{n}", fuse_masks(), lambda f: write_organ(f, (n, n, n), 3, 0.115)),
    ),
    "growth: votes": (
        (125_000, 250_000, 500_000, 1_000_000),
        lambda n: Command(
            f"votes-{n}", fuse_table("labels", "votes.csv"), lambda f: write_votes(f, n, 5, n // 50)
        ),
    ),
    "growth: images of clicks": (
        (60, 120, 240, 480),
        lambda n: Command(f"images-{n}", fuse_clicks("--jobs", "1"), lambda f: write_smears(f, n, 200 * n)),
    ),
}


class Bench:
    """Measures rows in a folder, in which inputs stay from run to run."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder, self.runs = folder, runs
        folder.mkdir(parents=True, exist_ok=True)
        compileall.compile_dir(PACKAGE, quiet=2)  # as an installation does: processes would parse sources
        self.start = median([self.run([*RATERSCOPE, "--version"]) for _ in range(3)]).seconds
        self._windows: dict[str, list[Row]] = {}

    def run(self, command: Sequence[str], environment: dict[str, str] | None = None) -> Figures:
        """Measure one process."""
        return measure(command, self.folder / "log.txt", environment)

    def input_of(self, command: Command) -> Path:
        """Return the folder of a row's input, made at the first use."""
        folder = self.folder / "".join(c if c.isalnum() else "-" for c in command.name)
        if not (folder / ".made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            (folder / "input").mkdir(parents=True)
            maker = os.fork()  # its memory is not counted as that of the rows
            if not maker:
                command.make(folder / "input")
                os._exit(0)
            if os.waitpid(maker, 0)[1]:
                raise RuntimeError(f"{command.name}: the input could not be made")
            (folder / ".made").touch()
        return folder / "input"

    def command_row(self, command: Command) -> Row:
        """Measure a command, with its peer and the floor between its runs."""
        inputs = self.input_of(command)
        output, peer_output = inputs.parent / "output", inputs.parent / "peer"
        scratch, compiled = inputs.parent / "scratch", inputs.parent / "compiled"
        if not command.cold:
            remove(output)
            self.run(command.words(inputs, output))  # fills the caches of compiled code and of the disk
        ours: list[Figures] = []
        peers: list[Figures] = []
        floors: list[Figures] = []
        for _ in range(1 if command.cold else self.runs):
            remove(output, peer_output, compiled, scratch)
            environment = {"NUMBA_CACHE_DIR": str(compiled)} if command.cold else None
            ours.append(self.run(command.words(inputs, output), environment))
            if command.peer:
                peers.append(self.run(peer_command(command.peer, inputs, peer_output)))
            floors.append(self.run(peer_command("floor", inputs, output, scratch)))
        remove(output, peer_output, compiled, scratch)
        peer = median(peers) if peers else None
        figures = {
            **asdict(median(ours)),
            "peer_seconds": peer and peer.seconds,
            "peer_memory": peer and peer.memory,
            "floor_seconds": median(floors).seconds,
        }
        return with_ratios(command.name, figures, command.peer, command.goal)

    def alone_row(self, name: str) -> Row:
        """Measure an algorithm alone."""
        word, peer, goal = ALONE[name]
        program = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.speed_alone", word]
        done = subprocess.run(program, stdout=subprocess.PIPE, check=True)
        return with_ratios(name, json.loads(done.stdout), peer, goal)

    def window_row(self, interaction: Interaction) -> Row:
        """Look up an interaction among the lines of its benchmark, which runs once."""
        if interaction.module not in self._windows:
            self._windows[interaction.module] = self._drive(interaction.module)
        lines = {line["name"]: line for line in self._windows[interaction.module]}
        return {
            **lines[interaction.line],
            "name": interaction.name,
            "floor": FRAME,
            "to_floor": float(lines[interaction.line]["high"] or 0) / FRAME,
            "goal": interaction.goal,
        }

    def _drive(self, module: str) -> list[Row]:
        kept, times = self.folder / module, self.folder / "times.jsonl"
        kept.mkdir(exist_ok=True)
        if module == "window_driving":
            votes = next(command for command in COMMANDS if "1e7 votes" in command.name)
            study = kept / "study.rscope"
            if not study.exists():
                self.run([*RATERSCOPE, "import", str(study), str(self.input_of(votes) / "votes.csv")])
            options = [str(study)]
        else:
            options = {"queue_window_speed": ["--keep", str(kept)],
                       "pairs_window_speed": ["large", "--keep", str(kept)]}.get(module, [])  # fmt: skip
        times.unlink(missing_ok=True)
        self.run(
            [sys.executable, "-m", f"tests.benchmarks.{module}", *options], {"RATERSCOPE_TIMES": str(times)}
        )
        return [json.loads(line) for line in times.read_text().splitlines()]

    def growth(self, sizes: Sequence[int], command_of: Callable[[int], Command]) -> tuple[float, list[float]]:
        """Return the exponent with which time grows, and the times."""
        seconds = []
        for size in sizes:
            command = command_of(size)
            inputs = self.input_of(command)
            output = inputs.parent / "output"
            times = []
            for _ in range(self.runs):
                remove(output)
                times.append(self.run(command.words(inputs, output)).seconds)
            seconds.append(statistics.median(times))
        beyond = np.maximum(np.array(seconds) - self.start, 1e-3)
        return float(np.polyfit(np.log(sizes), np.log(beyond), 1)[0]), seconds


def remove(*folders: Path) -> None:
    """Delete folders, if they exist."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def peer_command(name: str, *folders: Path) -> list[str]:
    """Return the command line of a program of `speed_peers`."""
    return [sys.executable, "-m", "tests.benchmarks.speed_peers", name, *map(str, folders)]


def with_ratios(name: str, figures: dict[str, float | None], peer: str, goal: float | None) -> Row:
    """Complete a row by its ratios to peer and floor."""

    def ratio(key: str) -> float | None:
        other = figures.get(key)
        return float(figures["seconds"] or 0) / other if other else None

    return {
        "name": name, **figures, "peer": peer if figures.get("peer_seconds") else None,
        "to_peer": ratio("peer_seconds"), "to_floor": ratio("floor_seconds"), "goal": goal,
    }  # fmt: skip


COLUMNS = (
    ("s", "seconds", 9, 3), ("cpu s", "processor", 8, 2), ("GB", "memory", 6, 2),
    ("peer s", "peer_seconds", 9, 3), ("GB", "peer_memory", 6, 2), ("ratio", "to_peer", 8, 2),
    ("limit s", "floor_seconds", 9, 4),
    ("ratio", "to_floor", 8, 1), ("goal", "goal", 8, 3),
)  # fmt: skip
WINDOW_COLUMNS = (
    ("ms", "median", 9, 1), ("95 %", "high", 8, 1), ("silence", "silence", 9, 1), ("limit", "floor", 8, 1),
    ("ratio", "to_floor", 8, 1), ("goal", "goal", 8, 0),
)  # fmt: skip
Columns: TypeAlias = Sequence[tuple[str, str, int, int]]


def heading(title: str, columns: Columns) -> str:
    """Write the heading of a table."""
    return f"\n{title:46s}" + "".join(f"{label:>{width}s}" for label, _, width, _ in columns)


def text(row: Row, columns: Columns) -> str:
    """Write a row of a table."""

    def figure(key: str, width: int, digits: int) -> str:
        value = row.get(key)
        return f"{'-':>{width}s}" if value is None else f"{value:{width}.{digits}f}"

    figures = "".join(figure(key, width, digits) for _, key, width, digits in columns)
    return f"{row['name']!s:46s}{figures}  {row.get('peer') or ''}"


def slower(rows: Sequence[Row]) -> list[str]:
    """Name the rows slower than in the stored table: by the ratio to the peer, else to the limit."""
    if not STORED.exists():
        return []
    before = {row["name"]: row for row in json.loads(STORED.read_text())["rows"]}
    messages = []
    for row in rows:
        key = "to_peer" if row.get("to_peer") else "to_floor"
        old, new = before.get(row["name"], {}).get(key), row.get(key)
        if old and new and float(new) > SLOWER * float(old):
            messages.append(
                f"slower: {row['name']}, {key.replace('_', ' ')} {float(old):.2f} > {float(new):.2f}"
            )
    return messages


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="rows whose name contains one of these words")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "raterscope-benchmarks")
    options = parser.parse_args()
    bench = Bench(options.folder, options.runs)
    print(f"the program starts and ends in {bench.start:.2f} s", flush=True)

    def wanted(name: str, *, quick: bool = False) -> bool:
        return (quick or not options.quick) and (
            not options.names or any(word in name for word in options.names)
        )

    rows: list[Row] = []
    exponents: dict[str, float] = {}

    def show(row: Row, columns: Columns) -> None:
        rows.append(row)
        print(text(row, columns), flush=True)

    print(heading("from files to files", COLUMNS))
    for command in COMMANDS:
        if wanted(command.name, quick=command.quick):
            show(bench.command_row(command), COLUMNS)
    for name in filter(wanted, ALONE):
        show(bench.alone_row(name), COLUMNS)
    for name, (sizes, command_of) in GROWTH.items():
        if wanted(name):
            exponents[name], seconds = bench.growth(sizes, command_of)
            times = ", ".join(f"{size:,}: {s:.2f} s" for size, s in zip(sizes, seconds, strict=True))
            print(f"{name:46s}exponent {exponents[name]:.2f}  ({times})", flush=True)
    interactions = [interaction for interaction in INTERACTIONS if wanted(interaction.name)]
    if interactions:
        print(heading("in the window", WINDOW_COLUMNS))
    for interaction in interactions:
        show(bench.window_row(interaction), WINDOW_COLUMNS)
    messages = slower(rows) if options.compare else []
    print("\n".join(messages))
    if options.store:
        stored = {"start": bench.start, "rows": rows, "exponents": exponents}
        STORED.write_text(json.dumps(stored, indent=1) + "\n")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
