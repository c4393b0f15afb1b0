"""The record of a kind of annotation: everything that the program asks of clicks, masks, labels or pairs.

A kind is one `Kind`, registered once in `raterscope.app.kinds.registry`. The command line, the report, the
import, the demo and the window ask the record and never branch by the name of a kind. The functions of a
record import what they need when they are called, so that a record costs nothing before it is asked.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from raterscope.algorithms.catalogue import Algorithm
    from raterscope.algorithms.progress import Watch
    from raterscope.algorithms.settings import Settings
    from raterscope.app.command_line.arguments import Parser
    from raterscope.app.comparison import ComparedItem, Differences
    from raterscope.app.exports import Export
    from raterscope.app.outcome import Answer, Inputs
    from raterscope.app.page.contents import Section
    from raterscope.app.review import ReviewState, View
    from raterscope.app.sample_files import Demonstrated, Tools
    from raterscope.app.study import RunEntry, Study
    from raterscope.app.study.records import Item
    from raterscope.app.trust import Trust

__all__ = [
    "Catalogue", "FuseCommand", "Kind", "Paragraph", "Plan", "Report", "ReportPart", "ReportRequest", "Run",
    "Sample", "Summary",
]  # fmt: skip

Paragraph = tuple[str, str]
"""Heading and text, in the methods section of a report."""


class Plan(Protocol):
    """The algorithms and settings of a run."""

    def as_dict(self) -> dict[str, Any]:
        """Give the settings, ready for JSON."""

    def in_words(self) -> str:
        """Describe the methods, for the methods section of a report."""


class Catalogue(NamedTuple):
    """Algorithms that the command line lists below a heading.

    Attributes
    ----------
    heading : str
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


@dataclass(frozen=True)
class FuseCommand:
    """The command `raterscope fuse KIND`.

    Attributes
    ----------
    summary, description : str
        One line for the list of commands, and the text of its own help.
    examples : tuple of str
        What stands after `raterscope`.
    add_options : callable
        Adds the options to the command's parser.
    fuse_files : callable
        Fuses the files that the options name and writes the results; gives the exit status.
    """

    summary: str
    description: str
    examples: tuple[str, ...]
    add_options: Callable[[Parser], None]
    fuse_files: Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Run:
    """The steps of a run over a study, in their order.

    Attributes
    ----------
    catalogues : callable
        Gives the algorithms, the ones that `run` names first.
    make_plan : callable
        Makes a plan from the options `algorithm`, `detector`, `settings` and `hold_truth` of `run`.
    read_plan : callable
        Makes a plan from the stored settings of a run; raises SettingsError for those of another version.
    gather : callable
        ``gather(items, study, plan, hold_truth, watch)`` reads the input of some items.
    fuse : callable
        ``fuse(inputs, plan, jobs, watch)`` fuses them, without the study.
    keep : callable
        ``keep(answer, study, watch)`` stores the run and gives its number.
    summarise : callable
        ``summarise(answer, study, options, seconds, watch)`` says what came out.
    shared_settings : callable
        Gives the settings that every algorithm takes; None where there are none.
    """

    catalogues: Callable[[], Sequence[Catalogue]]
    make_plan: Callable[[argparse.Namespace], Plan]
    read_plan: Callable[[Mapping[str, Any]], Plan]
    gather: Callable[[Sequence[int], Study, Any, bool, Watch], Inputs[Any]]
    fuse: Callable[[Any, Any, int | None, Watch], Answer[Any, Any, Any]]
    keep: Callable[[Any, Study, Watch], int]
    summarise: Callable[[Any, Study, argparse.Namespace, float, Watch], Summary]
    shared_settings: Callable[[], type[Settings] | None] = lambda: None


@dataclass(frozen=True, eq=False)
class ReportRequest:
    """What a report asks of a kind.

    Attributes
    ----------
    study : Study
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
    """What a kind contributes to a report.

    Attributes
    ----------
    sections : list of Section
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


def _no_options(_parser: Parser) -> None:
    """Add no options."""


def _no_values(_options: argparse.Namespace) -> dict[str, Any]:
    """Read no options."""
    return {}


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
        ``gather(request, watch)`` reads and measures what the report tells of the kind.
    add_options : callable
        Adds options to the command `report`.
    read_options : callable
        Makes `ReportRequest.options` of them.
    held_fixed : callable
        ``held_fixed(run, decisions then, names of items, fixed)`` gives the sentence for a run in which
        no decision was held fixed, and further sentences about what a run was given besides annotations.
    """

    gather: Callable[[ReportRequest, Watch], ReportPart]
    add_options: Callable[[Parser], None] = _no_options
    read_options: Callable[[argparse.Namespace], dict[str, Any]] = _no_values
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
    """A kind of annotation.

    Attributes
    ----------
    name : str
        In files, in the study and on the command line: "clicks".
    title : str
        On tabs and in headings: "Clicks".
    item : str
        What one item is called in reports: "image", "case", "question".
    by_question : bool
        Whether the items are questions; else they are images.
    file_kinds : tuple of str
        What its files may hold, as `import --kind` names it.
    detail : str
        What a fusion decides on within an item: "detection", "region", "task", "annotator".
    doubt : str
        State of a detail that the expert should look at: "disputed", "flagged".
    run : Run
    fuse_command : FuseCommand
    trust : callable
        ``trust(study, items, watch)`` compares the claims of the runs shown with what is known; None where
        nothing can be compared.
    annotators_of : callable
        ``annotators_of(study, item, run)`` names the annotators whose annotations of an item a run had.
    compare_runs : callable
        ``compare_runs(item, differences)`` compares an item by two runs and fills in the differences.
    report : Report
    exports : tuple of Export
        In the order of the menu.
    sample : Sample or None
    """

    name: str
    title: str
    item: str
    by_question: bool
    file_kinds: tuple[str, ...]
    detail: str
    run: Run
    fuse_command: FuseCommand
    trust: Callable[[Study, Sequence[int], Watch], Trust | None]
    annotators_of: Callable[[Study, int, RunEntry], Iterable[str | None]]
    compare_runs: Callable[[ComparedItem, Differences], None]
    report: Report
    exports: tuple[Export, ...] = ()
    sample: Sample | None = None
    doubt: str = "disputed"

    def items(self, study: Study) -> Sequence[Item]:
        """List the items of a study that have annotations of this kind."""
        return study.items().get(self.name, ())
