"""Training set of nnU-Net from the consensus: images, label maps, soft labels, uncertainty, folds by patient.

The folder is named Dataset501_NAME, unless the requested name begins with Dataset and three digits. Beside
the files that nnU-Net reads (imagesTr, labelsTr, dataset.json), probabilityTr and uncertaintyTr have a map
for each label, CASE_0001.nii.gz for label 1. splits_final.json is to be copied into the folder of the
preprocessed dataset.

References
----------
Isensee, Jaeger, Kohl, Petersen, Maier-Hein: nnU-Net: a self-configuring method for deep learning-based
biomedical image segmentation. Nature Methods 18 (2021), 203-211. doi:10.1038/s41592-020-01008-z
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, plain
from raterscope.app.exports import Request, folder_of
from raterscope.app.formats.masks.deidentify import Deidentifier
from raterscope.app.formats.masks.export import write_array, write_nifti_image
from raterscope.app.formats.output_files import (
    file_name_part,
    make_folder,
    new_folder,
    open_text_output,
    unique_name,
    write_together,
)
from raterscope.app.formats.volumes.resampling import explain_irregularity, regular_grid, resample
from raterscope.app.kinds.masks.exports import (
    FusedCase,
    case_stem,
    clean_name,
    codings_of,
    deidentifier_of,
    find_source,
    fused_cases,
    maps_of_structure,
)
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.image_groups import split_groups
from raterscope.text import counted

_BACKGROUND = "background"
_FIRST_FREE = "Dataset501_"
"""Prefix with the first number that no published dataset uses."""

_COLOURS = ("red", "green", "blue")
_ENDING = ".nii.gz"


def export_training(study: Study, request: Request, watch: Watch = silent) -> list[Path]:
    """Write cases with image and consensus, decisions applied, as a dataset of nnU-Net; see `exports.Writer`.

    Raises `InputError` for a case without image, cases of several modalities, or a file that cannot be
    written.
    """
    by = deidentifier_of(study) if request.deidentify else None
    group_of = {image: name for name, images in request.groups.items() for image in images}
    entries = [
        entry
        for entry in study.images()
        if (not request.items or entry.id in request.items)
        and (not group_of or entry.id in group_of)
        and study.shown.run(entry.id, "masks") is not None
    ]
    if not entries:
        raise InputError("has no run of masks yet; `raterscope run` makes one", file=study.path)
    channel = _channel(entries, request)
    folder = _dataset_folder(folder_of(request))
    with new_folder(folder):
        return _write_dataset(study, request, _Dataset(folder, entries, group_of, channel, by), watch)


@dataclass(frozen=True)
class _Dataset:
    """A dataset to write: folder, cases, group of each case by number, channel, and the de-identifier."""

    folder: Path
    entries: Sequence[ImageEntry]
    group_of: Mapping[int, str]
    channel: str
    by: Deidentifier | None


def _write_dataset(study: Study, request: Request, dataset: _Dataset, watch: Watch) -> list[Path]:
    folder, entries, by = dataset.folder, dataset.entries, dataset.by
    folders = {what: folder / f"{what}Tr" for what in ("images", "labels", "probability", "uncertainty")}
    for path in folders.values():
        make_folder(path)
    labels: dict[str, int] = {}
    groups: dict[str, str] = {}
    files, used = [folder / "dataset.json"], set[str]()
    channel_count = 0
    cases = fused_cases(study, [entry.id for entry in entries], by)
    for entry, step in steps_of(part(watch, 0.0, 0.95), entries):
        case = next(cases)
        title = unique_name(file_name_part(case_stem(entry, by)), used)
        step(0.0, f"writing {title}")
        groups[title] = dataset.group_of.get(entry.id, title)
        image = folders["images"] / f"{title}_0000{_ENDING}"
        source = find_source(study, entry, needed=True, images=True)
        if source is None:
            raise InputError("is no longer on the grid of its masks", file=entry.name)
        channels = [folders["images"] / f"{title}_{number:04d}{_ENDING}" for number in range(len(_COLOURS))]
        written, notices = write_nifti_image(
            image, source, part(step, 0.0, 0.5), resample=request.resample, colours=channels
        )
        if channel_count not in (0, len(written)):
            raise InputError("nnU-Net needs images that are all grey, or all in colour", file=entry.name)
        channel_count = len(written)
        files += [*written, *_write_labels(study, case, request, by, labels, folders, title)]
        for sentence in notices:
            request.say(sentence)
    names = _COLOURS if channel_count > 1 else (dataset.channel,)
    with open_text_output(files[0]) as file:
        json.dump({
            "channel_names": {str(number): name for number, name in enumerate(names)},
            "labels": {_BACKGROUND: 0, **labels},
            "numTraining": len(groups),
            "file_ending": _ENDING,
            "name": folder.name.partition("_")[2] or folder.name,
        }, file, indent=1, ensure_ascii=False)  # fmt: skip
    return [*files, *_write_splits(folder, groups, request)]


def _channel(entries: Sequence[ImageEntry], request: Request) -> str:
    """Name the channel by modality, because nnU-Net normalises "CT" differently."""
    missing = [plain(entry.name) for entry in entries if entry.path is None]
    if missing:
        raise InputError(
            f"{counted(len(missing), 'case')} without image ({', '.join(missing[:3])}"
            f"{' ...' if len(missing) > 3 else ''}); import the images, or choose other cases"
        )
    modalities = sorted({entry.modality for entry in entries if entry.modality})
    if len(modalities) > 1:
        raise InputError(
            f"nnU-Net needs images of a single modality; these are {' and '.join(modalities)}. "
            "Choose the cases of one"
        )
    if not all(entry.modality for entry in entries):
        request.say('The modality of the images is unknown. For CT, set the channel to "CT" in dataset.json.')
        return "image"
    return modalities[0] if modalities else "image"


def _dataset_folder(folder: Path) -> Path:
    named = re.fullmatch(r"Dataset\d{3}(_.+)?", folder.name)
    return folder if named else folder / f"{_FIRST_FREE}{file_name_part(folder.name)}"


def _write_labels(
    study: Study,
    case: FusedCase,
    request: Request,
    by: Deidentifier | None,
    labels: dict[str, int],
    folders: dict[str, Path],
    title: str,
) -> list[Path]:
    """Write the label map, probabilities and uncertainties of a case; new structures get the next label.

    Where structures overlap, the smaller one is written, because it usually lies within the other.
    """
    stored = case.entry.lattice
    grid = regular_grid(stored) if explain_irregularity(stored) else stored
    coding_of, masks, files = codings_of(study), list[tuple[int, NDArray[np.bool_]]](), list[Path]()
    results = zip(case.result.fusions, case.result.reports, strict=True)
    for number, (fusion, report) in enumerate(results, start=1):
        name = clean_name(case, fusion.structures[0], number, by)
        label = labels.setdefault(f"{name}-1" if name == _BACKGROUND else name, len(labels) + 1)
        coding = coding_of(fusion.structures[0])
        for what in ("consensus", "probability", "uncertainty"):
            for lazy in maps_of_structure(study, case, fusion, report, replace(request, what=what), coding):
                values = lazy.make() if grid is stored else resample(lazy.make(), stored, grid)
                if what == "consensus":
                    masks.append((label, values > 0.5))
                    continue
                path = folders[what] / f"{title}_{label:04d}{_ENDING}"
                files.append(_write(path, values.astype(np.float32, copy=False), grid))
    masks.sort(key=lambda pair: -int(pair[1].sum()))
    values = np.zeros(grid.shape, np.min_scalar_type(len(labels)))
    shared = 0
    for label, mask in masks:
        shared += int((values[mask] > 0).sum())
        values[mask] = label
    if shared:
        request.say(f"{title}: structures share {counted(shared, 'voxel')}, labelled as the smaller one.")
    return [_write(folders["labels"] / f"{title}{_ENDING}", values, grid), *files]


def _write(path: Path, values: NDArray[np.generic], grid: Grid) -> Path:
    with write_together([path]) as (draft,):
        write_array(draft, values, grid)
    return path


def _write_splits(folder: Path, groups: dict[str, str], request: Request) -> list[Path]:
    """Write the folds of cross-validation; the cases of a group are all in train or all in val."""
    folds = split_groups(groups.values())
    if not folds:
        request.say("A single group cannot be split: splits_final.json is not written.")
        return []
    splits = [
        {
            "train": [case for case, group in groups.items() if group not in fold],
            "val": [case for case, group in groups.items() if group in fold],
        }
        for fold in folds
    ]
    path = folder / "splits_final.json"
    with open_text_output(path) as file:
        json.dump(splits, file, indent=1, ensure_ascii=False)
    request.say(f"Copy splits_final.json to nnUNet_preprocessed/{folder.name} before training.")
    return [path]
