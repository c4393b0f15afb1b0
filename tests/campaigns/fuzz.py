"""Coverage-guided fuzzing of the parsers that are our own: a result, or one sentence, whatever the bytes.

Usage: python -m tests.campaigns.fuzz [--reader NAME ...] [--seconds N] [--seed N]

It needs atheris (``pip install '.[fuzz]'``) and says so where that is not installed. The time is shared among
the readers. Each is fuzzed in a process of its own, which starts from the samples of `samples`; a defect does
not end it, and the bytes that caused it are kept in ``--keep FOLDER``.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.campaigns.harness import Summary, error_outcome, parser
from tests.campaigns.samples import samples_of

__all__ = ["main"]

MEMORY, SECONDS_EACH, LONGEST = 3000, 60, 20_000
"""Limits of one input: megabytes, seconds, and its length in bytes."""

Parse = Callable[[Path, bytes], object]


def _table(path: Path, _: bytes) -> object:
    from raterscope.app.formats import read

    return read(path, "clicks" if path.stem != "truth" else "truth")


def _labels(path: Path, _: bytes) -> object:
    from raterscope.app.formats.labels import read_labels

    return read_labels(path, annotator="anna")


def _pairs(path: Path, _: bytes) -> object:
    from raterscope.app.formats.pairs import read_pairs

    return read_pairs(path)


def _points(path: Path, _: bytes) -> object:
    from raterscope.app.formats.points import has_points, read_points

    return read_points(path) if has_points(path) else None


def _masks(path: Path, _: bytes) -> object:
    from raterscope.app.formats.masks import read_masks

    return read_masks(path, annotator="anna")


def _voxels(path: Path, _: bytes) -> object:
    from raterscope.app.formats.volumes import voxel_head

    return voxel_head(path)


def _growing(path: Path, _: bytes) -> object:
    from raterscope.app.formats.growing_files import look

    return look(path, None, None, ended=True)


def _run_lengths(_: Path, data: bytes) -> object:
    """Decode run lengths of each kind, of a size that the first bytes claim."""
    from raterscope.app.formats.masks import shapes

    size = (1 + data[0] % 40) * (1 + data[1] % 40) if len(data) > 1 else 1
    text, counts = data[2:].decode("latin-1"), list(data[2:])
    for act in (
        lambda: shapes.read_runs(counts, size),
        lambda: shapes.read_runs(shapes.decode_coco_counts(text), size),
        lambda: shapes.decode_studio_runs(counts, size),
    ):
        try:
            starts, ends = act()
        except ValueError as error:  # the readers say it with the file's name
            if not str(error).strip():
                raise AssertionError("an error without words") from error
            continue
        if len(starts) and not (starts[0] >= 0 and ends[-1] <= size and (starts < ends).all()):
            raise AssertionError(f"runs beyond {size} pixels")
    return None


def _outlines(_: Path, data: bytes) -> object:
    """Fill polygons whose corners are JSON."""
    from raterscope.app.formats.masks import shapes
    from raterscope.app.formats.untrusted import decode_json

    try:
        return shapes.fill([shapes.parse_points(decode_json(data))], (30, 40))
    except ValueError:
        return None


TARGETS: dict[str, tuple[Parse, str]] = {
    "run-lengths": (_run_lengths, "a.rle"), "polygons": (_outlines, "a.json"),
    "click-tables": (_table, "clicks.csv"), "truth-tables": (_table, "truth.csv"),
    "label-tables": (_labels, "labels.csv"), "pair-tables": (_pairs, "pairs.csv"),
    "zooniverse": (_table, "classifications.csv"), "label-files": (_labels, "labels.json"),
    "growing": (_growing, "clicks.csv"),
    "nrrd": (_voxels, "a.nrrd"), "metaimage": (_voxels, "a.mha"), "lidc": (_masks, "a.xml"),
    "coco-masks": (_masks, "a.json"), "cvat-masks": (_masks, "a.xml"),
    "label-studio-masks": (_masks, "a.json"), "labelme-masks": (_masks, "a.json"),
    "points-geojson": (_points, "a.geojson"), "points-napari": (_points, "a.csv"),
}  # fmt: skip
"""The function that parses, and the name that it reads the bytes by."""

CORPUS: dict[str, tuple[bytes, ...]] = {
    "run-lengths": (b"\x03\x03\x04\x05", b"\x0a\x14_PP0d5", bytes([3, 4]) + b"\0\0\0\x28\x3a\x00\xff"),
    "polygons": (b"[1,1,4,1,4,3]", b"[[1,1],[4,1.5],[4,3]]"),
}


CHILD = """
import sys
import atheris
with atheris.instrument_imports(include=["raterscope.app.formats"]):
    from tests.campaigns import fuzz
    fuzz.read_corpus(*sys.argv[1:3])  # what is loaded late is instrumented too
