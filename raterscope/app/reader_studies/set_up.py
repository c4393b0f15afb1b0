"""Set-up of a reader study: one reading file for each reader, and the coordinator's file."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from raterscope.algorithms.progress import Watch, part, silent, steps_of
from raterscope.app.errors import InputError, TableProblems, plain, system_reason
from raterscope.app.formats.image_heads import read_image
from raterscope.app.formats.labels import find_labels, read_labels
from raterscope.app.formats.output_files import file_name_part, make_folder, unique_name, write_bytes
from raterscope.app.formats.pairs import has_pairs, read_pairs
from raterscope.app.formats.records import ImageFile, PairTable, TaskContents, VolumeFile
from raterscope.app.formats.signatures import IMAGE_SUFFIXES, IMAGES
from raterscope.app.formats.sounds import find_media, media_kind
from raterscope.app.formats.sources import Source
from raterscope.app.formats.tables import UnknownColumns
from raterscope.app.formats.volumes import find_volumes
from raterscope.app.program_files import READING_SUFFIX, STUDY_SUFFIX
from raterscope.app.reader_studies.protocol import (
    COORDINATOR,
    VERSION,
    AskedQuestion,
    Assignment,
    Coordinator,
    Picture,
    Protocol,
    ReaderEntry,
    ReadingCase,
    ScheduledCase,
    Side,
)
from raterscope.app.reader_studies.reading_file import ReadingFile
from raterscope.app.study import Study
from raterscope.app.study.labels import pictures_of, read_all_contents, split_comparison
from raterscope.app.study.pairs import item_pictures
from raterscope.app.study.references import digest_of_images, stored_path
from raterscope.app.study.vote_sets import ComparisonSet
from raterscope.text import counted

MAX_PICTURES = 4
"""Maximum number of pictures of a task."""

_EXPECTED_ANSWERS = "expected columns such as prompt, response_a and response_b, or pictures of the items"
_EXPECTED = (
    "expected a column task and columns such as text, prompt, response, html or markdown, or with pictures"
)


@dataclass(frozen=True)
class TaskCase:
    """A task shown to readers, or one of the two items of a comparison."""

    path: Path  # table or study
    name: str  # task
    texts: dict[str, str]  # by field: in the order of the file, without the names of pictures
    images: tuple[ImageFile, ...]
    is_item: bool = False  # an item of a comparison has the same name in every file


@dataclass(frozen=True)
class ComparisonCase:
    """A comparison shown to readers."""

    items: tuple[TaskCase, TaskCase]
    task: str = ""  # topic of the comparison; empty without tasks
    texts: dict[str, str] = field(default_factory=dict)  # texts that both items share, by field


def holds_comparisons(source: Source) -> bool:
    """Return whether a file of a protocol is a table of comparisons, or a study with comparisons."""
    if source.path.suffix.casefold() != STUDY_SUFFIX:
        return source.format not in IMAGES and has_pairs(source)
    with Study.open(source.path, to_read=True) as study:
        return bool(study.pair_questions())


def read_comparison_cases(source: Source, watch: Watch) -> list[ComparisonCase]:
    """Read the comparisons of a table or a study, each once, without their answers.

    Raises `InputError` if an item has neither a text nor a picture.
    """
    path = source.path
    cases: dict[tuple[str, frozenset[str]], ComparisonCase] = {}
    if path.suffix.casefold() == STUDY_SUFFIX:
        with Study.open(path, to_read=True) as study:
            for question in study.pair_questions():
                compared = study.comparison_set(question.id)
                pictures = {compared.items[item]: _picture_path(study, image)
                            for item, image in item_pictures(study, question.id).items()}  # fmt: skip
                contents = read_all_contents(study, [question.id])
                _add_comparisons(cases, path, compared, contents, pictures)
        return list(cases.values())
    for table in read_pairs(source, None, watch):
        contents = {} if table.contents is None else _by_task(table.contents)
        pictures = {
            name: file
            for number, name in enumerate(table.items)
            if (named := table.pictures.get(number, name)) and _names_picture(named)
            and (file := find_media(named, path.parent))
        }  # fmt: skip
        _add_comparisons(cases, path, table, contents, pictures)
    return list(cases.values())


def _add_comparisons(
    cases: dict[tuple[str, frozenset[str]], ComparisonCase],
    path: Path,
    compared: PairTable | ComparisonSet,
    contents: Mapping[str, Mapping[str, str]],
    pictures: Mapping[str, Path],
) -> None:
    """Add the comparisons that are new."""
    images = {name: read_image(file) for name, file in pictures.items()}
    items = set(compared.items)
    task = np.full(len(compared.left), -1) if compared.task is None else compared.task
    distinct = np.unique(np.stack([task, np.sort(np.stack([compared.left, compared.right]), axis=0)[0],
                                   np.maximum(compared.left, compared.right)], axis=1), axis=0)  # fmt: skip
    for number, left, right in distinct.tolist():
        name = "" if number < 0 else compared.tasks[number]
        names = compared.items[left], compared.items[right]
        texts, *answers = split_comparison(contents.get(name, {}), *names, items)
        if not any(answers):
            answers = ["\n\n".join(contents.get(item, {}).values()) for item in names]
        for item, answer in zip(names, answers, strict=True):
            if not answer and item not in images:
                raise InputError(
                    f"{plain(item)} has neither a text nor a picture; {_EXPECTED_ANSWERS}", file=path
                )
        first, second = (
            TaskCase(
                path,
                item,
                {"text": answer} if answer else {},
                (images[item],) if item in images else (),
                is_item=True,
            )
            for item, answer in zip(names, answers, strict=True)
        )
        cases.setdefault((name, frozenset(names)), ComparisonCase((first, second), name, texts))


def holds_tasks(source: Source) -> bool:
    """Return whether a file of a protocol is a table or a study of tasks, rather than an image."""
    if source.path.suffix.casefold() == STUDY_SUFFIX:
        return True
    if source.format in IMAGES:
        return False
    try:
        source.head()
    except InputError:
        return find_labels(source) is not None
    return True


def read_task_cases(source: Source, watch: Watch) -> list[TaskCase]:
    """Read the tasks of a table or a study.

    Raises `InputError` if no task has a text or picture, if a picture is missing, or if a task refers to
    audio or video.
    """
    path = source.path
    pictures: dict[str, Path] = {}
    if path.suffix.casefold() == STUDY_SUFFIX:
        with Study.open(path, to_read=True) as study:
            contents = read_all_contents(study, [question.id for question in study.questions()])
            pictures = _pictures_of_tasks(study)
    else:
        contents = _contents_of_table(source, watch)
    tasks = list(dict.fromkeys([*contents, *pictures]))
    if not tasks:
        raise InputError(f"contains no tasks with texts or pictures; {_EXPECTED}", file=path)
    return [_case(path, task, contents.get(task, {}), pictures.get(task)) for task in tasks]


def _case(path: Path, task: str, contents: dict[str, str], picture: Path | None) -> TaskCase:
    texts, pictures = {}, [] if picture is None else [picture]
    for name, text in contents.items():
        if kind := media_kind(text):
            raise InputError(
                f"{plain(task)} names a {kind}, {plain(text)}; readers can be shown texts and pictures only",
                file=path,
            )
        file = find_media(text, path.parent) if _names_picture(text) else None
        if file is not None:
            pictures.append(file)
        elif _names_picture(text):
            raise InputError(f"{plain(task)}: there is no picture {plain(text, 200)}", file=path)
        else:
            texts[name] = text
    if len(pictures) > MAX_PICTURES:
        raise InputError(f"{plain(task)} has {len(pictures)} pictures; at most {MAX_PICTURES}", file=path)
    return TaskCase(path, task, texts, tuple(map(read_image, pictures)))


def _names_picture(text: str) -> bool:
    return text.casefold().endswith(IMAGE_SUFFIXES) and "\n" not in text and "://" not in text


def _contents_of_table(source: Source, watch: Watch) -> dict[str, dict[str, str]]:
    """Read the contents of tasks by field; columns with names of pictures are included."""
    contents: dict[str, dict[str, str]] = {}
    try:
        table = source.records().table if source.path.suffix.casefold() == ".json" else source.first_rows()
        pictures = {
            name: "content"
            for name, cells in zip(table.header, table.columns, strict=True)
            if name != table.header[0] and any(cells) and all(_names_picture(cell) for cell in cells if cell)
        }
        for read in read_labels(source, pictures, watch):
            if isinstance(read, TaskContents):
                for task, texts in _by_task(read).items():
                    contents.setdefault(task, {}).update(texts)
    except UnknownColumns as error:
        raise InputError(f"contains no tasks; {_EXPECTED}", file=source.path) from error
    return contents


def _by_task(contents: TaskContents) -> dict[str, dict[str, str]]:
    """Return contents by task and field."""
    return {
        task: {name: texts[task] for name, texts in contents.fields.items() if task in texts}
        for task in contents.tasks
    }


def _picture_path(study: Study, image: int) -> Path:
    """Find a picture; raises `InputError` if it is missing."""
    entry = study.image(image)
    path = study.locate(entry)
    if path is None:
        raise InputError(f"the picture {plain(entry.name)} is missing", file=study.path)
    return path


def _pictures_of_tasks(study: Study) -> dict[str, Path]:
    """Find the pictures of tasks; raises `InputError` for one that is missing."""
    pictures: dict[str, Path] = {}
    for question in study.questions():
        tasks = study.vote_set(question.id).tasks
        for task, image in pictures_of(study, question.id).items():
            pictures.setdefault(tasks[task], _picture_path(study, image))
    return pictures


CaseSource = ImageFile | VolumeFile | TaskCase

READERS = "readers"
"""Folder of the reading files, the only one to pass on to readers."""


@dataclass(frozen=True)
class SetUp:
    """Files of a new reader study."""

    coordinator: Path
    files: tuple[Path, ...]  # the reading files, in the order of the pseudonyms
    # cases, reads: number of cases, and of reads per reader
    cases: int
    reads: int


def set_up(protocol: Protocol, file: Path, folder: Path, watch: Watch = silent) -> SetUp:
    """Write the files of a reader study.

    `file`: the protocol, to name in messages.
    `folder`: new or empty.
    Raises `TableProblems` with every image that cannot be read.
    Raises `InputError` if the folder holds files, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("exists already; choose a new or empty folder", file=folder)
    groups = _read_groups(protocol, file, part(watch, 0.0, 0.3))
    sources = [source for group in groups for source in group.sources]
    images = list({id(image): image for source in sources for image in _images(source)}.values())
    digests = digest_of_images(images, part(watch, 0.3, 0.8)) if images else []
    has_tasks = any(isinstance(source, TaskCase) for source in sources)
    version = (VERSION if protocol.kind == "pairs" else 2) if has_tasks else 1
    made = not folder.exists()
    readers = folder / READERS
    try:
        make_folder(readers)
        paths = [_copied(readers, number, image) if protocol.copy_images else image.path
                 for number, image in enumerate(images, start=1)]  # fmt: skip
        keys = [f"c{number:0{max(3, len(str(len(groups))))}d}" for number in range(1, len(groups) + 1)]
        names = _names(sources)

        def cases(at: Path, paths: Sequence[Path]) -> tuple[ReadingCase, ...]:
            pictures = {
                id(image): _picture(image, path, digest, at)
                for image, path, digest in zip(images, paths, digests, strict=True)
            }
            cases = []
            for key, group in zip(keys, groups, strict=True):
                shown = tuple(pictures[id(image)] for source in group.sources for image in _images(source))
                cases.append(ReadingCase(key, shown, group.texts, group.sides))
            return tuple(cases)

        questions = tuple(AskedQuestion(each.name, each.classes, each.text) for each in protocol.questions)
        entries = _readers(protocol, keys)
        own = cases(folder / COORDINATOR, [image.path for image in images])
        coordinator = Coordinator(
            study="", name=protocol.name, kind=protocol.kind, blinding=protocol.blinding,  # type: ignore[arg-type]
            structures=protocol.structures, questions=questions, cases=own, readers=entries,
            names={key: tuple(name for source in group.sources for name in names[_identity(source)])
                   for key, group in zip(keys, groups, strict=True)},
            tasks={key: group.task for key, group in zip(keys, groups, strict=True) if group.task},
            seed=protocol.seed, version=version,
        )  # fmt: skip
        study = hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(
            coordinator, cases=(), names={case.key: tuple(case.digests) for case in own},
        ))).hexdigest()[:32]  # fmt: skip
        files = []
        for number, entry in enumerate(entries):
            watch(0.8 + 0.2 * number / len(entries), f"writing the file of {entry.reader}")
            path = readers / entry.file
            assignment = Assignment(
                study=study, name=protocol.name, kind=protocol.kind, reader=entry.reader,  # type: ignore[arg-type]
                instruction=protocol.instruction, structures=protocol.structures, questions=questions,
                washout_days=protocol.washout_days, cases=cases(path, paths), places=entry.places,
                version=version,
            )  # fmt: skip
            ReadingFile.create(path, assignment)
            files.append(path)
        data = msgspec.json.format(
            msgspec.json.encode(msgspec.structs.replace(coordinator, study=study)), indent=1
        )
        write_bytes(folder / COORDINATOR, data + b"\n")
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            with suppress(OSError):
                shutil.rmtree(readers)
        raise
    return SetUp(folder / COORDINATOR, tuple(files), len(groups), len(entries[0].places))


