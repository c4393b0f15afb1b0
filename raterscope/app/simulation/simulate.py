"""Simulation of a set-up into a new folder: data and truth, in the formats that the program reads."""

from __future__ import annotations

import json
import shlex
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from raterscope import __version__
from raterscope.algorithms.labels.data import Labels
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import RefusedError, Watch, part, repeating, silent
from raterscope.algorithms.settings import Settings
from raterscope.algorithms.simulation.click_crowds import (
    JOINING,
    STREAMS,
    CrowdOfClicks,
    CrowdOfVotes,
    decide_again,
    overlapping_crowd,
    separated_crowd,
    voting_crowd,
)
from raterscope.algorithms.simulation.label_crowds import CHANGES, scoring_crowd, simulate_labels
from raterscope.algorithms.simulation.mask_crowds import gather_raters, simulate_case
from raterscope.algorithms.simulation.pair_crowds import study_crowd
from raterscope.app.errors import InputError, system_reason
from raterscope.app.formats.masks.export import write_array
from raterscope.app.formats.output_files import draft_for
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.sample_files import BEGUN, write_rows
from raterscope.app.simulation import curation
from raterscope.app.simulation.curation import numbered_names
from raterscope.app.simulation.setups import (
    BiasSettings,
    CrowdSettings,
    DecisionStreamSettings,
    OverlappingSettings,
    ProstateSettings,
    SeparatedSettings,
    Setup,
    SimulatedFiles,
    VotingSettings,
    check_size,
)
from raterscope.app.study.labels import set_scheme
from raterscope.app.study.new_study import new_study
from raterscope.app.study.records import Scheme

ABSENT, PRESENT = "absent", "present"
JOINED = 50
"""Final number of annotators in section 5.2 of the thesis."""
_OVERLAPPING_TOLERANCE = 0.3
"""Matching radius of centres, in the paper's units; the paper does not state it."""
_SEPARATED_TOLERANCE = 50.0
"""Matching radius of the thesis's set-up, in pixels; the thesis does not state it either."""


