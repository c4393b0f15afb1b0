"""The record of a kind of annotation: everything that the program needs of clicks, masks, labels or pairs.

A kind is one `Kind`, registered once in `raterscope.app.kinds.registry`. Fusions, exports, reports, the table
of annotators and the demo know a kind by its record alone. Its texts are available at once, for help.
Algorithms, functions, report and sample are four records that are imported when needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from raterscope.algorithms.progress import Watch
    from raterscope.algorithms.settings import Algorithm, Settings
    from raterscope.app.annotator_evidence import AnnotatorFunctions
    from raterscope.app.assessment import ComparedItem, Differences, Trust
    from raterscope.app.command_line.arguments import Parser
    from raterscope.app.exports import Export, Writer
    from raterscope.app.formats.sources import Source
    from raterscope.app.nouns import Nouns
    from raterscope.app.outcome import Answer, Inputs
    from raterscope.app.page.contents import Section
    from raterscope.app.review import ReviewState, SampledItem, View
    from raterscope.app.sample_files import Demonstrated, Tools
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.study.kinds import StoredKind
    from raterscope.app.study.records import Item
    from raterscope.app.workers import Workers


Paragraph = tuple[str, str]
"""Heading and text, in the methods section of a report."""


class Plan(Protocol):
    """The algorithms and settings of a run."""

    def as_dict(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""

    def in_words(self) -> str:
        """Describe the methods, for the methods section of a report."""


class Catalogue(NamedTuple):
    """Algorithms that the command line lists below a heading."""

    heading: str
    algorithms: Mapping[str, Algorithm]  # by name
    chosen_by_run: bool = True  # whether ALGORITHM of `raterscope run STUDY ALGORITHM` is one of them


class Summary(NamedTuple):
    """Text about a finished run: notices for stderr, then lines for stdout."""

    notices: Iterable[str]
    lines: Iterable[str]


class Reader(NamedTuple):
    """Reading of a kind's files into a study."""

    # ``recognises(source)`` returns whether a file holds annotations of the kind
    recognises: Callable[[Source], bool]
    # ``read(sources, kind, watch)`` reads files; `kind`: the member of `Kind.file_kinds` that the user named
    read: Callable[[Sequence[Source], str | None, Watch], Any]
    # ``store(contents, study, watch)`` stores them and returns sentences about the imported contents
    store: Callable[[Any, Study, Watch], Sequence[str]]


@dataclass(frozen=True)
class FuseCommand:
    """Description of the command `raterscope fuse KIND`."""

    # summary, description: line in the list of commands, and text of the command's help
    summary: str
    description: str
    examples: tuple[str, ...]  # arguments after `raterscope`
    add_options: Callable[[Parser], None]  # adds the options to the command's parser


def settings_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings that the options of `run` name, as text."""
    return dict(options.settings)


def _nothing_undecided(_study: Study, _state: ReviewState, _watch: Watch) -> Sequence[SampledItem]:
    return ()


def _no_processes(_workers: Workers, _plan: Any, _items: int) -> None:
    return


@dataclass(frozen=True)
class Functions:
    """The functions of a kind: the steps of a run over a study, and uses of its results."""

    # ``make_plan(algorithm, texts)`` makes a plan from a name and the settings as text
    make_plan: Callable[[str, Mapping[str, str]], Plan]
    # makes a plan from the stored settings of a run; raises SettingsError for those of another version
    read_plan: Callable[[Mapping[str, Any]], Plan]
    # ``gather(items, study, plan, hold_truth, watch)`` reads the input of some items
    gather: Callable[[Sequence[int], Study, Any, bool, Watch], Inputs[Any]]
    # ``fuse(inputs, plan, jobs, watch)`` fuses them, without the study; `jobs`: processes, or their number
    fuse: Callable[[Any, Any, int | Workers | None, Watch], Answer[Any, Any, Any]]
    # ``keep(answer, study, watch)`` stores the run and returns its number
    keep: Callable[[Any, Study, Watch], int]
    # ``summarise(answer, study, options, watch)`` describes the results
    summarise: Callable[[Any, Study, argparse.Namespace, Watch], Summary]
    # carries out `raterscope fuse KIND`: fuses files, writes the results and returns the exit status
    fuse_files: Callable[[argparse.Namespace], int]
    # ``annotators_of(study, item, run)`` names the annotators of an item whose annotations a run used
    annotators_of: Callable[[Study, int, RunEntry], Iterable[str | None]]
    # ``compare_runs(item, differences)`` compares an item by two runs and fills in the differences
    compare_runs: Callable[[ComparedItem, Differences], None]
    # ``trust(study, items, watch)`` compares the claims of the runs shown with known answers; None without
    # any
    trust: Callable[[Study, Sequence[int], Watch], Trust | None]
    writers: Mapping[str, Writer]  # by the name of an export
    # ``undecided(study, state, watch)`` lists the answers of the runs shown that the expert has not decided
    undecided: Callable[[Study, ReviewState, Watch], Sequence[SampledItem]] = _nothing_undecided
    # ``start_processes(workers, plan, items)`` starts the processes for a number of items before these are
    # read
    start_processes: Callable[[Workers, Any, int], None] = _no_processes
    # returns the settings that the options of `run` name, as text
    plan_texts: Callable[[argparse.Namespace], dict[str, str]] = settings_of


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """The scope of a kind's part in a report."""

    study: Study
    state: ReviewState  # effect of the current decisions
    items: Sequence[Item]  # the images or questions of the kind whose results are shown; at least one
    options: Mapping[str, Any]  # by name: see `Report.read_options`