def _images(source: CaseSource) -> Sequence[ImageFile | VolumeFile]:
    return source.images if isinstance(source, TaskCase) else (source,)


@dataclass(frozen=True)
class _Group:
    """Sources of a case: an image or task, or two items of a pair, with their task and texts."""

    sources: tuple[CaseSource, ...]
    texts: dict[str, str] = field(default_factory=dict)
    task: str = ""

    @property
    def sides(self) -> tuple[Side, ...]:
        """Items of a pair; empty if both are images."""
        if len(self.sources) == 1 or not any(isinstance(source, TaskCase) for source in self.sources):
            return ()
        return tuple(
            Side(source.texts if isinstance(source, TaskCase) else {}, bool(_images(source)))
            for source in self.sources
        )


def _read_groups(protocol: Protocol, file: Path, watch: Watch) -> list[_Group]:
    """Read the headers of all images, tasks and comparisons; report every unreadable file."""
    sources: list[CaseSource] = []
    comparisons: list[_Group] = []
    problems = []
    for path, step in steps_of(watch, protocol.cases):
        step(0.0, f"reading {path.name}")
        try:
            source = Source(path)
            if protocol.kind == "masks":
                sources += find_volumes(path)
            elif protocol.kind == "pairs" and holds_comparisons(source):
                comparisons += [
                    _Group(case.items, case.texts, case.task) for case in read_comparison_cases(source, step)
                ]
            elif protocol.kind in ("labels", "pairs") and holds_tasks(source):
                tasks = read_task_cases(source, step)
                most = max(len(task.images) for task in tasks)
                if protocol.kind == "pairs" and most > 1:
                    problems.append(f"field cases: {path.name} has items with {most} pictures; expected one")
                sources += tasks
            else:
                sources.append(source.image().file)
        except InputError as error:
            problems.append(f"field cases: {error}")
    if protocol.kind == "pairs":
        groups = comparisons + [_Group(pair) for pair in itertools.combinations(sources, 2)]
    else:
        groups = [
            _Group((source,), source.texts if isinstance(source, TaskCase) else {}) for source in sources
        ]
    if not problems:
        problems = _check_count(protocol, len(sources), len(groups))
    if problems:
        raise TableProblems(file, problems)
    if protocol.pairs is None or protocol.pairs >= len(groups):
        return groups
    chosen = _random(protocol, 0).choice(len(groups), protocol.pairs, replace=False)
    return [groups[index] for index in sorted(chosen.tolist())]


