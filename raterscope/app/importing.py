"""Import of files into a study: images, volumes, labels, pairs, clicks, truth, masks, in this order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from raterscope.algorithms.progress import Watch, divided, part, silent, steps_of
from raterscope.app.ambiguous_files import UnknownAnnotators, list_names
from raterscope.app.errors import InputError, SkippedFiles, plain
from raterscope.app.formats import ClickTable, ImageFile, PointTable, UnknownColumns, read
from raterscope.app.formats.pairs import explain_assumed_kind
from raterscope.app.formats.pairs.table import RankingTable, read_ranking
from raterscope.app.formats.points.positions import ImageScale, ImageScales, unknown_scales
from raterscope.app.formats.points.tables import name_by_ids
from raterscope.app.formats.records import (
    LabelFile,
    LabelTable,
    PairTable,
    TaskContents,
    TrueLabels,
    VolumeFile,
)
from raterscope.app.formats.sources import Sources
from raterscope.app.formats.workbooks import WORKBOOKS, explain_other_sheets
from raterscope.app.import_candidates import ImportCandidates, OtherFiles, classify_files, resolve_ambiguous
from raterscope.app.kinds.clicks.imports import (
    assign_annotators,
    explain_possible_percent,
    index_scales,
    read_point_files,
)
from raterscope.app.kinds.labels.imports import (
    names_label_columns,
    names_of,
    prefer_label_columns,
    read_label_files,
    store_labels,
)
from raterscope.app.kinds.masks.attribution import (
    DEFAULT_MASK_OPTIONS,
    AttributedMask,
    MaskOptions,
    assign_raters,
    explain_derived,
)
from raterscope.app.kinds.masks.imports import (
    NOTHING,
    Placement,
    Site,
    StudyImages,
    explain_change_of_grid,
    list_sites,
    place_masks,
    prepare_mask,
    read_mask_files,
)
from raterscope.app.kinds.pairs.imports import names_of as names_of_items
from raterscope.app.kinds.pairs.imports import names_pair_columns, read_pair_files, store_pairs
from raterscope.app.kinds.registry import KINDS
from raterscope.app.readings import Readings, Table, TableLayout, is_table
from raterscope.app.review import Decision, in_words
from raterscope.app.study import ImageEntry, Study
from raterscope.app.study.import_undo import import_dates, record_import, repeated_files, state_before
from raterscope.app.study.labels import link_pictures, order_classes
from raterscope.app.study.masks import add_case, add_masks
from raterscope.app.study.pairs import add_true_ranking
from raterscope.app.study.references import ImageNames
from raterscope.text import counted, natural

_File = TypeVar("_File", ImageFile, VolumeFile)

_LOOKED, _OF_IMAGE = 0.7, 0.1
"""Share of the time for the classification of files, and time per image relative to that per mask."""


def read_files(
    paths: Sequence[Path],
    *,
    kind: str | None = None,
    mappings: Mapping[Path, Mapping[str, str]] | None = None,
    reading: MaskOptions = DEFAULT_MASK_OPTIONS,
    label_annotator: str | None = None,
    at_hand: StudyImages = NOTHING,
    asks: bool = False,
    skip_unreadable: bool = False,
    excluded: frozenset[Path] = frozenset(),
    are_masks: Mapping[Path, bool] = MappingProxyType({}),
    sources: Sources | None = None,
    watch: Watch = silent,
) -> Readings:
    """Read files; in a folder, its images, volumes, masks, labels, and tables with unambiguous headers.

    Raises `UnknownColumns` if a table's columns must be named by hand. Raises `UnknownAnnotators` if the
    annotator of masks or points must be named. Raises `InputError` for the first named file that cannot be
    read, or with `skip_unreadable` if there is nothing else to import; nothing is stored then.

    `kind`: one of `formats.KINDS`, if the files do not show it.
    `mappings`: fields of columns by file, named by hand.
    `reading`: options of masks that the user set.
    `label_annotator`: annotator of label files without annotators; by default that of `reading`.
    `at_hand`: available images, tasks and items, besides those in the files; masks may be drawn on these
        images.
    `excluded`: files of folders that are not read.
    `are_masks`: by image, NIfTI, NRRD or MetaImage file, whether the user declared it a mask.
    `asks`: whether the user can be asked about detections exported from this program; otherwise they are
        truth.
    `sources`: holds the files until a question is answered, if they are read more than once.
    """
    mappings = mappings or {}
    readers = {kind.name: kind.load_reader() for kind in KINDS.values() if kind.load_reader is not None}
    listed = [OtherFiles(name, KINDS[name].file_kinds, reader.recognises) for name, reader in readers.items()]
    candidates = classify_files(
        paths, kind, sources, part(watch, 0.0, _LOOKED), readers=listed, skip_unreadable=skip_unreadable,
        excluded=excluded, are_masks=are_masks,
    )  # fmt: skip
    sources, skipped = candidates.sources, candidates.skipped
    others = {
        name: readers[name].read([sources.open(path) for path in files], kind, watch)
        for name, files in candidates.others.items()
    }
    _apply_column_mapping(mappings, candidates)
    beside = frozenset(candidates.beside).difference(candidates.labels)
    before = [*candidates.labels, *beside], candidates.pairs, candidates.points, candidates.tables
    looked = _OF_IMAGE * len(candidates.images)
    of_labels, of_pairs, of_points, of_tables, of_images, last = divided(
        watch, _LOOKED, [*map(len, before), looked, looked + len(candidates.masks)]
    )
    labels = read_label_files(
        [*candidates.labels, *sorted(beside)], truth=kind in ("truth", "true-labels"), mappings=mappings,
        annotator=label_annotator or reading.annotator, skipped=skipped, sources=sources,
        watch=of_labels,
    )  # fmt: skip
    pairs = read_pair_files(candidates.pairs, mappings, sources, of_pairs, skipped=skipped)
    layouts = _layouts_of([*labels, *pairs], sources)
    ambiguous = _ambiguous_tables(candidates, mappings)
    sources.keep([*candidates.tables, *candidates.points, *candidates.masks])
    rankings: list[RankingTable] = []
    for path in candidates.rankings:
        with skipped.reading(path):
            rankings.append(read_ranking(sources.open(path)))
    shown = [*names_of(labels), *names_of_items(pairs), *at_hand.tasks]
    points = read_point_files(candidates.points, skipped, sources, of_points)
    skipped.required -= beside
    scales = _image_scales(candidates.images, at_hand, sources)
    tables_and_images, more_layouts = _read_each(
        candidates.tables, kind, mappings, skipped, sources, of_tables, scales, reading.annotator
    )
    sources.keep(candidates.masks)
    tables = [table for table in tables_and_images if not isinstance(table, ImageFile)]
    clicked = [name for table in (*tables, *(file.clicks for file in points)) for name in table.images]
    resolve_ambiguous(candidates, at_hand.shapes(), shown, [*clicked, *at_hand.clicked], of_images)
    of_images, of_masks = divided(last, 0.0, [_OF_IMAGE * len(candidates.images), len(candidates.masks)])
    pictures, _ = _read_each(candidates.images, "image", {}, skipped, sources, of_images)
    images = _with_distinct_names([image for image in pictures if isinstance(image, ImageFile)])
    volumes = tuple(
        replace(new, notices=tuple(_of_renamed(words, old.name, new.name) for words in old.notices))
        for old, new in zip(candidates.volumes, _with_distinct_names(candidates.volumes), strict=True)
    )
    masks = read_mask_files(
        candidates.masks, candidates.volumes, reading, at_hand, skipped=skipped, sources=sources,
        watch=of_masks,
    )  # fmt: skip
    if skipped.errors and not (
        tables or points or images or candidates.volumes or masks or labels or pairs or rankings or others
    ):
        raise skipped.errors[0]
    names = [site.name for site in list_sites(at_hand.entries, images, volumes)]
    try:
        attributed = assign_raters(masks, names, reading, truth=kind == "truth")
    except UnknownAnnotators as unknown:
        notices = [*candidates.notices, *_skipped_in_words(skipped.errors)]
        unknown.skipped = tuple(notice for notice in notices if notice.startswith("Skipped: "))
        raise
    clicks, truths, assumed = assign_annotators(
        points, names, annotator=reading.annotator, by_hand=reading.by_hand, naming=reading.naming,
        truth=kind == "truth", detections="clicks" if kind == "clicks" else "ask" if asks else "truth",
    )  # fmt: skip
    clicks += [table for table in tables if isinstance(table, ClickTable)]
    named = [name_by_ids(table, candidates.coco_images) for table in tables if isinstance(table, PointTable)]
    truths += named
    sizes = [(image.name, (float(image.width), float(image.height))) for image in images]
    sizes += [(entry.name, (entry.width, entry.height)) for entry in at_hand.entries]
    return Readings(
        images=images,
        # A table without clicks contains the sizes of images, which tables of clicks may need.
        clicks=tuple(sorted(clicks, key=lambda table: len(table) > 0)),
        truths=tuple(truths),
        left=tuple(candidates.left),
        volumes=volumes,
        masks=masks,
        labels=labels,
        pairs=pairs,
        rankings=tuple(rankings),
        others=others,
        attributed=tuple(attributed),
        programs=_programs_among(labels),
        coco_images=candidates.coco_images,
        layouts=(*layouts, *more_layouts),
        notices=(
            *candidates.notices,
            *ambiguous,
            *_other_sheets(candidates),
            *_assumed_in_words(assumed),
            *explain_possible_percent((*clicks, *truths), sizes),
            *_fused_in_words(attributed),
            *explain_derived(attributed),
            *_cut_short_in_words(images),
            *_skipped_in_words(skipped.errors),
        ),
        skipped=tuple(skipped.errors),
    )


def _cut_short_in_words(images: Sequence[ImageFile]) -> list[str]:
    files = [image.path for image in images if image.is_cut_short]
    one = "is cut short: its last part is missing. Copy the file again."
    several = "are cut short: their last parts are missing. Copy the files again."
    return [f"{list_names(files)} {one if len(files) == 1 else several}"] if files else []


def _with_distinct_names(files: Sequence[_File]) -> tuple[_File, ...]:
    """Prefix names of several files with their folder, CASE/image.nii.gz; number those still equal."""
    times, used = Counter(file.name for file in files), Counter[str]()
    distinct = []
    for file in files:
        if times[file.name] > 1:
            name = f"{file.path.resolve().parent.name}/{file.name}"
            used[name] += 1
            file = replace(file, name=name if used[name] == 1 else f"{name} ({used[name]})")
        distinct.append(file)
    return tuple(distinct)


def _of_renamed(notice: str, old: str, new: str) -> str:
    start = f"{plain(old)}: "
    return f"{plain(new)}: {notice.removeprefix(start)}" if notice.startswith(start) else notice


def _programs_among(labels: Sequence[LabelFile]) -> frozenset[str]:
    """Return the annotators that are programs, because they give class probabilities."""
    scored = [table for table in labels if isinstance(table, LabelTable) and table.probability is not None]
    return frozenset(name for table in scored for name in table.annotators)


def _apply_column_mapping(mappings: Mapping[Path, Mapping[str, str]], candidates: ImportCandidates) -> None:
    """Infer the kind of a table from the column mapping if no kind was selected."""
    # Layers of points in napari are then read like other tables.
    by_hand = [path for path in candidates.points if is_table(path) and path in mappings]
    candidates.points = [path for path in candidates.points if path not in by_hand]
    candidates.tables += by_hand
    for path, mapping in mappings.items() if candidates.kind is None else ():
        if names_pair_columns(mapping):
            meant = candidates.pairs
        elif not {"x", "y", "x_percent", "y_percent"}.isdisjoint(mapping.values()):
            meant = candidates.tables
        elif names_label_columns(mapping):
            meant = candidates.labels
        else:
            continue
        for listed in (candidates.tables, candidates.labels, candidates.pairs):
            if path in listed and listed is not meant:
                listed.remove(path)
                meant.append(path)
                break


def _ambiguous_tables(candidates: ImportCandidates, mappings: Mapping[Path, Mapping[str, str]]) -> list[str]:
    """Describe how ambiguous tables were read without a choice by the user."""
    if candidates.kind is not None:
        return []
    tables = [path for path in (*candidates.labels, *candidates.pairs) if is_table(path)]
    notes = (explain_assumed_kind(candidates.sources.open(path)) for path in tables if path not in mappings)
    return [words for words in notes if words]


def _other_sheets(candidates: ImportCandidates) -> list[str]:
    """Name the sheets of spreadsheets that were not read."""
    files = (*candidates.tables, *candidates.labels, *candidates.pairs, *candidates.rankings)
    notes = (explain_other_sheets(path) for path in files if path.suffix.casefold() in WORKBOOKS)
    return [words for words in notes if words]


def _assumed_in_words(files: Sequence[Path]) -> list[str]:
    """Describe how detections exported by this program were imported again."""
    if not files:
        return []
    what = f"{plain(files[0].name)} holds" if len(files) == 1 else f"{len(files):,} files hold"
    them = "it" if len(files) == 1 else "them"
    return [
        f"{what} detections exported from Raterscope, which were imported as ground truth. --annotator NAME"
        f" imports {them} as that annotator's clicks."
    ]


_FUSED = {"consensus", "staple", "majority", "majority_vote", "majorityvote", "fused", "fusion", "average"}


def _fused_in_words(masks: Sequence[AttributedMask]) -> list[str]:
    """Warn of raters whose names say that their masks were fused from those of the others."""
    raters = {mask.annotator for mask in masks if mask.annotator is not None}
    fused = sorted(name for name in raters if name.casefold().replace(" ", "_") in _FUSED)
    return [
        f"{plain(name)} is read as a rater. If it was fused from the other masks, exclude its files, or"
        " import them as the truth (--kind truth)."
        for name in (fused if len(fused) < len(raters) else [])
    ]


def _read_each(
    paths: Sequence[Path],
    kind: str | None,
    mappings: Mapping[Path, Mapping[str, str]],
    skipped: SkippedFiles,
    sources: Sources,
    watch: Watch,
    scales: ImageScales = unknown_scales,
    annotator: str | None = None,
) -> tuple[list[ImageFile | ClickTable | PointTable], list[TableLayout]]:
    """Read images or tables; return also the table layouts."""
    tables: list[ImageFile | ClickTable | PointTable] = []
    layouts: list[TableLayout] = []
    for path, step in steps_of(watch, paths):
        step(0.0, f"reading {plain(path.name)}")
        try:
            with skipped.reading(path):
                tables.append(read(sources.open(path), kind, mappings.get(path), step, scales, annotator))
                layouts += _layouts_of(tables[-1:], sources)
        except UnknownColumns as unknown:
            if kind is not None:
                raise
            raise prefer_label_columns(unknown, sources.open(path)) from None
        sources.release(path)
    return tables, layouts


def _image_scales(images: Sequence[Path], at_hand: StudyImages, sources: Sources) -> ImageScales:
    """Return a function for the sizes of imported and available images; it reads only headers."""

    @cache
    def index() -> ImageScales:
        files = [sources.open(path).image().file for path in images]
        of_files = [(file.name, ImageScale(file.pixel_size, (file.width, file.height))) for file in files]
        at_hand_scales = [
            (entry.name, ImageScale(entry.pixel_size, (entry.width, entry.height)))
            for entry in at_hand.entries
        ]
        return index_scales([*of_files, *at_hand_scales])

    return lambda name: index()(name)


def _layouts_of(tables: Sequence[object], sources: Sources) -> list[TableLayout]:
    """Return the layout of each table with columns; the tables of one file share a layout."""
    fields: dict[Path, dict[str, str]] = {}
    kinds: dict[Path, str] = {}
    for table in tables:
        if isinstance(table, Table) and table.columns:
            fields.setdefault(table.path, {}).update(table.columns)
            kinds.setdefault(table.path, _kind_of_table(table))
    layouts = []
    for path, columns in fields.items():
        table = sources.open(path).first_rows()
        used = {name: columns[name] for name in table.header if name in columns}
        layouts.append(TableLayout(path, kinds[path], table.header, tuple(table.first_rows()), used))
    return layouts


def _kind_of_table(table: Table) -> str:
    if isinstance(table, PointTable):
        return "truth" if table.score is None else "scores"
    kinds = {
        ClickTable: "clicks", LabelTable: "labels", TrueLabels: "true labels", TaskContents: "tasks",
        PairTable: "pairs",
    }  # fmt: skip
    return kinds[type(table)]


def store(
    readings: Readings,
    study: Study,
    watch: Watch = silent,
    *,
    extent: tuple[float, float] | None = None,
    may_resample: bool = False,
    class_order: Sequence[str] = (),
) -> list[str]:
    """Store the readings, completely or not at all; return sentences about the imported contents.

    Raises `OtherGrid` for masks on another grid than their image; nothing is stored then.

    `extent`: (width, height), size of images of unknown size.
    `may_resample`: resample masks from another grid to the grid of their image.
    `class_order`: grades from the lowest to the highest, for the questions of labels that have no other
        classes.
    """
    sites = list_sites(study.images(), readings.images, readings.volumes)
    placement = place_masks(readings.attributed, sites, may_resample=may_resample)
    with study.change():
        before = state_before(study)
        repeated = repeated_files(import_dates(study), [table.path for table in readings.tables()])
        sentences = _store(readings, placement, study, watch, extent)
        sentences += [
            f"{plain(path.name)} counts again: it was imported on {date}." for path, date in repeated.items()
        ]
        if class_order and not order_classes(study, class_order):
            names = {name for entry in study.questions() for name in entry.scheme.classes}
            missing = sorted(names.difference(class_order), key=natural)
            problem = "no question has only these classes"
            if missing and names.intersection(class_order):
                problem = f"it lacks the class {plain(missing[0])}"
            sentences.append(f"The order of grades was not used: {problem}.")
        record_import(study, before, readings.files(), [table.path for table in readings.tables()])
        return sentences


def _store(
    readings: Readings, placement: Placement, study: Study, watch: Watch, extent: tuple[float, float] | None
) -> list[str]:
    sentences = []
    known = study.settings.coco_images
    truths = [name_by_ids(table, known) for table in readings.truths]
    tables: tuple[ClickTable | PointTable, ...] = (*readings.clicks, *truths)
    new_ids = {
        number: name if known.get(number, name) == name else ""
        for number, name in readings.coco_images.items()
    }
    if new_ids:
        study.settings.coco_images = {**known, **new_ids}
    share = 0.5 if tables or readings.masks or readings.labels or readings.pairs else 1.0
    entries: list[ImageEntry] = []
    before = {entry.id for entry in study.images() if entry.path is not None}
    if readings.images:
        entries += study.add_images(readings.images, part(watch, 0.0, share / 2))
        sentences.append(_describe_added("image", {entry.id for entry in entries}, before, len(entries)))
    if readings.volumes:
        added = study.add_images(readings.volumes, part(watch, share / 2, share))
        sentences.append(_describe_added("volume", {entry.id for entry in added}, before, len(added)))
        sentences += [notice for volume in readings.volumes for notice in volume.notices]
        entries += added
    if readings.labels:
        now, share = share, 0.5 + share / 2
        sentences += store_labels(readings.labels, study, part(watch, now, share))
        subjects = [labels.subjects for labels in readings.labels if isinstance(labels, LabelTable)]
        _add_subjects(study, {name: number for of in subjects for name, number in of.items()})
    if readings.pairs:
        now, share = share, 0.5 + share / 2
        sentences += store_pairs(readings.pairs, study, part(watch, now, share))
    for name, what in readings.others.items():
        load_reader = KINDS[name].load_reader
        assert load_reader is not None
        sentences += load_reader().store(what, study, watch)
    for ranking in readings.rankings:
        sentences.append(f"{plain(ranking.path.name)}: {add_true_ranking(study, ranking)}")
    if readings.images and (study.questions() or study.pair_questions()):
        sentences.append(_shown_in_words(link_pictures(study), study))
    middle = share + (1 - share) * len(tables) / max(len(tables) + len(readings.masks), 1)
    for table, step in steps_of(part(watch, share, middle), tables):
        summary = study.add_clicks(table, step, extent=extent, skip_unknown=True)
        if isinstance(table, ClickTable):
            _add_subjects(study, table.subjects)
        sentences.append(f"{table.path.name}: {summary.in_words()}")
    reports: list[str] = []
    numbers = _number_sites(study, placement.sites, entries)
    grids = {entry.id: entry.lattice for entry in study.images()} if readings.masks else {}
    placed: dict[Path, list[tuple[AttributedMask, int]]] = {}
    for placed_mask, at in zip(placement.masks, placement.where, strict=True):
        placed.setdefault(placed_mask.file, []).append((placed_mask, numbers[at]))
    for file, step in steps_of(part(watch, middle, 1.0), readings.masks):
        own = placed.get(file.path, [])
        changes = Counter(
            explain_change_of_grid(placed_mask.mask, grids[number]) for placed_mask, number in own
        )
        notices = [
            *file.notices,
            *(f"{counted(many, 'mask')} {text}." for text, many in changes.items() if text),
        ]
        masks = [prepare_mask(placed_mask, number, grids[number]) for placed_mask, number in own]
        report = add_masks(study, masks, file.path.name, notices, step)
        if file.masks and not own:
            report = " ".join([*notices, _JOINED])
        reports.append(f"{plain(file.path.name)}: {report}")
    sentences += _masks_in_words(reports, placement)
    new = readings.programs & set(study.annotators()) - study.review_state().programs
    if new:
        decision = study.record(Decision(verb="program", annotators=tuple(sorted(new))))
        sentences.append(f"{in_words(decision).capitalize()}.")
    return [*sentences, *placement.notices, *readings.notices, *readings.left_in_words()]


_JOINED = "Joined to the mask of another file."


def _masks_in_words(reports: Sequence[str], placement: Placement) -> list[str]:
    """Describe the import of mask files, briefly if there are many and nothing is unusual."""
    plainly = ("annotator.", "annotators.", "image.", f": {_JOINED}")
    odd = [text for text in reports if "(" in text or not text.endswith(plainly)]
    if len(reports) - len(odd) < 3:
        return list(reports)
    raters = {placed_mask.annotator for placed_mask in placement.masks} - {None}
    true = sum(placed_mask.annotator is None for placed_mask in placement.masks)
    images = counted(len(set(placement.where)), "image")
    text = (
        f"{len(placement.masks):,} masks in {len(reports):,} files on {images}"
        f" by {counted(len(raters), 'annotator')}{f', {true:,} of them the truth' if true else ''}."
    )
    return [text, *odd]


def _skipped_in_words(errors: Sequence[InputError]) -> list[str]:
    sentences = [f"Skipped: {error}".replace("; nothing was imported", "") for error in errors[:3]]
    more = f"{counted(len(errors) - 3, 'more file')} skipped."
    return [*sentences, more] if len(errors) > 3 else sentences


def _number_sites(study: Study, sites: Sequence[Site], added: Sequence[ImageEntry]) -> list[int]:
    """Return the number of every site in the study: new ones are `added`, in their order."""
    counts = iter(added)
    numbers = []
    names = ImageNames(study.images(), study.path.parent)
    for site in sites:
        if site.number is not None:
            numbers.append(site.number)
        else:
            entry = next(counts) if site.fresh else add_case(study, site.name, site.grid, names)
            numbers.append(entry.id)
    return numbers


def _add_subjects(study: Study, subjects: Mapping[str, str]) -> None:
    if subjects:
        study.settings.subjects = {**study.settings.subjects, **subjects}


def _shown_in_words(shown: int, study: Study) -> str:
    """Describe how many tasks of labels and items of pairs have a picture."""
    if not study.pair_questions():
        text = counted(shown, "task")
    elif not study.questions():
        text = counted(shown, "item")
    else:
        text = f"{shown:,} of the tasks and items"
    return f"{text} {'has' if shown == 1 else 'have'} a picture now."


def _describe_added(noun: str, entries: set[int], before: set[int], named: int) -> str:
    new = len(entries - before)
    text = counted(new, noun)
    known = named - new
    return f"{text}, {known} known already." if known else f"{text}."


def import_files(
    study: Study, paths: Sequence[Path], watch: Watch = silent, *, structure: str | None = None
) -> list[str]:
    """Import files into a study and describe what was imported. See `read_files` and `store`."""
    readings = read_files(paths, reading=MaskOptions(structure=structure), watch=part(watch, 0.0, 0.4))
    return store(readings, study, part(watch, 0.4, 1.0))