class ReportPart(NamedTuple):
    """A kind's part in a report."""

    sections: list[Section]
    runs: Mapping[int, RunEntry]  # by number: all runs that the sections describe
    measures: Sequence[Paragraph] = ()  # definitions of the measures, for the methods section
    # by number: paragraphs about single runs, for the methods section
    of_runs: Mapping[int, Sequence[Paragraph]] = {}
    views: Mapping[int, Sequence[View]] = {}  # by item: spots that were viewed


def _nothing_more(
    _run: RunEntry, _then: ReviewState, _names: Mapping[tuple[str, int], str], _fixed: bool
) -> tuple[str, str]:
    return "Nothing was held fixed.", ""


@dataclass(frozen=True)
class Report:
    """A kind's part in the report of a study."""

    # ``gather(request, watch)`` reads and measures the kind's part in the report
    gather: Callable[[ReportRequest, Watch], ReportPart]
    # converts the parsed options to `ReportRequest.options`
    read_options: Callable[[argparse.Namespace], dict[str, Any]] = lambda _options: {}
    # ``held_fixed(run, decisions then, names of items, fixed)`` gives the sentence for a run without
    # decisions held fixed, and further sentences about inputs of a run besides annotations
    held_fixed: Callable[[RunEntry, ReviewState, Mapping[tuple[str, int], str], bool], tuple[str, str]] = (
        _nothing_more
    )


@dataclass(frozen=True)
class Sample:
    """The sample study of the demo."""

    # ``demonstrate(folder, results, tools, watch)`` makes the sample study if it does not exist, fuses it,
    # and writes its results and a report
    demonstrate: Callable[[Path, Path, Tools, Watch], Demonstrated]
    about: Callable[[Path], str]  # ``about(study path)`` describes the sample's files
    picture: str  # name of the window's picture
    share: float  # share of the demo's time


@dataclass(frozen=True)
class Kind:
    """A kind of annotation: texts that are imported at once, and records that are imported when needed."""

    name: str  # in files, in the study and on the command line: "clicks"
    title: str  # on tabs and in headings: "Clicks"
    nouns: Nouns
    file_kinds: tuple[str, ...]  # contents of its files, as `import --kind` names them
    fuse_command: FuseCommand
    # load_catalogues, load_functions, load_report: import the algorithms, the functions and the report's part
    load_catalogues: Callable[[], Sequence[Catalogue]]
    load_functions: Callable[[], Functions]
    load_report: Callable[[], Report]
    # imports settings that `--list-settings` lists below the algorithms, by heading
    load_further_settings: Callable[[], Mapping[str, type[Settings]]] = dict
    run_options: tuple[str, ...] = ()  # options of the command `run` that only some kinds take
    exports: tuple[Export, ...] = ()  # in the order of the menu
    load_sample: Callable[[], Sample] | None = None  # imports the sample of the demo
    # adds options to the command `report`
    add_report_options: Callable[[Parser], None] = lambda _parser: None
    doubt: str = "disputed"  # state of a detail to review: "disputed", "flagged"
    holds_decisions: bool = True  # whether a fusion holds decisions fixed; otherwise they take effect at once
    uses_programs: bool = True  # whether fusions distinguish annotators that are marked as programs
    # imports the kind's functions on its annotators
    load_annotators: Callable[[], AnnotatorFunctions] | None = None
    # imports the storage of a kind that `study.kinds` does not list
    load_storage: Callable[[], StoredKind] | None = None
    # imports the reader of this kind's files; clicks, masks, labels and pairs are read together
    load_reader: Callable[[], Reader] | None = None

    @property
    def catalogues(self) -> Sequence[Catalogue]:
        """The algorithms, those that `run` accepts first."""
        return self.load_catalogues()

    @property
    def functions(self) -> Functions:
        """The functions, imported when first used."""
        return self.load_functions()

    @property
    def report(self) -> Report:
        """The part in the report of a study, imported when first used."""
        return self.load_report()

    @property
    def by_question(self) -> bool:
        """Whether its items are questions; else they are images."""
        from raterscope.app.study.kinds import STORED

        return STORED[self.name].by_question

    def items(self, study: Study) -> Sequence[Item]:
        """List the items of a study that have annotations of this kind."""
        return study.items().get(self.name, ())