def _check_count(protocol: Protocol, sources: int, groups: int) -> list[str]:
    """Return problems of a protocol that requests more cases or pairs than there are."""
    if protocol.kind == "pairs" and not groups:
        return [f"field cases: contains {counted(sources, 'item')}; expected at least two to compare"]
    if protocol.pairs is not None and protocol.pairs > groups:
        return [f"field pairs: {protocol.pairs} were requested, but there are {groups}"]
    count = min(groups, protocol.pairs or groups)
    repeated = protocol.repeated_cases or 0
    if repeated > count:
        return [f"field repeated_cases: is {repeated}, but there are {counted(count, 'case')}"]
    return []


def _copied(readers: Path, number: int, source: ImageFile | VolumeFile) -> Path:
    """Copy an image to the folder of the reading files, under a neutral name."""
    folder = readers / "images"
    make_folder(folder)
    name = f"image{number:04d}"
    try:
        if isinstance(source, VolumeFile) and (source.path.is_dir() or len(source.files) > 1):
            target = folder / name
            target.mkdir()
            for at, file in enumerate(source.files, start=1):
                shutil.copyfile(file, target / f"{at:05d}{file.suffix}")
            return target
        target = folder / f"{name}{''.join(source.path.suffixes[-2:])}"
        shutil.copyfile(source.path, target)
    except OSError as error:
        raise InputError(f"cannot be copied: {system_reason(error)}", file=source.path) from error
    return target


