"""The record of a kind of annotation: everything that the program needs of clicks, masks, labels or pairs.

A kind is one `Kind`, registered once in `raterscope.app.kinds.registry`. The command line, the report, the
import, the demo and the window use the record and never branch by the name of a kind. Its words are there at
once, for help texts. Algorithms, functions, report and sample are four records that it imports when needed.
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
    from raterscope.app.outcome import Answer, Inputs
    from raterscope.app.page.contents import Section
    from raterscope.app.review import ReviewState, SampledItem, View
    from raterscope.app.sample_files import Demonstrated, Tools
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.study.kinds import StoredKind
    from raterscope.app.study.records import Item


Paragraph = tuple[str, str]
"""Heading and text, in the methods section of a report."""


class Plan(Protocol):
    """The algorithms and settings of a run."""

    def as_dict(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""

    def in_words(self) -> str:
        """Describe the methods, for the methods section of a report."""


class Catalogue(NamedTuple):
    """Algorithms that the command line lists below a heading.

    Attributes
    ----------
    algorithms : mapping of name to Algorithm
    chosen_by_run : bool
        Whether `raterscope run STUDY ALGORITHM` names one of them.
    """

    heading: str
    algorithms: Mapping[str, Algorithm]
    chosen_by_run: bool = True


class Summary(NamedTuple):
    """Text about a finished run: notices for stderr, then lines for stdout."""

    notices: Iterable[str]
    lines: Iterable[str]


class Catalogues(NamedTuple):
    """All algorithms of a kind.

    Attributes
    ----------
    lists : sequence of Catalogue
        The ones that `run` names come first.
    shared_settings : type of Settings, optional
        Settings that every algorithm takes.
    title : callable
        ``title(algorithm)`` names the algorithm of a run in the history.
    """

    lists: Sequence[Catalogue]
    shared_settings: type[Settings] | None = None
    title: Callable[[str], str] = str


class Reader(NamedTuple):
    """Reading of a kind's files into a study.

    Attributes
    ----------
    recognises : callable
        ``recognises(source)`` returns whether a file holds annotations of the kind.
    read : callable
        ``read(sources, kind, watch)`` reads files; `kind` is one of `Kind.file_kinds` where one was named.
    store : callable
        ``store(what was read, study, watch)`` stores it and returns what came in, a sentence each.
    """

    recognises: Callable[[Source], bool]
    read: Callable[[Sequence[Source], str | None, Watch], Any]
    store: Callable[[Any, Study, Watch], Sequence[str]]


@dataclass(frozen=True)
class FuseCommand:
    """Description of the command `raterscope fuse KIND`.

    Attributes
    ----------
    summary, description : str
        One line for the list of commands, and the text of its own help.
    examples : tuple of str
        Arguments after `raterscope`.
    add_options : callable
        Adds the options to the command's parser.
    """

    summary: str
    description: str
    examples: tuple[str, ...]
    add_options: Callable[[Parser], None]


def settings_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the settings that the options of `run` name, as text."""
    return dict(options.settings)


def _nothing_undecided(_study: Study, _state: ReviewState, _watch: Watch) -> Sequence[SampledItem]:
    return ()


@dataclass(frozen=True)
class Functions:
    """The functions of a kind: the steps of a run over a study, and uses of its results.

    Attributes
    ----------
    make_plan : callable
        ``make_plan(algorithm, texts)`` makes a plan from a name and the settings as text.
    read_plan : callable
        Makes a plan from the stored settings of a run; raises SettingsError for those of another version.
    gather : callable
        ``gather(items, study, plan, hold_truth, watch)`` reads the input of some items.
    fuse : callable
        ``fuse(inputs, plan, jobs, watch)`` fuses them, without the study.
    keep : callable
        ``keep(answer, study, watch)`` stores the run and returns its number.
    summarise : callable
        ``summarise(answer, study, options, seconds, watch)`` describes the results.
    fuse_files : callable
        Carries out `raterscope fuse KIND`: fuses files, writes the results and returns the exit status.
    annotators_of : callable
        ``annotators_of(study, item, run)`` names the annotators whose annotations of an item a run had.
    compare_runs : callable
        ``compare_runs(item, differences)`` compares an item by two runs and fills in the differences.
    trust : callable
        ``trust(study, items, watch)`` compares the claims of the runs shown with what is known; None where
        nothing can be compared.
    undecided : callable
        ``undecided(study, state, watch)`` lists the answers of the runs shown that the expert did not decide.
    writers : mapping of the name of an export to Writer
    plan_texts : callable
        Returns the settings that the options of `run` name, as text.
    """

    make_plan: Callable[[str, Mapping[str, str]], Plan]
    read_plan: Callable[[Mapping[str, Any]], Plan]
    gather: Callable[[Sequence[int], Study, Any, bool, Watch], Inputs[Any]]
    fuse: Callable[[Any, Any, int | None, Watch], Answer[Any, Any, Any]]
    keep: Callable[[Any, Study, Watch], int]
    summarise: Callable[[Any, Study, argparse.Namespace, float, Watch], Summary]
    fuse_files: Callable[[argparse.Namespace], int]
    annotators_of: Callable[[Study, int, RunEntry], Iterable[str | None]]
    compare_runs: Callable[[ComparedItem, Differences], None]
    trust: Callable[[Study, Sequence[int], Watch], Trust | None]
    writers: Mapping[str, Writer]
    undecided: Callable[[Study, ReviewState, Watch], Sequence[SampledItem]] = _nothing_undecided
    plan_texts: Callable[[argparse.Namespace], dict[str, str]] = settings_of


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """The scope of a kind's part in a report.

    Attributes
    ----------
    state : ReviewState
        The decisions as they stand.
    items : sequence of Item
        The images or questions of the kind whose results are shown; at least one.
    options : mapping of name to value
        See `Report.read_options`.
    """

    study: Study
    state: ReviewState
    items: Sequence[Item]
    options: Mapping[str, Any]