fuzz.fuzz_here(*sys.argv[1:])
"""


def read_corpus(reader: str, corpus: str) -> None:
    """Parse each sample once."""
    parse, name = TARGETS[reader]
    with TemporaryDirectory() as folder:
        for first in sorted(Path(corpus).iterdir()):
            _try(parse, Path(folder) / name, first.read_bytes(), reader)


def fuzz_here(reader: str, corpus: str, seconds: str, seed: str, out: str) -> None:
    """Fuzz in this process, which ends with it; defects are written to a file, a line of JSON each."""
    import atheris

    parse, name = TARGETS[reader]
    visited: set[str] = set()
    with TemporaryDirectory() as folder:
        path = Path(folder) / name

        def once(data: bytes) -> None:
            words = _try(parse, path, data, reader)
            if words and words not in visited:
                visited.add(words)
                with Path(out).open("a") as file:
                    file.write(json.dumps([words, data.hex()]) + "\n")

        limits = [f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={LONGEST}"]
        limits += [f"-rss_limit_mb={MEMORY}", f"-timeout={SECONDS_EACH}"]
        atheris.Setup([sys.argv[0], *limits, corpus], once)
        atheris.Fuzz()


def _try(parse: Parse, path: Path, data: bytes, reader: str) -> str:
    path.write_bytes(data)
    try:
        parse(path, data)
    except Exception as error:
        return error_outcome(reader, error, [path.name]).defect
    return ""


def _fuzz_reader(reader: str, options: Any, seconds: int, summary: Summary) -> None:
    with TemporaryDirectory() as folder:
        corpus, out = Path(folder) / "corpus", Path(folder) / "defects"
        corpus.mkdir()
        contents = CORPUS.get(reader) or [
            sample.files[name] for sample in samples_of(reader) for name in sample.targets
        ]
        for number, content in enumerate(contents):
            (corpus / str(number)).write_bytes(content)
        command = [
            sys.executable,
            "-c",
            CHILD,
            reader,
            str(corpus),
            str(seconds),
            str(options.seed),
            str(out),
        ]
        ended = subprocess.run(command, capture_output=True)
        log = ended.stderr.decode(errors="replace")
        counts = summary.counts[reader]
        counts["inputs"] = int((re.findall(r"Done (\d+) runs", log) or re.findall(r"#(\d+)", log) or [0])[-1])
        counts["coverage"] = int((re.findall(r"cov: (\d+)", log) or [0])[-1])
        for line in out.read_text().splitlines() if out.exists() else ():
            words, data = json.loads(line)
            summary.fail(reader, 0, f"{words} ({len(data) // 2} bytes)")
            if options.keep:
                Path(options.keep).mkdir(parents=True, exist_ok=True)
                number = len(list(Path(options.keep).iterdir()))
                (Path(options.keep) / f"{reader}-{number}").write_bytes(bytes.fromhex(data))
        if ended.returncode:
            last = " ".join(log.split()[-40:])
            summary.fail(reader, 0, f"the process ended with status {ended.returncode}: {last}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options_parser = parser("fuzz", __doc__, seconds=300)
    options_parser.add_argument(
        "--reader", action="append", choices=sorted(TARGETS), help="this one alone; repeatable"
    )
    options_parser.add_argument("--keep", default="", help="keep the bytes of every defect in this folder")
    options = options_parser.parse_args(arguments)
    if importlib.util.find_spec("atheris") is None:
        print("Skipped: atheris is not installed; pip install '.[fuzz]' installs it.")
        return 0
    readers = options.reader or list(TARGETS)
    summary = Summary("Fuzzed parsers", options.seed)
    for reader in readers:
        _fuzz_reader(reader, options, max(int(options.seconds / len(readers)), 1), summary)
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
