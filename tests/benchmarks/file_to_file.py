"""Time from files to files: every command as a process of its own, beside a peer that does the same work.

Each row is one command line. Its input is simulated once and kept in a folder. A row has the seconds from the
start of the process to its end, the processor time, the largest memory, a ratio to a named peer measured in
the same run, and a ratio to a floor: a process that only reads the same bytes (inflating what is deflated)
and writes the command's output again. Growth is measured over four sizes; its exponent is the slope of the
logarithm of the time, less the time that the program takes to start.

Usage: OPENBLAS_NUM_THREADS=1 python -m tests.benchmarks.file_to_file [NAME ...] [--quick] [--runs N]
           [--folder DIR] [--store] [--compare]

--quick leaves out rows of more than about half a minute; --store keeps the table beside this module;
--compare names the rows whose ratio to the peer, or to the floor, is worse by a quarter than in that table.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

STORED = Path(__file__).with_suffix(".json")
SLOWER = 1.25
RATERSCOPE = (sys.executable, "-m", "raterscope")

FLOOR = """
import sys, zlib
from pathlib import Path
inputs, outputs, scratch = (Path(one) for one in sys.argv[1:4])
def files(folder):
    return [one for one in sorted(folder.rglob("*")) if one.is_file()]
for file in files(inputs):
    data = file.read_bytes()
    if file.suffix == ".gz":
        zlib.decompress(data, 31)
scratch.mkdir(exist_ok=True)
for number, file in enumerate(files(outputs)):
    (scratch / str(number)).write_bytes(file.read_bytes())
"""

STAPLE = """
import sys, SimpleITK
from pathlib import Path
files, output = sorted(Path(sys.argv[1]).glob("*.nii.gz")), Path(sys.argv[2])
output.mkdir(exist_ok=True)
images = [SimpleITK.ReadImage(str(file), SimpleITK.sitkUInt8) for file in files]
names = [one for one in range(1, 256) if (SimpleITK.GetArrayViewFromImage(images[0]) == one).any()]
for name in names:
    answer = SimpleITK.STAPLE([image == name for image in images], 1.0)
    chance = SimpleITK.Cast(answer, SimpleITK.sitkFloat32)
    SimpleITK.WriteImage(chance, str(output / f"staple_{name}.nii.gz"), True)
    SimpleITK.WriteImage(answer > 0.5, str(output / f"mask_{name}.nii.gz"), True)
"""

HDBSCAN = """
import sys, csv, warnings
import numpy as np
from pathlib import Path
from sklearn.cluster import HDBSCAN
warnings.simplefilter("ignore")
images = {}
with (Path(sys.argv[1]) / "clicks.csv").open(newline="") as lines:
    for row in csv.DictReader(lines):
        images.setdefault(row["image"], []).append((float(row["x"]), float(row["y"])))
output = Path(sys.argv[2]); output.mkdir(exist_ok=True)
with (output / "detections.csv").open("w", newline="") as lines:
    writer = csv.writer(lines)
    for name, points in images.items():
        places = np.array(points)
        labels = HDBSCAN(min_cluster_size=4, copy=True).fit_predict(places)
        for number in range(labels.max() + 1):
            writer.writerow([name, number, *places[labels == number].mean(axis=0).tolist()])
"""

ARROW = """
import sys
from pathlib import Path
from pyarrow import csv
output = Path(sys.argv[2]); output.mkdir(exist_ok=True)
for file in sorted(Path(sys.argv[1]).glob("*.csv")):
    csv.write_csv(csv.read_csv(file), output / file.name)
"""

HEADERS = """
import sys, nibabel
from pathlib import Path
output = Path(sys.argv[2]); output.mkdir(exist_ok=True)
with (output / "volumes.txt").open("w") as lines:
    for file in sorted(Path(sys.argv[1]).rglob("*.nii.gz")):
        image = nibabel.load(file)
        lines.write(f"{file.name} {image.shape} {int(image.dataobj[...].sum())}\\n")
"""

SIZES_OF_IMAGES = """
import sys
from pathlib import Path
from PIL import Image
from pyarrow import csv
output = Path(sys.argv[2]); output.mkdir(exist_ok=True)
csv.write_csv(csv.read_csv(Path(sys.argv[1]) / "clicks.csv"), output / "clicks.csv")
with (output / "images.txt").open("w") as lines:
    for file in sorted(Path(sys.argv[1]).glob("*.png")):
        with Image.open(file) as image:
            lines.write(f"{file.name} {image.size}\\n")
