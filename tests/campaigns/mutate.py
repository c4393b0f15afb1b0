"""Mutated files of every reader: each is read, or refused in one sentence, within limits of time and memory.

Usage: python -m tests.campaigns.mutate [--seed N] [--seconds N] [--files N] [--reader NAME ...] [--jobs N]

Every file goes the way of ``raterscope import``: sorted by content, read, stored in a new study, images and
volumes loaded. A source of clicks that grows is looked at until nothing more comes. With RATERSCOPE_DATA set,
files of the real data are mutated too. ``--keep FOLDER`` keeps the files of every defect.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaigns.harness import (
    Limits,
    Outcome,
    Summary,
    error_outcome,
    in_workers,
    parser,
    random_of,
)
from tests.campaigns.mutations import mutated
from tests.campaigns.samples import READERS, Sample, samples_of

__all__ = ["main", "read_sample"]

EXTENT = (64.0, 64.0)
MAX_LOOKS = 50
HEAVY = 1500
"""Megabytes by which reading a mutated file may grow the process."""

_samples: dict[tuple[str, str], list[Sample]] = {}


def warm_up() -> None:
    """Load what the readers load late, before limits are set."""
    import highdicom  # noqa: F401
    import imagecodecs  # noqa: F401
    import pyarrow  # noqa: F401
    import skimage.measure  # noqa: F401

    from raterscope.app import importing  # noqa: F401


def read_sample(folder: Path, sample: Sample) -> str:
    """Read files as the program does; gives "read"."""
    from raterscope.app import importing
    from raterscope.app.formats.growing_files import look
    from raterscope.app.formats.image_heads import load_overview
    from raterscope.app.formats.volumes import load_volume
    from raterscope.app.kinds.masks.attribution import MaskOptions
    from raterscope.app.study import Study

    paths = [folder / name for name in sample.read]
    if sample.grows:
        position = None
        for _ in range(MAX_LOOKS):
            growth = look(paths[0], position, None, ended=True)
            position = growth.position
            if not growth.more:
                return "read"
        return "read"
    mappings = dict.fromkeys(paths, sample.columns) if sample.columns else None
    reading = MaskOptions("anna", None, "liver")
    readings = importing.read_files(paths, kind=sample.kind, mappings=mappings, reading=reading)
    for image in readings.images:
        load_overview(image.path, 256)
    for volume in readings.volumes:
        load_volume(volume)
    with Study.create(folder / "campaign.rscope") as study:
        importing.store(readings, study, extent=EXTENT, may_resample=True)
    return "read"


def try_case(reader: str, seed: int, case: int, data: str, keep: str) -> Outcome:
    """Mutate the files of one case and read them."""
    random = random_of("mutate", reader, seed, case)
    if (reader, data) not in _samples:
        _samples[reader, data] = samples_of(reader, Path(data) if data else None)
    sample = random.choice(_samples[reader, data])
    files = dict(sample.files)
    for name in random.sample(sample.targets, random.choice((1, 1, min(2, len(sample.targets))))):
        files[name] = mutated(files[name], random, random.choice(list(files.values())))
    with TemporaryDirectory(prefix="mutate") as directory:
        folder = Path(directory)
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        outcome = _judged(reader, folder, sample)
        if outcome.defect and keep:
            kept = Path(keep) / f"{reader}-{seed}-{case}"
            kept.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (kept / Path(name).name).write_bytes(content)
    return outcome


def _judged(reader: str, folder: Path, sample: Sample) -> Outcome:
    names = [*(Path(name).name for name in sample.files), folder.name, "campaign.rscope"]
    before = _peak()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            column = read_sample(folder, sample)
    except Exception as error:
        return error_outcome(reader, error, names)
    grown = _peak() - before
    heavy = f"reading it took {grown:.0f} MB" if grown > HEAVY else ""
    return Outcome(reader, column, heavy)


def _peak() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, and return the exit status."""
    options_parser = parser("mutate", __doc__, seconds=600)
    options_parser.add_argument(
        "--files", type=int, default=10_000, help="most files a reader (default: %(default)s)"
    )
    options_parser.add_argument(
        "--reader", action="append", choices=sorted(READERS), help="this reader alone; may be repeated"
    )
    options_parser.add_argument("--jobs", type=int, default=1, help="worker processes (default: %(default)s)")
    options_parser.add_argument("--made", action="store_true", help="leave the real data out")
    options_parser.add_argument("--keep", default="", help="keep the files of every defect in this folder")
    options = options_parser.parse_args(arguments)
    data = "" if options.made else os.environ.get("RATERSCOPE_DATA", "")
    readers = options.reader or list(READERS)
    summary = Summary("Mutated files", options.seed)
    end = time.monotonic() + options.seconds

    def tasks() -> Iterator[tuple[int, str, tuple[object, ...]]]:
        numbers = range(options.files) if options.case is None else [options.case]
        for done, number in enumerate(numbers):
            for reader in readers:
                if done and time.monotonic() > end:
                    return
                yield number, reader, (reader, options.seed, number, data, options.keep)

    in_workers(try_case, tasks(), summary, Limits(), options.jobs)
    return summary.end()


if __name__ == "__main__":
    sys.exit(main())
