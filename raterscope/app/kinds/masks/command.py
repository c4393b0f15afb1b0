"""`raterscope fuse masks`: fuse files of masks into a folder of results, without a study."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np

from raterscope.algorithms.annotators.similarity import CaseAgreement, cluster_raters
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.data import Masks
from raterscope.algorithms.masks.distance import occupied
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.progress import Watch, part, silent
from raterscope.app.ambiguous_files import TRUTH_WORD
from raterscope.app.command_line.output import (
    LISTED,
    ProgressLine,
    files_and_digests,
    folders_of,
    make_folder,
    print_files,
    print_results,
    raise_failures,
    write_in_folder,
)
from raterscope.app.command_line.selection import answered_by_options
from raterscope.app.errors import InputError, SkippedFiles, plain, refuse_unknown
from raterscope.app.formats.image_heads import read_image
from raterscope.app.formats.records import MaskTable, VolumeFile
from raterscope.app.formats.volumes.resampling import explain_irregularity
from raterscope.app.import_candidates import ImportCandidates, sort_files
from raterscope.app.kinds.kind import Summary
from raterscope.app.kinds.masks.annotators import (
    CONSENSUS,
    DICE,
    agreements_of_results,
    clusters_in_words,
    follow_consensuses,
    write_clusters,
)
from raterscope.app.kinds.masks.attribution import MaskOptions, assign_raters, explain_derived
from raterscope.app.kinds.masks.case_output import CaseOutput, run_record, write_case
from raterscope.app.kinds.masks.imports import (
    Placement,
    explain_change_of_grid,
    list_sites,
    place_masks,
    prepare_mask,
    read_mask_files,
)
from raterscope.app.kinds.masks.methods import compare_cases, methods_in_words, methods_plans, write_methods
from raterscope.app.kinds.masks.runs import (
    Answer,
    Case,
    Inputs,
    fuse_case,
    fuse_inputs,
    fuse_together,
    with_programs,
)
from raterscope.app.study import Study
from raterscope.app.study.masks import record_of
from raterscope.app.study.records import MaskRecord
from raterscope.text import counted

Records = dict[str, dict[str, MaskRecord]]


def fuse_masks(options: argparse.Namespace) -> int:
    """Fuse files of masks and write the results, as the options of the command line state."""
    texts = dict(options.settings)
    plan = MaskPlan.make(options.algorithm, texts)
    plans = None if options.compare is None else methods_plans(options.compare or tuple(FUSERS), texts)
    with ProgressLine(sys.stderr) as watch:
        with _compiler_loading(), answered_by_options():
            placement, tables, notices = _read(options, part(watch, 0.0, 0.2))
        cases, truths, case_notices = _cases(placement)
        _refuse_irregular(cases, may_resample=options.resample)
        weights = dict(options.weights)
        raters = (name for case in cases.values() for records in case.records.values() for name in records)
        refuse_unknown(weights, raters, "weigh")
        cases = {name: replace(case, weights=weights) for name, case in cases.items()}
        cases = with_programs(cases, options.programs)
        if options.programs and options.together:
            raise InputError("--program cannot be used with --together; fuse each structure separately")
        make_folder(options.output)
        inputs = Inputs(
            dict.fromkeys(cases, 0), cases, weights=weights, programs=tuple(sorted(set(options.programs)))
        )
        fuse_each = fuse_together if options.together else fuse_case
        rest = 0.5 if plans else 0.9
        fused = 0.7 * rest if options.cluster_raters and plan.algorithm != "mixture" else rest
        answer = fuse_inputs(inputs, plan, part(watch, 0.2, fused), fuse_each=fuse_each)
        clusters = _clusters(answer, part(watch, fused, rest), requested=options.cluster_raters)
        methods = None if plans is None else compare_cases(inputs, plans, part(watch, rest, 0.9))
        last = part(watch, 0.9, 1.0)
        saved = write_in_folder(
            lambda folder: [
                *_write(folder, answer, truths, tables, last, together=options.together, plans=plans or ()),
                *(write_clusters(folder, clusters) if clusters else ()),
                *(write_methods(folder, methods) if methods else ()),
            ],
            options.output,
        )
    lines = list(summary_of(answer))
    if clusters.get(CONSENSUS):
        lines.append(f"raters over cases: {clusters_in_words(cluster_raters(clusters[CONSENSUS]))}")
    lines += [] if methods is None else methods_in_words(methods)
    problems = () if methods is None else methods.problems
    print_results(dict.fromkeys([*notices, *case_notices, *_notices(answer), *problems]), lines)
    print_files(saved.answer, saved.path)
    saved.check_path("All results are in")
    raise_failures(answer.outcomes)
    return 0


@contextmanager
def _compiler_loading() -> Iterator[None]:
    """Load the compiler in another thread while files are read: it takes half a second."""
    tiny = Masks(np.ones((1, 1, 1, 1), dtype=np.bool_), ("",))
    thread = Thread(target=occupied, args=(tiny,))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _clusters(answer: Answer, watch: Watch, *, requested: bool) -> dict[str, list[CaseAgreement]]:
    """Cluster raters over cases, on request or if the mixture was fitted to several cases."""
    results = list(answer.fusions.values())
    by_consensus = agreements_of_results(results, CONSENSUS)
    if not requested and (len(results) < 2 or not by_consensus):
        return {}
    if not by_consensus:
        by_consensus = follow_consensuses(answer.inputs, watch)
    return {DICE: agreements_of_results(results, DICE), CONSENSUS: by_consensus}


def summarise(answer: Answer, _study: Study, _options: argparse.Namespace, _watch: Watch) -> Summary:
    """Describe a run over a study; see `Functions.summarise`."""
    notices = list(dict.fromkeys(_notices(answer)))
    if len(notices) > LISTED:
        notices[LISTED:] = [f"and {len(notices) - LISTED:,} more notices; the report has all"]
    return Summary(notices, summary_of(answer))


def summary_of(answer: Answer) -> Iterator[str]:
    """Summarise the results in a line or two."""
    cases = answer.inputs.given.values()
    raters = {name for case in cases for records in case.records.values() for name in records}
    count = sum(len(records) for case in cases for records in case.records.values())
    yield (
        f"{counted(count, 'mask')} by {counted(len(raters), 'annotator')} on {counted(len(cases), 'image')}, "
        f"fused by {FUSERS[answer.plan.algorithm].title} in {answer.seconds:.1f} s"
    )
    results = list(answer.fusions.items())
    every = [report.programs for _, result in results for report in result.reports]
    weights = [programs for programs in every if programs is not None]
    if weights:
        names = dict.fromkeys(name for programs in weights for name in programs.names)
        used = "combined with the consensus" if any(w.used for w in weights) else "without effect"
        yield f"{counted(len(names), 'program')} ({', '.join(plain(name, 40) for name in names)}), {used}"
    for name, result in results[:LISTED]:
        grid = answer.inputs.given[name].grid
        unit = "pixel" if grid.shape[0] == 1 else "voxel"
        for fusion, report in zip(result.fusions, result.reports, strict=True):
            size = _ml(report.volume_ml) if grid.calibrated else counted(int(fusion.mask.sum()), unit)
            yield (
                f"{plain(name)}, {plain(fusion.structures[0])}: {size}, "
                f"{counted(len(report.disputes), 'disputed region')}"
            )
    if len(results) > LISTED:
        yield f"and {len(results) - LISTED:,} more"


def _ml(volume: float) -> str:
    return f"{volume:,.0f} ml" if volume >= 100 else f"{volume:.3g} ml"


def _read(options: argparse.Namespace, watch: Watch) -> tuple[Placement, tuple[MaskTable, ...], list[str]]:
    """Read masks, truths and their images; determine rater and image of each."""
    lot = _sorted(options.masks, part(watch, 0.0, 0.2))
    around = sort_files(options.image, None, part(watch, 0.2, 0.3))
    wrong = next((path for path in (*around.masks, *around.tables) if path not in around.from_folders), None)
    if wrong is not None:
        raise InputError("is no image or volume; expected the image that the masks were drawn on", file=wrong)
    volumes: list[VolumeFile] = [*lot.volumes, *around.volumes]
    truths = [file for path in options.truth or () for file in _sorted([path], silent).masks]
    files = list(dict.fromkeys([*lot.masks, *truths]))
    if not files:
        raise InputError("contains no masks", file=options.masks[0])
    reading = MaskOptions(options.annotator, options.naming, options.structure)
    skipped = SkippedFiles(set(files) - lot.from_folders)
    tables = read_mask_files(
        files, volumes, reading, skipped=skipped, sources=lot.sources, watch=part(watch, 0.3, 1.0)
    )
    if not tables:
        raise skipped.errors[0]
    sites = list_sites((), [read_image(path) for path in (*lot.images, *around.images)], volumes)
    by_hand = dict.fromkeys(truths, TRUTH_WORD)
    attributed = assign_raters(tables, [site.name for site in sites], replace(reading, by_hand=by_hand))
    placement = place_masks(attributed, sites, may_resample=options.resample)
    notices = [f"{plain(table.path.name)}: {notice}" for table in tables for notice in table.notices]
    notices += [notice for volume in volumes for notice in volume.notices]
    return (
        placement,
        tables,
        [
            *notices,
            *explain_derived(attributed),
            *placement.notices,
            *lot.notices,
            *(f"left out: {error}" for error in skipped.errors),
        ],
    )


def _sorted(paths: Sequence[Path], watch: Watch) -> ImportCandidates:
    """Classify files: named files are masks; files in folders by their content."""
    folders = [path for path in paths if path.is_dir()]
    classified = sort_files(folders, None, watch)
    if folders and not classified.masks:
        raise InputError("is a folder without masks; name an image after --image", file=folders[0])
    files = sort_files([path for path in paths if not path.is_dir()], "masks", watch)
    return replace(classified, masks=[*files.masks, *classified.masks])


def _cases(placement: Placement) -> tuple[dict[str, Case], dict[str, dict[str, MaskRecord]], list[str]]:
    """Collect the masks and the truth of each case."""
    records: dict[int, Records] = {}
    truths: dict[int, dict[str, MaskRecord]] = {}
    sentences: list[str] = []
    for mask, at in zip(placement.masks, placement.where, strict=True):
        grid = placement.sites[at].grid
        record = record_of(prepare_mask(mask, at, grid))
        if change := explain_change_of_grid(mask.mask, grid):
            sentences.append(f"{plain(mask.file.name)}: {change}")
        if mask.annotator is None:
            truths.setdefault(at, {})[mask.structure] = record
        else:
            records.setdefault(at, {}).setdefault(mask.structure, {})[mask.annotator] = record
    if not records:
        raise InputError("there are only masks of the truth; expected masks of annotators")
    names = {at: placement.sites[at].name for at in records}
    cases = {
        names[at]: Case(names[at], placement.sites[at].grid, case_records)
        for at, case_records in records.items()
    }
    true_masks = {}
    for at, true_records in truths.items():
        if at not in names:
            sentences.append(f"no annotator marked {plain(placement.sites[at].name)}; its truth was skipped")
            continue
        structures = list(records[at])
        if len(true_records) == 1 and len(structures) == 1:  # names are ignored with one structure each
            true_records = {structures[0]: next(iter(true_records.values()))}
        true_masks[names[at]] = {name: record for name, record in true_records.items() if name in structures}
        if not true_masks[names[at]]:
            sentences.append(f"the truth of {plain(names[at])} is of another structure than the masks")
    cases = {name: replace(case, truth=true_masks.get(name, {})) for name, case in cases.items()}
    return cases, true_masks, sentences


def _refuse_irregular(cases: Mapping[str, Case], *, may_resample: bool) -> None:
    """Refuse irregular grids before fusing, as NIfTI cannot store them, unless they may be resampled."""
    for name, case in cases.items():
        reason = explain_irregularity(case.grid)
        if reason and not may_resample:
            text = "Add --resample to write a regular grid, or import the masks into a study and export DICOM"
            raise InputError(f"{plain(name)} cannot be written as NIfTI: {reason}. {text}")


def _write(
    folder: Path,
    answer: Answer,
    truths: Mapping[str, Mapping[str, MaskRecord]],
    tables: Sequence[MaskTable],
    watch: Watch,
    *,
    together: bool,
    plans: Sequence[MaskPlan],
) -> list[Path]:
    """Write the results of each case."""
    inputs = files_and_digests(table.path for table in tables)
    files: list[Path] = []
    for name, result, subfolder, step in folders_of(answer, folder, watch):
        case = answer.inputs.given[name]
        record = run_record(answer, name, inputs)
        record["settings"]["together"] = together
        if plans:
            record["compared"] = [plan.as_dict() for plan in plans]
        record["notices"] = [
            f"{plain(table.path.name)}: {notice}" for table in tables for notice in table.notices
        ]
        drawn = {name: {**masks, **case.programs.get(name, {})} for name, masks in case.records.items()}
        output = CaseOutput(case.grid, result, drawn, record, truths.get(name, {}))
        files += write_case(subfolder, output, step)
    return files


def _notices(answer: Answer) -> Iterator[str]:
    """Return the notices of the algorithms, with image and structure where these differ."""
    for name, result in answer.fusions.items():
        for fusion in result.fusions:
            for notice in fusion.notices:
                of_all = all(notice in case_fusion.notices for case_fusion in result.fusions)
                image = [plain(name)] if len(answer.outcomes) > 1 else []
                where = ", ".join([*image, *([] if of_all else [plain(fusion.structures[0])])])
                yield f"{where}: {notice}" if where else notice