"""


@dataclass(frozen=True)
class Command:
    """One row.

    Attributes
    ----------
    name : str
    words : callable
        Gives the command line from the folder of the input and that of the output.
    make : callable
        Writes the input into an empty folder.
    peer, peer_name : str
        A program that reads the folder named first and writes into that named second; empty for none.
    goal : float or None
        Seconds on two processors of 2024 with nothing else running.
    quick : bool
    cold : bool
        Whether compiled code is to be made anew.
    """

    name: str
    words: Callable[[Path, Path], Sequence[str]]
    make: Callable[[Path], None]
    peer: str = ""
    peer_name: str = ""
    goal: float | None = None
    quick: bool = True
    cold: bool = False


@dataclass(frozen=True)
class Figures:
    """What was measured of a process, medians: seconds, seconds of the processors, GB."""

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


def middle(figures: Sequence[Figures]) -> Figures:
    """Give the median of each figure."""
    return Figures(
        *(statistics.median(getattr(one, name) for one in figures) for name in Figures.__match_args__)
    )


# The inputs


def organ(folder: Path, shape: tuple[int, int, int], raters: int, share: float, structures: int = 1) -> None:
    """Write raters' masks of ellipsoids that take up a share of the volume, with wavering outlines."""
    import nibabel

    generator = np.random.default_rng(0)
    axes = [np.linspace(-1, 1, n, dtype=np.float32) for n in shape]
    each = (6 * share / np.pi / structures) ** (1 / 3)
    for rater in range(raters):
        volume = np.zeros(shape, dtype=np.uint8)
        for number in range(structures):
            centre = (2 * number + 1) / structures - 1 if structures > 1 else 0.0
            stretch = min(1.0, 1 / structures / max(each, 1e-6)) if structures > 1 else 1.0
            radii = np.array([each / stretch**0.5, each / stretch**0.5, each * stretch])
            radii = np.minimum(radii, 0.95)
            away = sum(
                (((axis - (centre if place == 2 else 0)) / radius) ** 2).reshape(
                    [-1 if place == other else 1 for other in range(3)]
                )
                for place, (axis, radius) in enumerate(zip(axes, radii, strict=True))
            )
            coarse = generator.normal(0, 0.06, (8, 8, 8))
            ranks = [np.minimum((np.arange(n) * 8) // n, 7) for n in shape]
            volume[away + coarse[np.ix_(*ranks)] + generator.normal(0, 0.02) < 1] = number + 1
        image = nibabel.Nifti1Image(volume.transpose(2, 1, 0), np.diag([0.5, 0.5, 0.75, 1]))
        nibabel.save(image, folder / f"case_rater{rater + 1}.nii.gz")


def volumes(folder: Path, count: int) -> None:
    """Write small volumes, each with four raters' masks."""
    import nibabel

    generator = np.random.default_rng(0)
    for number in range(count):
        image = generator.integers(0, 1000, (32, 32, 8), dtype=np.int16)
        nibabel.save(nibabel.Nifti1Image(image, np.eye(4)), folder / f"case{number:04d}.nii.gz")
        for rater in range(4):
            mask = np.zeros(image.shape, dtype=np.uint8)
            mask[8 : 24 - rater, 8:24, 2:6] = 1
            nibabel.save(
                nibabel.Nifti1Image(mask, np.eye(4)), folder / f"case{number:04d}_rater{rater}.nii.gz"
            )


def smears(folder: Path, images: int, clicks: int, *, pictures: bool = False) -> None:
    """Write clicks of 24 annotators on images of 1000 x 800 pixels; one in ten is stray."""
    from PIL import Image

    generator = np.random.default_rng(0)
    each = clicks // images
    with (folder / "clicks.csv").open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["annotator", "image", "x", "y"])
        for image in range(images):
            spots = generator.uniform((20, 20), (980, 780), (max(2, each // 12), 2))
            chosen = generator.integers(0, len(spots), each)
            places = spots[chosen] + generator.normal(0, 3, (each, 2))
            stray = generator.random(each) < 0.1
            places[stray] = generator.uniform((0, 0), (1000, 800), (int(stray.sum()), 2))
            who = generator.integers(0, 24, each)
            for annotator, (x, y) in zip(who.tolist(), places.clip(0, (999, 799)).tolist(), strict=True):
                writer.writerow([f"v{annotator:02d}", f"image{image:05d}.png", f"{x:.1f}", f"{y:.1f}"])
    if pictures:
        noise = generator.integers(150, 220, (100, 125, 3), dtype=np.uint8)
        content = io.BytesIO()
        Image.fromarray(noise).resize((1000, 800)).save(content, "PNG", compress_level=1)
        for image in range(images):
            (folder / f"image{image:05d}.png").write_bytes(content.getvalue())


def votes(folder: Path, count: int, classes: int, annotators: int) -> None:
    """Write votes on tasks, five a task, by annotators of whom each is right in .5 to .95 of cases."""
    generator = np.random.default_rng(0)
    tasks = count // 5
    truth = generator.integers(0, classes, tasks)
    task = np.repeat(np.arange(tasks), 5)
    who = generator.integers(0, annotators, len(task))
    right = generator.random(len(task)) < generator.uniform(0.5, 0.95, annotators)[who]
    label = np.where(right, truth[task], generator.integers(0, classes, len(task)))
    with (folder / "votes.csv").open("w") as lines:
        lines.write("annotator,task,label\n")
        for begin in range(0, len(task), 100_000):
            rows = zip(*(one[begin : begin + 100_000].tolist() for one in (who, task, label)), strict=True)
            lines.write("".join(f"a{a},t{t},c{c}\n" for a, t, c in rows))


def comparisons(folder: Path, count: int) -> None:
    """Write comparisons of 200 items by 500 annotators, 25 of whom prefer the left side."""
    generator = np.random.default_rng(0)
    scores, bias = generator.normal(0, 1, 200), np.where(np.arange(500) < 25, 1.0, 0.0)
    who, left = generator.integers(0, 500, count), generator.integers(0, 200, count)
    right = (left + generator.integers(1, 200, count)) % 200
    chance = 1 / (1 + np.exp(-(scores[left] - scores[right] + bias[who])))
    choice = np.where(generator.random(count) < chance, "left", "right")
    with (folder / "pairs.csv").open("w") as lines:
        lines.write("annotator,left,right,choice\n")
        rows = zip(who.tolist(), left.tolist(), right.tolist(), choice.tolist(), strict=True)
        lines.writelines(f"a{a},i{one},i{other},{side}\n" for a, one, other, side in rows)


# The commands


def fuse_masks(*more: str) -> Callable[[Path, Path], Sequence[str]]:
    """Give the command that fuses a folder of masks."""
    return lambda inputs, output: [
        *RATERSCOPE, "fuse", "masks", *map(str, sorted(inputs.glob("*.nii.gz"))), *more, "-o", str(output)
    ]  # fmt: skip


def fuse_clicks(*more: str) -> Callable[[Path, Path], Sequence[str]]:
    """Give the command that fuses a table of clicks."""
    return lambda inputs, output: [
        *RATERSCOPE, "fuse", "clicks", str(inputs / "clicks.csv"), "--extent", "1000", "800", *more,
        "-o", str(output),
    ]  # fmt: skip


def fuse_table(kind: str, name: str, *more: str) -> Callable[[Path, Path], Sequence[str]]:
    """Give the command that fuses a table of labels or pairs."""
    return lambda inputs, output: [
        *RATERSCOPE, "fuse", kind, str(inputs / name), *more, "-o", str(output)
    ]  # fmt: skip


def bring(inputs: Path, output: Path) -> Sequence[str]:
    """Give the command that imports a folder into a new study."""
    output.mkdir(exist_ok=True)
    return [*RATERSCOPE, "import", str(output / "study.rscope"), str(inputs)]


ORGAN = (160, 500, 500)

COMMANDS: tuple[Command, ...] = (
    Command("masks: organ, 7 raters, 160x500x500", fuse_masks(), lambda f: organ(f, ORGAN, 7, 0.115),
            STAPLE, "SimpleITK STAPLE", 7.0),
    Command("masks: small object, 7 raters", fuse_masks(), lambda f: organ(f, ORGAN, 7, 0.009),
            STAPLE, "SimpleITK STAPLE", 7.0),
    Command("masks: 4 structures, 5 raters, 400x512x512", fuse_masks(),
            lambda f: organ(f, (400, 512, 512), 5, 0.06, 4), STAPLE, "SimpleITK STAPLE", 12.0, quick=False),
    Command("import: 400 volumes, 4 raters", bring, lambda f: volumes(f, 400), HEADERS, "nibabel reads"),
    Command("import: 2,000 volumes, 4 raters", bring, lambda f: volumes(f, 2000), HEADERS, "nibabel reads",
            30.0, quick=False),
    Command("import: 10,000 images, 1e6 clicks", bring, lambda f: smears(f, 10_000, 1_000_000, pictures=True),
            SIZES_OF_IMAGES, "Pillow and Arrow", 6.0, quick=False),
    Command("clicks: 500 images, 1 job", fuse_clicks("--jobs", "1"), lambda f: smears(f, 500, 100_000),
            HDBSCAN, "HDBSCAN", 8.0),
    Command("clicks: 500 images, 2 jobs", fuse_clicks("--jobs", "2"), lambda f: smears(f, 500, 100_000),
            HDBSCAN, "HDBSCAN", 4.5),
    Command("clicks: 1 image, 1,000 clicks", fuse_clicks(), lambda f: smears(f, 1, 1000), HDBSCAN, "HDBSCAN"),
    Command("labels: 1e6 votes, 30 classes", fuse_table("labels", "votes.csv"),
            lambda f: votes(f, 1_000_000, 30, 2000), ARROW, "Arrow copies", 4.0),
    Command("labels: 1e7 votes, 5 classes", fuse_table("labels", "votes.csv"),
            lambda f: votes(f, 10_000_000, 5, 20_000), ARROW, "Arrow copies", 9.0, quick=False),
    Command("labels: IBCC, 1e6 votes, 5 classes", fuse_table("labels", "votes.csv", "--algorithm", "ibcc"),
            lambda f: votes(f, 1_000_000, 5, 20_000), ARROW, "Arrow copies"),
    Command("pairs: 1e6 comparisons", fuse_table("pairs", "pairs.csv"), lambda f: comparisons(f, 1_000_000),
            ARROW, "Arrow copies", 3.0),
    Command("cold: masks", fuse_masks(), lambda f: organ(f, (16, 48, 48), 3, 0.1), goal=4.0, cold=True),
    Command("cold: labels", fuse_table("labels", "votes.csv"), lambda f: votes(f, 1000, 3, 20), goal=4.0,
            cold=True),
    Command("cold: pairs", fuse_table("pairs", "pairs.csv"), lambda f: comparisons(f, 1000), goal=4.0,
            cold=True),
    Command("cold: clicks", fuse_clicks(), lambda f: smears(f, 2, 400), goal=4.0, cold=True),
)  # fmt: skip

GROWTH: dict[str, tuple[tuple[int, ...], Callable[[int], Command]]] = {
    "growth: volumes imported": (
        (50, 100, 200, 400),
        lambda n: Command(f"import-{n}", bring, lambda f: volumes(f, n)),
    ),
    "growth: raters of an organ": (
        (3, 6, 12, 20),
        lambda n: Command(f"raters-{n}", fuse_masks(), lambda f: organ(f, (96, 192, 192), n, 0.115)),
    ),
    "growth: voxels of a side": (
        (96, 128, 192, 256),
        lambda n: Command(f"side-{n}", fuse_masks(), lambda f: organ(f, (n, n, n), 3, 0.115)),
    ),
    "growth: votes": (
        (125_000, 250_000, 500_000, 1_000_000),
        lambda n: Command(f"votes-{n}", fuse_table("labels", "votes.csv"), lambda f: votes(f, n, 5, n // 50)),
    ),
    "growth: images of clicks": (
        (60, 120, 240, 480),
        lambda n: Command(f"images-{n}", fuse_clicks("--jobs", "1"), lambda f: smears(f, n, 200 * n)),
    ),
}


class Bench:
    """Runs commands in a folder, in which inputs stay from run to run."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder, self.runs = folder, runs
        folder.mkdir(parents=True, exist_ok=True)
        self.start = middle([self.run([*RATERSCOPE, "--version"]) for _ in range(3)]).seconds

    def run(self, command: Sequence[str], environment: dict[str, str] | None = None) -> Figures:
        """Measure one run."""
        return measure(command, self.folder / "log.txt", environment)

    def input_of(self, command: Command) -> Path:
        """Give the folder of a row's input, made at the first use."""
        place = self.folder / "".join(c if c.isalnum() else "-" for c in command.name)
        if not (place / ".made").exists():
            shutil.rmtree(place, ignore_errors=True)
            (place / "input").mkdir(parents=True)
            maker = os.fork()  # the memory that it takes is not counted as that of the rows
            if not maker:
                command.make(place / "input")
                os._exit(0)
            if os.waitpid(maker, 0)[1]:
                raise RuntimeError(f"{command.name}: the input could not be made")
            (place / ".made").touch()
        return place / "input"

    def row(self, command: Command) -> dict[str, float | str | None]:
        """Measure a row, the peer and the floor between the command's runs."""
        inputs = self.input_of(command)
        output, other = inputs.parent / "output", inputs.parent / "peer"
        words = command.words(inputs, output)
        ours: list[Figures] = []
        peers: list[Figures] = []
        floors: list[Figures] = []
        compiled = inputs.parent / "compiled"
        if not command.cold:
            self._fresh(output)
            self.run(command.words(inputs, output))  # compiles, fills the cache of the disk
        for _ in range(1 if command.cold else self.runs):
            self._fresh(output, other, compiled)
            words = command.words(inputs, output)
            ours.append(self.run(words, {"NUMBA_CACHE_DIR": str(compiled)} if command.cold else None))
            if command.peer:
                peers.append(self.run([sys.executable, "-c", command.peer, str(inputs), str(other)]))
            floors.append(
                self.run(
                    [sys.executable, "-c", FLOOR, str(inputs), str(output), str(inputs.parent / "scratch")]
                )
            )
        self._fresh(output, other, compiled, inputs.parent / "scratch")
        mine, floor = middle(ours), middle(floors)
        peer = middle(peers) if peers else None
        return {
            "name": command.name,
            **asdict(mine),
            "peer": command.peer_name,
            "peer_seconds": peer and peer.seconds,
            "peer_memory": peer and peer.memory,
            "to_peer": peer and mine.seconds / peer.seconds,
            "floor_seconds": floor.seconds,
            "to_floor": mine.seconds / floor.seconds,
            "goal": command.goal,
        }

    def growth(self, sizes: Sequence[int], command_of: Callable[[int], Command]) -> tuple[float, list[float]]:
        """Give the exponent with which time grows, and the times."""
        seconds = []
        for size in sizes:
            command = command_of(size)
            inputs = self.input_of(command)
            output = inputs.parent / "output"
            times = []
            for _ in range(self.runs):
                self._fresh(output)
                times.append(self.run(command.words(inputs, output)).seconds)
            seconds.append(statistics.median(times))
        beyond = np.maximum(np.array(seconds) - self.start, 1e-3)
        return float(np.polyfit(np.log(sizes), np.log(beyond), 1)[0]), seconds

    @staticmethod
    def _fresh(*folders: Path) -> None:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


HEADER = (
    f"{'from file to file':44s}{'s':>8s}{'cpu s':>8s}{'GB':>6s}{'peer s':>8s}{'GB':>6s}{'ratio':>7s}"
    f"{'floor s':>9s}{'ratio':>7s}{'goal s':>8s}  peer"
)


def line(row: dict[str, float | str | None]) -> str:
    """Write a row."""

    def figure(name: str, width: int, digits: int = 2) -> str:
        value = row.get(name)
        return f"{'-':>{width}s}" if value is None else f"{value:{width}.{digits}f}"

    return (
        f"{row['name']!s:44s}{figure('seconds', 8)}{figure('processor', 8)}{figure('memory', 6)}"
        f"{figure('peer_seconds', 8)}{figure('peer_memory', 6)}{figure('to_peer', 7)}"
        f"{figure('floor_seconds', 9)}{figure('to_floor', 7, 1)}{figure('goal', 8, 1)}  {row['peer']}"
    )


def slower(rows: Sequence[dict[str, float | str | None]]) -> list[str]:
    """Name what became slower against the stored table: by the ratio to the peer, or else to the floor."""
    if not STORED.exists():
        return []
    before = {row["name"]: row for row in json.loads(STORED.read_text())["rows"]}
    found = []
    for row in rows:
        key = "to_peer" if row.get("to_peer") else "to_floor"
        old, new = before.get(row["name"], {}).get(key), row.get(key)
        if old and new and float(new) > SLOWER * float(old):
            found.append(
                f"slower: {row['name']}, {key.replace('_', ' ')} {float(old):.2f} > {float(new):.2f}"
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="rows whose name holds one of these words")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "raterscope-benchmarks")
    options = parser.parse_args()
    bench = Bench(options.folder, options.runs)
    print(f"the program starts and ends in {bench.start:.2f} s\n{HEADER}", flush=True)

    def wanted(name: str) -> bool:
        return not options.names or any(word in name for word in options.names)

    rows, exponents = [], {}
    for command in COMMANDS:
        if wanted(command.name) and (command.quick or not options.quick):
            rows.append(bench.row(command))
            print(line(rows[-1]), flush=True)
    for name, (sizes, command_of) in GROWTH.items():
        if wanted(name) and not options.quick:
            exponent, seconds = bench.growth(sizes, command_of)
            exponents[name] = exponent
            times = ", ".join(f"{size:,}: {one:.2f} s" for size, one in zip(sizes, seconds, strict=True))
            print(f"{name:44s}exponent {exponent:.2f}  ({times})", flush=True)
    worse = slower(rows) if options.compare else []
    print("\n".join(worse))
    if options.store:
        kept = {"start": bench.start, "rows": rows, "exponents": exponents}
        STORED.write_text(json.dumps(kept, indent=1) + "\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
