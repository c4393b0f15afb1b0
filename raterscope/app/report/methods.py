"""The methods section: every algorithm with source and settings, what was held fixed, what figures mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from raterscope.algorithms.settings import SettingsError
from raterscope.app.errors import counted, plain
from raterscope.app.kinds.masks.report.case_figures import Figures
from raterscope.app.kinds.registry import KINDS
from raterscope.app.page.contents import Prose, Section
from raterscope.app.page.runs import flat
from raterscope.app.review import Decision, ReviewState, fold
from raterscope.app.study import RunEntry
from raterscope.resources.bibliography import cite, cited_keys, references_text
from raterscope.text.numbers import part_of_one

__all__ = ["methods_section"]

Paragraph = tuple[str, str]

_TIED = re.compile(r"\btie[sd]?\b", re.IGNORECASE)

_MEASURES = (
    (
        "Dice",
        "2 |A and B| / (|A| + |B|) ([@dice1945]), counted in voxels: 1 where both masks are the same, 0 "
        "where they have nothing in common.",
    ),
    (
        "HD, HD95",
        "A mask's surface is made of its voxels that share a face with one outside. The Hausdorff "
        "distance HD is the largest distance from a surface voxel of one mask to the nearest of the other, "
        "either way, between centres of voxels; HD95 is the larger of the 95th percentiles each way.",
    ),
    (
        "Sensitivity, specificity",
        "The share of the consensus that the rater marks, and the share of the rest of the fused box "
        "that the rater leaves out.",
    ),
    (
        "Doubt",
        "Of a voxel 1 \N{MINUS SIGN} |2 p \N{MINUS SIGN} 1|, for the probability p that it belongs to the "
        "structure or, where that gives more, the share of raters who mark it; of a region the sum over its "
        "voxels.",
    ),
    (
        "Disputed region",
        "Where some rater's outline is farther from the consensus's than 1.5 mm, 1.5 times a voxel's side "
        "in the plane, or 8 % of the radius of a ball as large as the consensus, whichever is most; with "
        "the voxels about it on which anybody differs.",
    ),
    (
        "Agreement",
        "Dice of every pair of raters; Fleiss' kappa ([@fleiss1971]) and Krippendorff's alpha for "
        "nominal labels ([@krippendorff2018]) over the voxels stated with them.",
    ),
)


_MEASURES_OF_LABELS = (
    (
        "Confusion matrix",
        "For each true class the probability of each label that an annotator may give: a Dirichlet "
        "distribution a row, of prior pseudo-counts and the votes weighed by the tasks' probabilities. "
        "Intervals, 2.5 to 97.5 %, are those of a Beta distribution; their variance includes sampling and "
        "the doubt about the tasks' classes, in part shared by all votes.",
    ),
    (
        "Doubt of a task",
        "The entropy of its probabilities over that of equal ones: 0 certain, 1 all classes alike.",
    ),
    (
        "Communities",
        "Annotators' confusion matrices compared by the Hellinger distance of their rows, and the network of "
        "their similarities taken apart ([@simpson2013], section 5; [@psorakis2011], [@blondel2008]). By "
        "default the distance of equation 32 is multiplied by a scale, and the factors are updated by the "
        "minimum of a bound on the objective, tempered by the number of annotators. The printed version, "
        "with a scale of 1 and updates that may raise the objective, is a setting.",
    ),
    (
        "ROC curves by cross-validation",
        "The known tasks are divided into folds, every class evenly; each fold is predicted by a run that "
        "was given the truths of the others ([@simpson2013], section 4). Intervals of areas are those of "
        "[@delong1988].",
    ),
    (
        "Rates over time",
        "Sensitivity and specificity for one class as votes come, by recursive EM, an incremental Newton "
        "step, EM on all votes so far, and decisions by the rates that are known ([@diazvilor2017], "
        "chapters 3 and 5). Unlike printed, each step also looks at the votes afresh, and rates have a Beta "
        "prior.",
    ),
)


_MEASURES_OF_PAIRS = (
    (
        "Model of a choice",
        "The score of the item on the left, less that of the item on the right, and the annotator's bias to "
        "a side, and noise ([@xu2016]). Scores and biases are those of least "
        "squares, intervals those of Student's t at 95 %.",
    ),
    (
        "Flip test",
        "Each answer less what the scores expect, which are those without the annotator's own answers. If "
        "sides were drawn at random, each such residual of an unbiased annotator may as well have the other "
        "sign; their sum is compared with all patterns of signs ([@lugannani1980])"
        ". Where no answer is a tie, this probability is averaged with that of the choice model, which is "
        "sharper with few answers. Flagged is whose q value ([@benjamini1995])"
        " is not above the rate, unless the crowd as a whole shows no bias "
        "([@simes1986], [@fisher1932]). An annotator is not decidable if their answers could not reveal a "
        "bias that matters.",
    ),
    (
        "Draws of knockoffs",
        "Each annotator gets a copy made by chance that is as much like the others and has no bias of its "
        "own. Flagged is whose bias comes in earlier on the path than the copies' do, so far that few of "
        "those who are flagged can be copies' equals ([@barber2015]).",
    ),
    (
        "Decisions on annotators",
        "Whom the expert flags has the bias taken out of the ranking too, whom the expert clears has not. "
        "What is promised is of the run's choice, before the expert's.",
    ),
    (
        "Match and ground truth",
        "The match of an annotator is the share of answers that go with the ranking. [@xu2016], section 3.3, "
        "takes the ranking of all answers; the corrected one, with biases taken out, stands beside it. A "
        "ranking is compared with a known one by Kendall's tau-b ([@kendall1938]).",
    ),
    (
        "Inconsistency",
        "The share of the choices' sum of squares that no scores explain: annotators contradict each other "
        "on the same two items, or a beats b, b beats c and c beats a ([@jiang2011])"
        ".",
    ),
)


def methods_section(
    runs: Sequence[RunEntry],
    figures: Sequence[Figures],
    decisions: Sequence[Decision],
    items: Mapping[tuple[str, int], str],
) -> Section:
    """Tell how everything in the report was made.

    Parameters
    ----------
    runs : sequence of RunEntry
        All that the report tells of.
    figures : sequence of Figures
        Of masks.
    decisions : sequence of Decision
        The whole journal.
    items : mapping of kind and number to name
    """
    paragraphs: list[Paragraph] = []
    for run in runs:
        paragraphs.append((f"Run {run.id}", plan_in_words(run)))
        paragraphs += _about(run, [one for one in figures if one.run.id == run.id], decisions, items)
    if figures:
        paragraphs += _MEASURES
    if any(run.kind == "labels" for run in runs):
        paragraphs += _MEASURES_OF_LABELS
    if any(run.kind == "pairs" for run in runs):
        paragraphs += _MEASURES_OF_PAIRS
    return Section(
        "Methods", [Prose([(name, cite(words)) for name, words in paragraphs])], _references(paragraphs)
    )


def plan_in_words(run: RunEntry) -> str:
    """Describe the algorithms and settings; those of another version as they are stored."""
    try:
        return KINDS[run.kind].run.read_plan(run.settings).in_words()
    except SettingsError:
        stored = ", ".join(f"{name} {value}" for name, value in flat(run.settings))
        return f"{plain(run.algorithm)}, by another version of Raterscope, with {plain(stored, 2000)}."


def _references(paragraphs: Sequence[Paragraph]) -> list[Section]:
    """List the works that the paragraphs cite."""
    keys = cited_keys(words for _, words in paragraphs)
    return [Section("References", [Prose([("", line) for line in references_text(keys)])])] if keys else []


_TEACHING = (
    " With the crowd's prior, decisions teach the other spots by their likelihood. It allows for wrong "
    "decisions, and for an expert who records rejections only or acceptances only: which it is, is inferred "
    "from the spots that were viewed and left without a decision. Without a record of views, the most "
    "disputed spots are taken to be viewed first. As far as decisions were recorded by their outcome, the "
    "model of the votes is not fitted to them, as the spots recorded are no sample of those alike."
)


_SCORED = ("images", "detections")


def _about(
    run: RunEntry,
    figures: Sequence[Figures],
    decisions: Sequence[Decision],
    items: Mapping[tuple[str, int], str],
) -> list[Paragraph]:
    then = fold([one for one in decisions if one.id <= run.known])
    fixed = []
    for number in run.items:
        settled = then.settled(run.kind, number)
        if settled and (run.kind, number) in items:
            fixed.append(f"{settled} of {plain(items[run.kind, number])}")
    controls = _controls(run, then, items)
    held = (
        f"What the expert had settled was held fixed: {', '.join(fixed)}."
        if fixed
        else ("No decided spot was held fixed." if controls else "Nothing was held fixed.")
    )
    if fixed and run.kind == "clicks":
        held += _TEACHING
    viewed = run.log.get("viewed")
    if isinstance(viewed, int) and viewed > 0:
        held += (
            f" {counted(viewed, 'spot')} {'was' if viewed == 1 else 'were'} known to have been viewed and "
            "left without a decision."
        )
    held += controls + _scores(run)
    others = run.log.get("others")
    if isinstance(others, int) and others > 0:
        held += f" {counted(others, 'other image')}, as fused in earlier runs, taught the crowd's rates too."
    if run.excluded:
        held += f" Left out: {', '.join(plain(name, 40) for name in run.excluded)}."
    if run.weights:
        held += f" {_weights(run, then)}"
    seeds = [value for name, value in flat(run.settings) if name == "seed"]
    seed = run.seed if run.seed is not None else (seeds[0] if seeds else None)
    chance = (
        "No random numbers are used." if seed is None else f"Random numbers come from the seed {plain(seed)}."
    )
    versions = ", ".join(f"{plain(name)} {plain(version)}" for name, version in run.versions.items())
    said = [
        ("Held fixed", held),
        ("Chance", chance),
        ("Versions", f"{versions}. Input {plain(run.digest, 90)}."),
    ]
    ties = _ties(figures)
    if ties:
        said.insert(1, ("Ties", ties))
    return said


def _scores(run: RunEntry) -> str:
    """Say that a program's scores were weighed in a run of clicks; empty where none were."""
    found = run.log.get("scores")
    if not isinstance(found, dict) or not all(isinstance(found.get(one), int) for one in _SCORED):
        return ""
    images, detections = (found[one] for one in _SCORED)
    return (
        f" The scores of a program, {counted(detections, 'detection')} on {counted(images, 'image')}, were "
        "weighed as one more observer: the posterior by the votes was multiplied by the likelihood ratio of "
        "the score, or of a missing detection. The ratio was learned from the decisions and the votes "
        "together ([@raykar2010]), by the ranks of the scores, with normal distributions ([@metz1978]) that "
        "may depend on the votes."
    )