def _picture(source: ImageFile | VolumeFile, path: Path, digest: str, at: Path) -> Picture:
    stored = stored_path(path, Path(at.absolute().parent.resolve(), at.name))
    if isinstance(source, VolumeFile):
        shape = source.grid.shape
        return Picture(stored, digest, shape[2], shape[1], None, shape, source.identifier)
    return Picture(stored, digest, source.width, source.height, source.pixel_size)


def _identity(source: CaseSource) -> int | str:
    """Return a key that sources of the same item share."""
    return source.name if isinstance(source, TaskCase) and source.is_item else id(source)


def _names(sources: Sequence[CaseSource]) -> dict[int | str, tuple[str, ...]]:
    """Give tasks and images unique names in the collected study; the first picture has the task's name."""
    distinct = {_identity(source): source for source in sources}
    counts = Counter(source.name for source in distinct.values())
    names: dict[str, CaseSource] = {}
    for source in distinct.values():
        name = source.name if counts[source.name] == 1 else f"{source.path.parent.name}/{source.name}"
        while name in names:
            name += "'"
        names[name] = source
    return {
        _identity(source): (
            name,
            *(f"{name} (picture {number})" for number in range(2, len(_images(source)) + 1)),
        )
        for name, source in names.items()
    }


def _readers(protocol: Protocol, keys: Sequence[str]) -> tuple[ReaderEntry, ...]:
    """Draw pseudonyms and every reader's order."""
    count = len(protocol.readers)
    repeated = sorted(
        _random(protocol, 1).choice(len(keys), protocol.repeated_cases or len(keys), replace=False).tolist()
    )
    width = max(2, len(str(count)))
    numbers = _random(protocol, 2).permutation(count) + 1
    used: set[str] = set()
    entries = []
    for index, person in enumerate(protocol.readers):
        reader = f"R{numbers[index]:0{width}d}" if protocol.pseudonyms else person
        chance = _random(protocol, 3 + index)
        places = []
        for session in range(1, protocol.reads + 1):
            members = range(len(keys)) if session == 1 else repeated
            for case in chance.permutation(members).tolist():
                swapped = protocol.kind == "pairs" and bool(chance.integers(2))
                places.append(ScheduledCase(session, keys[case], swapped))
        name = unique_name(file_name_part(reader), used)
        entries.append(ReaderEntry(person, reader, f"{name}{READING_SUFFIX}", tuple(places)))
    return tuple(sorted(entries, key=lambda entry: entry.reader))


def _random(protocol: Protocol, stream: int) -> np.random.Generator:
    return np.random.default_rng([protocol.seed, stream])