def _overlapping(settings: OverlappingSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    watch(0.0, "drawing clicks")
    crowd = overlapping_crowd(settings.annotators, settings.seed, settings.fewest, settings.most)
    return _write_clicks(
        crowd, "overlapping", settings.scale, _OVERLAPPING_TOLERANCE * settings.scale, folder, watch
    )


def _separated(settings: SeparatedSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    watch(0.0, "drawing clicks")
    crowd = separated_crowd(
        settings.annotators, settings.seed, settings.components, settings.side, settings.spread,
        settings.separation, settings.fewest, settings.most,
    )  # fmt: skip
    return _write_clicks(crowd, "separated", 1.0, _SEPARATED_TOLERANCE, folder, watch)


def _write_clicks(
    crowd: CrowdOfClicks, image: str, scale: float, radius: float, folder: Path, watch: Watch
) -> SimulatedFiles:
    """Write a crowd in pixels from the upper left corner of the image."""
    left, top, right, bottom = crowd.clicks.extent
    size = f"{(right - left) * scale:.6g}", f"{(bottom - top) * scale:.6g}"
    corner, names = np.array([left, top]), numbered_names("a", len(crowd.clicks.annotators))
    data, truth = folder / "clicks.csv", folder / "truth.csv"
    beside = folder / "true_annotators.csv", folder / "true_components.csv", folder / "true_clicks.csv"
    watch(0.3, "writing clicks")
    points = (crowd.clicks.points - corner) * scale
    annotators = crowd.clicks.annotator.tolist()
    write_rows(
        data,
        ("annotator", "image", "x", "y", "width", "height"),
        (
            (names[index], image, *_coordinates(point), *size)
            for index, point in zip(annotators, points, strict=True)
        ),
    )
    watch(0.7, "writing the truth")
    mean, covariance = (crowd.mean - corner) * scale, crowd.covariance * scale**2
    write_rows(truth, ("image", "x", "y"), ((image, *_coordinates(point)) for point in mean))
    write_rows(
        beside[0], ("annotator", "reliability"), zip(names, map(_number, crowd.reliability), strict=True)
    )
    write_rows(
        beside[1],
        ("image", "component", "x", "y", "sxx", "sxy", "syy", "weight"),
        (
            (image, str(m + 1), *_coordinates(mean[m]), *map(_number, covariance[m][np.triu_indices(2)]),
             _number(crowd.weight[m]))
            for m in range(len(mean))
        ),
    )  # fmt: skip
    write_rows(
        beside[2],
        ("row", "annotator", "component"),
        (
            (str(row), names[index], str(m + 1) if m >= 0 else "")
            for row, (index, m) in enumerate(zip(annotators, crowd.component.tolist(), strict=True), start=1)
        ),
    )
    return SimulatedFiles((data,), (truth,), beside, radius)


def _voting(settings: VotingSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    watch(0.0, "drawing votes")
    crowd = voting_crowd(
        settings.annotators, settings.clusters, settings.seed, settings.sensitivity, settings.specificity,
        settings.prevalence, settings.concentration,
    )  # fmt: skip
    return _write_votes(crowd, crowd.votes.marked[None], None, folder, watch)


def _streams(settings: DecisionStreamSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    watch(0.0, "drawing decisions")
    joins = settings.scenario.startswith("joining-")
    if joins:
        scenario = JOINING[settings.scenario.removeprefix("joining-")]
        annotators, (clusters, *rates) = JOINED, scenario
    else:
        annotators, clusters, *rates = STREAMS[settings.scenario]
    crowd = voting_crowd(
        settings.annotators or annotators, settings.clusters or clusters, settings.seed,
        rates[0] if settings.sensitivity is None else settings.sensitivity,
        rates[1] if settings.specificity is None else settings.specificity, settings.prevalence,
    )  # fmt: skip
    if joins:
        return _write_votes(crowd, crowd.votes.marked[None], np.arange(len(crowd.sensitivity)), folder, watch)
    return _write_votes(crowd, decide_again(crowd, settings.times, settings.seed), None, folder, watch)


def _write_votes(crowd: CrowdOfVotes, marked: Any, joined: Any, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write (T, R, M) decisions in order of time: one second per step, or per joining annotator."""
    times, annotators, clusters = marked.shape
    data, truth, beside = folder / "labels.csv", folder / "truth.csv", folder / "true_annotators.csv"
    names = numbered_names("a", annotators)
    tasks = numbered_names("cluster ", clusters)
    timed = times > 1 or joined is not None

    def rows() -> Iterable[Sequence[str]]:
        for t in range(times):
            watch(0.2 + 0.7 * t / times, "writing votes")
            for r in range(annotators):
                time = [str(joined[r] + 1 if joined is not None else t + 1)] if timed else []
                for m in range(clusters):
                    yield (names[r], tasks[m], PRESENT if marked[t, r, m] else ABSENT, *time)

    write_rows(data, ("annotator", "task", "label", *(["time"] if timed else [])), rows())
    write_rows(
        truth, ("task", "label"), zip(tasks, np.where(crowd.present, PRESENT, ABSENT).tolist(), strict=True)
    )
    rates = zip(names, map(_number, crowd.sensitivity), map(_number, crowd.specificity), strict=True)
    write_rows(beside, ("annotator", "sensitivity", "specificity"), rates)
    return SimulatedFiles((data,), (truth,), (beside,))


def _prostate(settings: ProstateSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    shape = settings.slices, settings.rows, settings.columns
    spacing = settings.thickness, settings.pixel, settings.pixel
    raters = gather_raters(settings.raters, settings.seed, wider=settings.wider)
    case = simulate_case(
        settings.seed, shape, spacing, raters, subject="prostate", watch=part(watch, 0.0, 0.7)
    )
    if not case.truth.any():
        raise InputError("the volume is too small for a prostate; expected more slices, rows or columns")
    grid = Grid.plain(shape, spacing, calibrated=True)
    names = [rater.name.lower() for rater in case.raters]  # as they are read from the files' names
    arrays = {"prostate": case.volume}
    arrays |= {
        f"prostate_{name.replace(' ', '_')}": mask.astype(np.uint8)
        for name, mask in zip(names, case.masks, strict=True)
    }
    arrays["prostate_truth"] = case.truth.astype(np.uint8)
    paths = []
    for index, (name, values) in enumerate(arrays.items()):
        report, check = repeating(watch)
        report(0.7 + 0.3 * index / len(arrays), f"writing {name}.nii.gz")
        paths.append(folder / f"{name}.nii.gz")
        write_array(paths[-1], values, grid, check=check)
    beside = folder / "true_annotators.csv"
    write_rows(
        beside,
        ("annotator", "bias", "scatter", "leaks", "second_school"),
        (
            (name, _number(rater.bias), _number(rater.scatter), _yes(rater.leaks), _yes(rater.wider))
            for name, rater in zip(names, case.raters, strict=True)
        ),
    )
    return SimulatedFiles(tuple(paths[:-1]), (paths[-1],), (beside,), structure="prostate")


def _crowd(settings: CrowdSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    watch(0.0, "drawing votes")
    crowd = simulate_labels(
        scoring_crowd(
            settings.tasks, settings.annotators, fewest=settings.fewest, most=settings.tasks,
            tail=settings.tail, shares=(1 - settings.prevalence, settings.prevalence),
            changing=settings.changing, hard=settings.hard, cohorts=min(6, settings.tasks),
            prefix="candidate", classes=("not supernova", "supernova"),
        ),
        settings.seed,
    )  # fmt: skip
    labels = crowd.labels
    data, truth = folder / "labels.csv", folder / "truth.csv"
    beside = folder / "true_annotators.csv", folder / "true_confusion.csv"
    write_rows(data, ("annotator", "task", "label", "time"), _label_rows(labels, part(watch, 0.3, 0.8)))
    watch(0.8, "writing the truth")
    classes = (labels.classes[index] for index in crowd.truth.tolist())
    write_rows(truth, ("task", "label"), zip(labels.tasks, classes, strict=True))
    counts = np.bincount(labels.annotator, minlength=len(labels.annotators)).tolist()
    write_rows(
        beside[0],
        ("annotator", "votes", "community", "change", "first_changed_vote"),
        (
            (name, str(votes), crowd.behaviours[group], CHANGES[change], str(moment + 1) if change else "")
            for name, votes, group, change, moment in zip(
                labels.annotators, counts, crowd.community.tolist(), crowd.change.tolist(),
                crowd.moment.tolist(), strict=True,
            )
        ),
    )  # fmt: skip
    write_rows(
        beside[1],
        ("annotator", "when", "true", "given", "probability"),
        (
            (
                labels.annotators[k],
                when,
                labels.classes[j],
                labels.outputs[output],
                _number(rows[k, j, output]),
            )
            for k in range(len(labels.annotators))
            for when, rows in (("first", crowd.early), ("last", crowd.late))
            for j in range(len(labels.classes))
            for output in range(len(labels.outputs))
        ),
    )
    assert labels.meaning is not None
    meanings = (labels.classes[index] for index in labels.meaning.tolist())
    class_of = dict(zip(labels.outputs, meanings, strict=True))
    return SimulatedFiles((data,), (truth,), beside, classes=class_of)


def _label_rows(labels: Labels, watch: Watch) -> Iterable[Sequence[str]]:
    assert labels.time is not None
    votes = zip(
        labels.annotator.tolist(), labels.task.tolist(), labels.label.tolist(), labels.time.tolist(),
        strict=True,
    )  # fmt: skip
    for number, (annotator, task, label, when) in enumerate(votes):
        if number % 10_000 == 0:
            watch(number / len(labels.task), "writing votes")
        yield (labels.annotators[annotator], labels.tasks[task], labels.outputs[label], f"{BEGUN + when:.1f}")


def _bias(settings: BiasSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    watch(0.0, "drawing comparisons")
    crowd = study_crowd(
        settings.p1, settings.p2, settings.seed, settings.items, settings.good, settings.biased
    )
    pairs = crowd.pairs
    annotators, items = numbered_names("a", len(pairs.annotators)), numbered_names("item ", len(pairs.items))
    data, truth, beside = folder / "pairs.csv", folder / "true_ranking.csv", folder / "true_annotators.csv"
    compared = zip(
        pairs.annotator.tolist(), pairs.left.tolist(), pairs.right.tolist(), pairs.choice.tolist(),
        strict=True,
    )  # fmt: skip
    watch(0.4, "writing comparisons")
    write_rows(
        data,
        ("annotator", "left", "right", "choice"),
        (
            (annotators[annotator], items[a], items[b], "left" if choice > 0 else "right")
            for annotator, a, b, choice in compared
        ),
    )
    watch(0.9, "writing the truth")
    order = np.argsort(-crowd.score, kind="stable").tolist()
    write_rows(
        truth,
        ("item", "rank", "score"),
        ((items[item], str(rank), _number(crowd.score[item])) for rank, item in enumerate(order, start=1)),
    )
    sides = {1: "left", -1: "right", 0: ""}
    write_rows(
        beside,
        ("annotator", "biased", "side"),
        (
            (name, _yes(side != 0), sides[side])
            for name, side in zip(annotators, crowd.side.tolist(), strict=True)
        ),
    )
    return SimulatedFiles((data,), (truth,), (beside,))


def _coordinates(point: Any) -> tuple[str, str]:
    return f"{point[0]:.4f}", f"{point[1]:.4f}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


WRITERS: Mapping[str, Callable[[Any, Path, Watch], SimulatedFiles]] = {
    "overlapping": _overlapping,
    "separated": _separated,
    "voting": _voting,
    "streams": _streams,
    "prostate": _prostate,
    "crowd": _crowd,
    "bias": _bias,
    "texts": curation.draw_texts,
    "species": curation.draw_species,
    "large-crowd": curation.draw_large_crowd,
    "copiers": curation.draw_copiers,
    "grades": curation.draw_grades,
    "questions": curation.draw_questions,
    "judges": curation.draw_judges,
}
"""Functions that draw each set-up and write it into a folder."""


RECORD = "simulation.json"
_README = "README.txt"
_TEXT = """\
Simulated by Raterscope {version}: {title}. Nothing here comes from a person.
{summary}

{parameters}

{files}
In this folder:

{commands}
"""


def check_folder(folder: Path) -> None:
    """Refuse a folder that is not empty, and a file."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() or folder.is_symlink():
        problem = "is not empty" if folder.is_dir() else "is a file"
        raise InputError(f"{problem}; expected a new or empty folder, nothing is overwritten", file=folder)


def simulate(setup: Setup, settings: Settings, folder: Path, watch: Watch = silent) -> SimulatedFiles:
    """Draw a set-up and write it into a folder that is new or empty; return the files.

    `settings`: settings of the set-up's class.
    `folder`: appears when all files are written; after a failure or `Cancelled` nothing is left.
    Raises `InputError` if the folder cannot be used, the simulation would be too large, or parameters
        contradict each other.
    """
    check_size(setup, settings)
    check_folder(folder)
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        draft = draft_for(folder.absolute())
        draft.mkdir()
    except OSError as error:
        raise InputError(f"cannot be created: {system_reason(error)}", file=folder) from error
    try:
        try:
            files = WRITERS[setup.name](settings, draft, part(watch, 0.0, 0.95))
        except RefusedError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from error
        _describe(setup, settings, files, draft)
        watch(0.95, "finishing")
        check_folder(folder)  # it may have been filled meanwhile
        if folder.is_dir():
            folder.rmdir()
        draft.rename(folder)
    except OSError as error:
        raise InputError(f"cannot be written: {system_reason(error)}", file=folder) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return _moved(files, folder)


def study_in(setup: Setup, files: SimulatedFiles, watch: Watch = silent) -> Path:
    """Import simulated data with its truth into a study in the same folder; return the study's path."""
    path = files.data[0].parent / f"{setup.name}.rscope"
    reading = MaskOptions(structure=files.structure)
    readings = read_files([*files.data, *files.truth], reading=reading, watch=part(watch, 0.0, 0.5))
    with new_study(path) as study:
        store(readings, study, part(watch, 0.5, 0.95))
        if files.radius is not None:
            study.settings.set_matching_radius(files.radius)
        if files.classes:
            outputs = tuple(files.classes)
            classes = tuple(dict.fromkeys(files.classes.values()))
            meaning = tuple(classes.index(label) for label in files.classes.values())
            for question in study.questions():
                set_scheme(study, question.id, Scheme(outputs, classes, meaning))
    return path


def commands_in_words(setup: Setup, files: SimulatedFiles, folder: Path) -> list[str]:
    """Return the commands that fuse the simulated data, compare them with the truth, and make a study."""

    def at(name: str) -> str:
        return shlex.quote(str(folder / name))

    def all_of(pattern: str) -> str:
        """Quote a folder, but not the pattern that the shell expands in it."""
        return f"{shlex.quote(str(folder))}/{pattern}" if folder != Path() else pattern

    fuse = ["raterscope fuse", setup.kind]
    if files.structure is not None:
        fuse += [all_of("prostate_reader_*.nii.gz"), "--image", at(files.data[0].name)]
        fuse += [f"--structure {files.structure}"]
    else:
        fuse += [at(path.name) for path in files.data]
    fuse += [f"--truth {at(path.name)}" for path in files.truth]
    if files.radius is not None:
        fuse.append(f"--radius {files.radius:g}")
    if files.classes:
        fuse.append("--outputs=" + ",".join(files.classes))
        fuse.append("--classes " + shlex.quote(",".join(dict.fromkeys(files.classes.values()))))
        meanings = (shlex.quote(f"{path}={label}") for path, label in files.classes.items())
        fuse.append("--stands " + " ".join(meanings))
    fuse.append(f"-o {at('fused')}")
    inputs = " ".join(at(path.name) for path in (*files.data, *files.truth))
    if files.structure is not None:
        inputs = f"{all_of('prostate*.nii.gz')} --structure {files.structure}"
    return [" ".join(fuse), f"raterscope import {at(f'{setup.name}.rscope')} {inputs}"]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _describe(setup: Setup, settings: Settings, drawn: SimulatedFiles, folder: Path) -> None:
    """Describe the simulation in README.txt and a JSON record."""
    record: dict[str, Any] = {
        "simulated": True,
        "setup": setup.name,
        "kind": setup.kind,
        "parameters": settings.as_dict(),
        "raterscope": __version__,
        "data": [path.name for path in drawn.data],
        "truth": [path.name for path in drawn.truth],
        "also_true": [path.name for path in drawn.other_truth],
    }
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    text = _TEXT.format(
        version=__version__, title=setup.title.lower(), summary=_wrapped(setup.summary),
        parameters=_wrapped(f"Parameters: {settings.in_words()}."),
        files="".join(
            f"{words:<14}{', '.join(path.name for path in files)}\n"
            for words, files in (
                ("data", drawn.data), ("truth", drawn.truth), ("also true", drawn.other_truth),
            )
            if files
        ),
        commands="\n".join(commands_in_words(setup, drawn, Path())),
    )  # fmt: skip
    (folder / _README).write_text(text, encoding="utf-8")


def _moved(files: SimulatedFiles, folder: Path) -> SimulatedFiles:
    def here(paths: Sequence[Path]) -> tuple[Path, ...]:
        return tuple(folder / path.name for path in paths)

    return replace(files, data=here(files.data), truth=here(files.truth), other_truth=here(files.other_truth))