def _controls(run: RunEntry, then: ReviewState, items: Mapping[tuple[str, int], str]) -> str:
    """Name the control images of a run of clicks; empty where it has none."""
    if run.kind != "clicks":
        return ""
    said = []
    for kind, holds, rule in (
        ("Positive", True, "a run without any structure is excluded by them"),
        (
            "Negative",
            False,
            "their clusters are held to be artefacts, and as many are expected on the others",
        ),
    ):
        marks = {image: then.control(image) for image in run.items}
        names = [
            plain(items.get(("clicks", image), f"image {image}"), 40)
            for image, mark in marks.items()
            if mark is not None and mark.holds == holds
        ]
        if names:
            said.append(f" {kind} control images: {', '.join(names)}; {rule}.")
    return "".join(said)


def _weights(run: RunEntry, then: ReviewState) -> str:
    """Say who counted as a part of an annotator, and why."""
    told = []
    for name, weight in run.weights.items():
        known = then.weighed.get(name)
        because = f" ({plain(known.reason)})" if known is not None and known.reason else ""
        told.append(f"{plain(name, 40)} as {part_of_one(weight)}{because}")
    return (
        f"Counted as a part of an annotator: {', '.join(told)}. An annotator counts as so many who do the "
        "same: the likelihood of what was done is raised to the power of the weight ([@ibrahim2000]; "
        "[@hu2002])."
    )


def _ties(figures: Sequence[Figures]) -> str:
    """Say how ties went: what the method says itself, else the rule and how many voxels it decided."""
    told = dict.fromkeys(
        sentence for one in figures for sentence in one.fusion.notices if _TIED.search(sentence)
    )
    if told or not figures:
        return " ".join(plain(sentence, 300) for sentence in told)
    even = sum(one.even for one in figures)
    return (
        f"{even:,} voxel{' has' if even == 1 else 's have'} a probability of just one half."
        if even
        else "There were none: no voxel has a probability of just one half."
    )
