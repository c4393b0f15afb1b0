"""Set-ups of simulations, with the papers' parameters as defaults where stated, and their files.

This module loads nothing heavy, so that the command line's help appears at once.

References
----------
"OEM-DEM paper": clustering and detection of clicks; "thesis": EM for clicks and for streams of decisions; see
`raterscope.algorithms.clicks`. "Robust fusion paper": masks, see `raterscope.algorithms.masks`. "DynIBCC
paper": labels, see `raterscope.algorithms.labels`. "Position bias paper": pairs, see
`raterscope.algorithms.pairs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from raterscope.algorithms.settings import Settings, choice, integer, number
from raterscope.app.errors import InputError

_MOST = 100_000
_SEED = "Another number draws another realization; the same number gives the same files."

_SCENARIO = "of the scenario"

_count = partial(integer, minimum=1, maximum=_MOST)
_small_count = partial(integer, minimum=1, maximum=10_000)
_rate = partial(number, minimum=0.001, maximum=0.999)
_share = partial(number, minimum=0.0, maximum=1.0)
_large_count = partial(integer, minimum=1, maximum=1_000_000)
_pixels = partial(integer, minimum=32, maximum=2000)
_seed = partial(integer, label="Seed", help=_SEED, minimum=0, maximum=2**31 - 1)


@dataclass(frozen=True)
class OverlappingSettings(Settings):
    """Ten close components of different sizes (OEM-DEM paper, section 3.1)."""

    annotators: int = _count(
        51, "Annotators", "Number of annotators R. OEM-DEM paper, section 3.1: 11, 21, 25, 31, 41, 51."
    )
    fewest: int = _small_count(
        16, "Fewest clicks", "Minimum clicks of one annotator. OEM-DEM paper, section 3.1: 16."
    )
    most: int = _small_count(
        24, "Most clicks", "Maximum clicks of one annotator. OEM-DEM paper, section 3.1: 24."
    )
    scale: float = number(
        200.0, "Scale",
        "Pixels per unit of length. The paper's area is [1, 4] x [0, 5] in unnamed units; "
        "200 makes an image of 600 x 1000 pixels.",
        unit="px", minimum=1.0, maximum=10_000.0,
    )  # fmt: skip
    seed: int = _seed(1)


@dataclass(frozen=True)
class SeparatedSettings(Settings):
    """Fifteen separate components (thesis, section 2.3)."""

    annotators: int = _count(20, "Annotators", "Number of annotators R. Thesis, section 2.3: 20 and 50.")
    components: int = _small_count(15, "Components", "Number of components M. Thesis, section 2.3: 15.")
    fewest: int = _small_count(
        13, "Fewest clicks", "Minimum clicks of one annotator. Thesis, section 2.3: 13."
    )
    most: int = _small_count(17, "Most clicks", "Maximum clicks of one annotator. Thesis, section 2.3: 17.")
    side: float = number(
        1000.0, "Side", "Width and height of the image. Thesis, section 2.3: 1000.",
        unit="px", minimum=1.0, maximum=1e5,
    )  # fmt: skip
    spread: float = number(
        15.0, "Spread", "Standard deviation of a component along an axis. The thesis does not state it.",
        unit="px", minimum=1e-3, maximum=1e4,
    )  # fmt: skip
    separation: float = number(
        100.0, "Separation", "Minimum distance between two centres. The thesis does not state it.",
        unit="px", minimum=0.0, maximum=1e5,
    )  # fmt: skip
    seed: int = _seed(1)


@dataclass(frozen=True)
class VotingSettings(Settings):
    """Votes on clusters by annotators with different sensitivity and specificity (thesis, section 3.1)."""

    annotators: int = _count(11, "Annotators", "Number of annotators R. Thesis, section 3.1: 11.")
    clusters: int = _count(20, "Clusters", "Number of clusters M. Thesis, section 3.1: 20.")
    sensitivity: float = _rate(0.75, "Mean sensitivity", "Mean over annotators. Thesis, section 3.1: 0.75.")
    specificity: float = _rate(0.75, "Mean specificity", "Mean over annotators. Thesis, section 3.1: 0.75.")
    prevalence: float = _share(
        0.5, "Prevalence", "Probability that a cluster is a structure. Thesis, section 3.1: 0.5."
    )
    concentration: float = number(
        8.0, "Concentration",
        "Sum of the two parameters of the Beta distributions that sensitivities and specificities are drawn "
        "from. The thesis does not state it.",
        minimum=0.01, maximum=1e6,
    )  # fmt: skip
    seed: int = _seed(1)


@dataclass(frozen=True)
class DecisionStreamSettings(Settings):
    """Decisions that arrive over time (thesis, sections 3.4 and 5.2).

    Parameters that are not set are those of the scenario.
    """

    scenario: str = choice(
        "first", "Scenario",
        "Thesis, section 3.4: all annotators decide again at every time step; R = 15, M = 10, mean "
        "sensitivity 0.8 and specificity 0.6 (first); 7, 15, 0.9, 0.5 (second); 11, 11, 0.7, 0.7 (third). "
        "Section 5.2: annotators join one by one, up to 50; M = 15, 0.9, 0.7 (joining-first); 10, 0.9, 0.7 "
        "(joining-second); 15, 0.8, 0.6 (joining-third).",
        {
            "first": "decisions repeated, first scenario", "second": "decisions repeated, second scenario",
            "third": "decisions repeated, third scenario", "joining-first": "annotators join, first scenario",
            "joining-second": "annotators join, second scenario",
            "joining-third": "annotators join, third scenario",
        },
    )  # fmt: skip
    times: int = _small_count(
        30, "Time steps",
        "Number of decisions of each annotator on each cluster, if all decide again. Thesis, section 3.4: "
        "converged at t = 30.",
    )  # fmt: skip
    annotators: int | None = _count(
        None, "Annotators", "Number of annotators R; by default that of the scenario.", left_open=_SCENARIO
    )
    clusters: int | None = _count(
        None, "Clusters", "Number of clusters M; by default that of the scenario.", left_open=_SCENARIO
    )
    sensitivity: float | None = _rate(
        None, "Mean sensitivity", "Mean over annotators; by default that of the scenario.",
        left_open=_SCENARIO,
    )  # fmt: skip
    specificity: float | None = _rate(
        None, "Mean specificity", "Mean over annotators; by default that of the scenario.",
        left_open=_SCENARIO,
    )  # fmt: skip
    prevalence: float = _share(
        0.5, "Prevalence", "Probability that a cluster is a structure. Thesis, sections 3.4 and 5.2: 0.5."
    )
    seed: int = _seed(1)


@dataclass(frozen=True)
class ProstateSettings(Settings):
    """Raters who outline a prostate (robust fusion paper, sections 4.1 and 4.2.1).

    The paper's scans are MR, and private; these are simulated CT.
    """

    raters: int = integer(
        7, "Raters",
        "Number of raters; the third leaks into a neighbouring structure, like rater 3 in the paper's "
        "Figure 6. Robust fusion paper, section 4.1: 7.",
        minimum=1, maximum=100,
    )  # fmt: skip
    slices: int = integer(
        160, "Slices", "Robust fusion paper, section 4.1: typically 160.", minimum=8, maximum=1000
    )
    rows: int = _pixels(500, "Rows", "Robust fusion paper, section 4.1: typically 500.")
    columns: int = _pixels(500, "Columns", "Robust fusion paper, section 4.1: typically 500.")
    thickness: float = number(
        0.75, "Slice thickness", "Robust fusion paper, section 4.1: 0.5 to 1.0 mm.",
        unit="mm", minimum=0.1, maximum=10.0,
    )  # fmt: skip
    pixel: float = number(
        0.6, "Pixel size", "Robust fusion paper, section 4.1: 0.4 to 0.8 mm.",
        unit="mm", minimum=0.05, maximum=5.0,
    )  # fmt: skip
    wider: int = integer(
        0, "Second school",
        "Number of raters (the last ones) who include an ambiguous region beside the structure: two "
        "consensuses, as in section 4.3 of the robust fusion paper.",
        minimum=0, maximum=100,
    )  # fmt: skip
    seed: int = _seed(1)


@dataclass(frozen=True)
class CrowdSettings(Settings):
    """A crowd in five communities that scores -1, 1 or 3 (dynamic combination paper, sections 4 and 5)."""

    tasks: int = _large_count(
        963, "Tasks", "Candidates. Dynamic combination paper, section 4: 963.", minimum=2
    )
    annotators: int = _large_count(1705, "Annotators", "Dynamic combination paper, section 4: 1705.")
    fewest: int = _large_count(
        8, "Fewest votes",
        "Minimum votes of one annotator. With the tail 2.04 a crowd of 1705 gives about 26,558 votes on "
        "963 tasks, as in section 11 of the dynamic combination paper, which does not state how they are "
        "distributed.",
    )  # fmt: skip
    tail: float = number(
        2.04, "Tail",
        "Exponent of the Pareto distribution of the numbers of votes: with smaller values, more "
        "annotators have many votes.",
        minimum=0.2, maximum=100.0,
    )  # fmt: skip
    prevalence: float = _rate(
        0.1, "Prevalence",
        "Probability of the positive class. Dynamic combination paper, section 6: 5,134 of 53,925 "
        "observations.",
    )  # fmt: skip
    changing: float = _share(
        0.6, "Share who change",
        "Share of the annotators with 150 votes or more who learn, tire or change suddenly, as in section 8 "
        "of the DynIBCC paper, which does not state a share.",
    )  # fmt: skip
    hard: float = _share(0.1, "Share of hard tasks", "The dynamic combination paper does not state it.")
    seed: int = _seed(1)


@dataclass(frozen=True)
class BiasSettings(Settings):
    """Annotators who compare all pairs, some of them biased to a side (position bias paper, section 3.1)."""

    p1: float = _share(
        0.1, "Incorrect, p1",
        "Probability that a good annotator answers incorrectly. Position bias paper, Tables 1 and 2: 0.1, "
        "0.2, 0.3, 0.4.",
    )  # fmt: skip
    p2: float = _share(
        0.4, "Disturbed, p2",
        "Probability that a biased annotator answers the preferred side. Position bias paper, Tables 1 and "
        "2: 0.4, 0.5, 0.6, 0.7.",
    )  # fmt: skip
    items: int = integer(16, "Items", "Position bias paper, section 3.1: 16.", minimum=2, maximum=2000)
    good: int = _count(100, "Good annotators", "Position bias paper, section 3.1: 100.", minimum=0)
    biased: int = _count(50, "Biased annotators", "Position bias paper, section 3.1: 50.", minimum=0)
    seed: int = _seed(0)


@dataclass(frozen=True)
class TextsSettings(Settings):
    """Short opinions that annotators sort into three classes."""

    texts: int = _large_count(5000, "Texts", "Number of texts.")
    annotators: int = _count(15, "Annotators", "Number of annotators; the last answers at random.", minimum=2)
    votes: int = _small_count(3, "Votes", "Votes on each text, by different annotators.")
    seed: int = _seed(1)


@dataclass(frozen=True)
class SpeciesSettings(Settings):
    """Thirty species in a hierarchy, such as bird/owl/tawny."""

    tasks: int = _large_count(2000, "Photographs", "Number of photographs.")
    annotators: int = _count(
        200, "Annotators", "Number of annotators; their accuracies follow a Beta distribution.", minimum=2
    )
    votes: int = _small_count(10, "Votes", "Of each photograph, by different annotators.")
    seed: int = _seed(1)


@dataclass(frozen=True)
class LargeCrowdSettings(Settings):
    """Very many annotators with a few votes each; ten votes per task."""

    annotators: int = _count(
        20_000, "Annotators", "Number of annotators; one in ten answers at random.", minimum=10
    )
    votes: int = _small_count(3, "Votes", "Votes of each annotator.")
    seed: int = _seed(1)


@dataclass(frozen=True)
class CopiersSettings(Settings):
    """Annotators; some copy the answers of another annotator."""

    tasks: int = _large_count(600, "Tasks", "Number of tasks; every annotator labels all of them.")
    annotators: int = _count(25, "Annotators", "Number of annotators, including the copiers.", minimum=2)
    copiers: int = _count(
        5, "Copiers", "Number of copiers; in 95 % of tasks they answer as the first of them."
    )
    seed: int = _seed(1)


@dataclass(frozen=True)
class GradesSettings(Settings):
    """Grades from 1 to 5 with thresholds and noise of each annotator."""

    tasks: int = _large_count(1000, "Tasks", "Number of graded tasks.")
    annotators: int = _count(
        20, "Annotators", "Number of annotators; some grade higher, some lower.", minimum=2
    )
    votes: int = _small_count(6, "Votes", "Votes on each task, by different annotators.")
    seed: int = _seed(1)


@dataclass(frozen=True)
class QuestionsSettings(Settings):
    """Three questions on each photograph."""

    tasks: int = _large_count(800, "Photographs", "Number of photographs.")
    annotators: int = _count(
        20, "Annotators", "Number of annotators; they answer all questions on a photograph.", minimum=2
    )
    votes: int = _small_count(5, "Votes", "Of each photograph, by different annotators.")
    seed: int = _seed(1)


@dataclass(frozen=True)
class JudgesSettings(Settings):
    """Judges who compare the answers of eight language models, in both orders."""

    judges: int = _count(30, "Judges", "Number of judges, language models or persons.")
    always_a: int = _count(4, "Always A", "Number of judges who always choose the first answer.", minimum=0)
    prompts: int = _small_count(
        60, "Prompts", "Number of prompts; each judge compares two answers to each, in both orders."
    )
    seed: int = _seed(1)


@dataclass(frozen=True)
class Setup:
    """One set-up that can be simulated."""

    name: str  # name on the command line
    title: str
    kind: str  # kind of annotation: "clicks"
    summary: str  # simulated data, and the paper
    settings: type[Settings]
    size: Callable[[Any], float]  # returns the maximum size of a simulation with given settings, in `unit`
    most: int  # largest allowed `size`
    unit: str


_LISTED = (
    Setup(
        "overlapping", "Close components of different sizes", "clicks",
        "Clicks on ten close Gaussian components of three sizes, and random clicks: OEM-DEM paper, "
        "section 3.1, Figures 1 and 2. The paper does not state the positions of the components: they are "
        "uniform.",
        OverlappingSettings, lambda s: s.annotators * s.most, 5_000_000, "clicks",
    ),
    Setup(
        "separated", "Separated components", "clicks",
        "Clicks on fifteen Gaussian components that do not overlap: thesis, section 2.3, Table 2.1.",
        SeparatedSettings, lambda s: s.annotators * s.most, 5_000_000, "clicks",
    ),
    Setup(
        "voting", "Votes on clusters", "labels",
        "Votes of annotators who each have a sensitivity and a specificity: thesis, section 3.1, "
        "Figure 3.1. One vote for each annotator and cluster, as the detection stage has them.",
        VotingSettings, lambda s: s.annotators * s.clusters, 5_000_000, "votes",
    ),
    Setup(
        "streams", "Decisions that arrive over time", "labels",
        "Annotators who decide again and again, or who join one by one: thesis, sections 3.4 and 5.2, "
        "Figures 3.2 to 3.4 and 5.1 to 5.3.",
        DecisionStreamSettings, lambda s: (s.annotators or 50) * (s.clusters or 15) * s.times, 5_000_000,
        "votes",
    ),
    Setup(
        "prostate", "Outlines of a prostate", "masks",
        "A simulated CT volume and the masks of seven raters, one of which leaks: in place of the private "
        "ProstateBin data of the robust fusion paper, sections 4.1 and 4.2.1, Figures 5 to 7.",
        ProstateSettings,
        lambda s: s.slices * s.rows * s.columns * (s.raters + 10), 1_500_000_000,
        "voxels of all raters",
    ),
    Setup(
        "crowd", "A crowd in five communities", "labels",
        "Scores -1, 1 and 3 of a crowd in five communities, some of whose members change: in place of the "
        "Galaxy Zoo Supernovae data of the dynamic combination paper, sections 4, 5 and 8.",
        CrowdSettings,
        lambda s: min(s.tasks, 3000) * s.annotators / max(s.tail, 1.0), 20_000_000, "votes",
    ),
    Setup(
        "bias", "Annotators biased to a side", "pairs",
        "Comparisons of all pairs of 16 items by 150 annotators, 50 of them biased to a side: position bias "
        "paper, section 3.1, Tables 1 and 2.",
        BiasSettings,
        lambda s: (s.good + s.biased) * s.items * (s.items - 1) / 2, 5_000_000, "comparisons",
    ),
    Setup(
        "texts", "Texts with 15 annotators", "labels",
        "Short opinions in three classes. One annotator answers at random.",
        TextsSettings, lambda s: s.texts * s.votes, 5_000_000, "votes",
    ),
    Setup(
        "species", "Thirty species with 200 annotators", "labels",
        "Classes in a hierarchy (bird/owl/tawny). Mistakes are mostly within a family.",
        SpeciesSettings, lambda s: s.tasks * s.votes, 5_000_000, "votes",
    ),
    Setup(
        "large-crowd", "20,000 annotators with three votes each", "labels",
        "A few votes of each annotator, ten on each task. One annotator in ten answers at random.",
        LargeCrowdSettings, lambda s: s.annotators * s.votes, 5_000_000, "votes",
    ),
    Setup(
        "copiers", "A ring of copiers", "labels",
        "Annotators; five copy the answers of a careless annotator.",
        CopiersSettings, lambda s: s.tasks * s.annotators, 5_000_000, "votes",
    ),
    Setup(
        "grades", "Grades from 1 to 5", "labels",
        "Ordered classes: each annotator has thresholds and noise of their own.",
        GradesSettings, lambda s: s.tasks * s.votes, 5_000_000, "votes",
    ),
    Setup(
        "questions", "Several questions on each photograph", "labels",
        "An export with three questions, each with its own answers.",
        QuestionsSettings, lambda s: 3 * s.tasks * s.votes, 5_000_000, "votes",
    ),
    Setup(
        "judges", "Judges of language models", "pairs",
        "Comparisons of eight models by 30 judges with prompts, answers and ties, each in both orders. Four "
        "judges always choose A.",
        JudgesSettings, lambda s: 2 * s.judges * s.prompts, 1_000_000, "comparisons",
    ),
)  # fmt: skip

SETUPS: Mapping[str, Setup] = {setup.name: setup for setup in _LISTED}


def find_setup(name: str) -> Setup:
    """Return the set-up with this name. Raises `InputError` if there is none."""
    if name not in SETUPS:
        raise InputError(f"{name!r} is not a set-up; expected one of {', '.join(SETUPS)}")
    return SETUPS[name]


def check_size(setup: Setup, settings: Settings) -> None:
    """Refuse empty ranges of parameters, and simulations that would be too large."""
    values = settings.as_dict()
    if values.get("fewest", 0) > values.get("most", values.get("fewest", 0)):
        raise InputError(
            f"fewest is {values['fewest']} and most is {values['most']}; expected fewest <= most"
        )
    if values.get("wider", 0) > values.get("raters", 0):
        raise InputError(f"wider is {values['wider']}; expected at most the {values['raters']} raters")
    if "good" in values and values["good"] + values["biased"] < 1:
        raise InputError("good and biased are 0; expected at least one annotator")
    size = setup.size(settings)
    if size > setup.most:
        raise InputError(f"{setup.name} would draw {size:,.0f} {setup.unit}; expected at most {setup.most:,}")


@dataclass(frozen=True)
class SimulatedFiles:
    """Files of a simulation: data, truth and other truth."""

    data: tuple[Path, ...]  # annotations, and their images
    truth: tuple[Path, ...] = ()  # the truth that can be imported, and compared with by `fuse --truth`
    # other ground truth: on annotators, components, or the order of items
    other_truth: tuple[Path, ...] = ()
    radius: float | None = None  # largest distance of a detection from a true position, pixels
    # output to its class, if classes differ from the outputs
    classes: Mapping[str, str] = field(default_factory=dict)
    structure: str | None = None  # structure that the masks show