class ReportPart(NamedTuple):
    """A kind's part in a report.

    Attributes
    ----------
    runs : mapping of number to RunEntry
        All runs that the sections describe.
    measures : sequence of Paragraph
        Definitions of the measures, for the methods section.
    of_runs : mapping of number to sequence of Paragraph
        Paragraphs about single runs, for the methods section.
    views : mapping of item to sequence of View
        Spots that were viewed.
    """

    sections: list[Section]
    runs: Mapping[int, RunEntry]
    measures: Sequence[Paragraph] = ()
    of_runs: Mapping[int, Sequence[Paragraph]] = {}
    views: Mapping[int, Sequence[View]] = {}


def _nothing_more(
    _run: RunEntry, _then: ReviewState, _names: Mapping[tuple[str, int], str], _fixed: bool
) -> tuple[str, str]:
    return "Nothing was held fixed.", ""


@dataclass(frozen=True)
class Report:
    """A kind's part in the report of a study.

    Attributes
    ----------
    gather : callable
        ``gather(request, watch)`` reads and measures the kind's part in the report.
    read_options : callable
        Makes `ReportRequest.options` of them.
    held_fixed : callable
        ``held_fixed(run, decisions then, names of items, fixed)`` gives the sentence for a run in which
        no decision was held fixed, and further sentences about what a run was given besides annotations.
    """

    gather: Callable[[ReportRequest, Watch], ReportPart]
    read_options: Callable[[argparse.Namespace], dict[str, Any]] = lambda _options: {}
    held_fixed: Callable[[RunEntry, ReviewState, Mapping[tuple[str, int], str], bool], tuple[str, str]] = (
        _nothing_more
    )


@dataclass(frozen=True)
class Sample:
    """The sample study of the demo.

    Attributes
    ----------
    demonstrate : callable
        ``demonstrate(folder, results, tools, watch)`` makes the sample study where there is none yet, fuses
        it and writes its results and a report.
    about : callable
        ``about(study path)`` describes the sample's files.
    picture : str
        Name of the window's picture.
    share : float
        Share of the time that it takes of a demo of four kinds.
    """

    demonstrate: Callable[[Path, Path, Tools, Watch], Demonstrated]
    about: Callable[[Path], str]
    picture: str
    share: float


@dataclass(frozen=True)
class Kind:
    """A kind of annotation: words that are imported at once, and records that are imported when needed.

    Attributes
    ----------
    name : str
        In files, in the study and on the command line: "clicks".
    title : str
        On tabs and in headings: "Clicks".
    item : str
        Name of one item in reports: "image", "case", "question".
    by_question : bool
        Whether the items are questions; else they are images.
    file_kinds : tuple of str
        Contents of its files, as `import --kind` names them.
    detail : str
        Unit of decisions within an item: "detection", "region", "task", "annotator".
    load_catalogues, load_functions, load_report : callable
        Import the algorithms, the functions and the report's part.
    exports : tuple of Export
        In the order of the menu.
    load_sample : callable, optional
        Imports the sample of the demo.
    add_report_options : callable
        Adds options to the command `report`.
    doubt : str
        State of a detail that the expert should look at: "disputed", "flagged".
    holds_decisions : bool
        Whether a fusion holds decisions fixed; otherwise they take effect at once.
    load_annotators : callable, optional
        Imports what the kind knows of its annotators.
    load_storage : callable, optional
        Imports how the study stores a kind that `study.kinds` does not list.
    load_reader : callable, optional
        Imports what reads files of this kind; clicks, masks, labels and pairs are read together.
    """

    name: str
    title: str
    item: str
    by_question: bool
    file_kinds: tuple[str, ...]
    detail: str
    fuse_command: FuseCommand
    load_catalogues: Callable[[], Catalogues]
    load_functions: Callable[[], Functions]
    load_report: Callable[[], Report]
    exports: tuple[Export, ...] = ()
    load_sample: Callable[[], Sample] | None = None
    add_report_options: Callable[[Parser], None] = lambda _parser: None
    doubt: str = "disputed"
    holds_decisions: bool = True
    load_annotators: Callable[[], AnnotatorFunctions] | None = None
    load_storage: Callable[[], StoredKind] | None = None
    load_reader: Callable[[], Reader] | None = None

    @property
    def catalogues(self) -> Sequence[Catalogue]:
        """The algorithms."""
        return self.load_catalogues().lists

    @property
    def functions(self) -> Functions:
        """The functions, imported when first used."""
        return self.load_functions()

    @property
    def report(self) -> Report:
        """The part in the report of a study, imported when first used."""
        return self.load_report()

    def items(self, study: Study) -> Sequence[Item]:
        """List the items of a study that have annotations of this kind."""
        return study.items().get(self.name, ())
