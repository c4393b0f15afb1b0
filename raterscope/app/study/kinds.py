"""Kinds of annotation that a study stores, and checks that a stored result fits its input.

Without these checks, a result from an untrusted file, or a result made while other annotations arrived, would
cause an index error somewhere on the screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.annotators.communities import Communities
from raterscope.algorithms.clicks.result import Fusion
from raterscope.algorithms.labels.data import OPEN, distinct
from raterscope.algorithms.labels.result import Copying, LabelResult
from raterscope.algorithms.masks.calibration import Calibration
from raterscope.algorithms.masks.data import MaskFusion, Settled
from raterscope.algorithms.masks.fusion import CaseResult, Report
from raterscope.algorithms.pairs.data import BEHAVIOURS, HIGHEST_RATE, RULES, PairFusion
from raterscope.app.errors import plain
from raterscope.app.formats.tables import FARTHEST
from raterscope.app.review import REVIEWED, ReviewedKind, reviewed
from raterscope.app.study.records import ImageEntry, Item, MarksRecord, MaskLog, MaskRecord, RunEntry
from raterscope.app.study.vote_sets import PairsRecord, VotesRecord

if TYPE_CHECKING:
    from raterscope.app.study.study import Study

_Shapes = list[tuple[str, "np.ndarray | None", tuple[int, ...]]]
"""Arrays by name, with the expected shape of each."""


def mismatch_of_fusion(study: Study, run: RunEntry, image: int, fusion: Fusion) -> str | None:
    """Explain why a fusion does not fit the clicks on an image as the run read them; None if it fits."""
    return mismatch_of_clicks(fusion, *study.count_clicks(image, run))


def mismatch_of_case(study: Study, run: RunEntry, image: int, result: CaseResult) -> str | None:
    """Explain why a result does not fit the masks of an image as the run read them; None if it fits."""
    raters, renamed = _raters(study, image, run.imported), study.has_new_names
    return mismatch_of_masks(result, study.image(image).lattice.shape, raters, renamed=renamed)


def mismatch_of_fused_labels(study: Study, run: RunEntry, question: int, result: LabelResult) -> str | None:
    """Explain why a result does not fit the votes on a question as the run read them; None if it fits."""
    crowd = study.vote_set(question, run.imported)
    return mismatch_of_labels(result, len(crowd.tasks), len(crowd.annotator_ids), len(crowd.task))


def mismatch_of_fused_pairs(study: Study, run: RunEntry, question: int, fusion: PairFusion) -> str | None:
    """Explain why a fusion does not fit the comparisons as the run read them; None if it fits."""
    comparisons = study.comparison_set(question, run.imported)
    return mismatch_of_pairs(fusion, len(comparisons.annotator_ids), len(comparisons.items))


def _mismatch_of_shapes(shapes: _Shapes) -> str | None:
    for name, array, shape in shapes:
        if array is not None and array.shape != shape:
            return f"{name} has the shape {array.shape}, not {shape}"
    return None


def _fits(origin: Sequence[int], shape: Sequence[int], frame: tuple[int, int, int]) -> bool:
    return min(origin) >= 0 and not (np.add(origin, shape) > frame).any()


def _names(study: Study, numbers: NDArray[np.int32]) -> list[str]:
    names = study.annotators()
    return [names[number] for number in numbers.tolist()]


def _raters(study: Study, image: int, last: int | None) -> dict[str, set[str]]:
    """Return the annotators of each structure of an image, up to an import."""
    names, raters = study.annotators(), dict[str, set[str]]()
    with study.reading() as connection:
        for structure, annotator in connection.execute(
            "SELECT DISTINCT structure, annotator FROM masks WHERE image = ? AND import <= ?",
            (image, 2**62 if last is None else last),
        ):
            if 0 <= annotator < len(names):
                raters.setdefault(structure, set()).add(names[annotator])
    return raters


def mismatch_of_clicks(fusion: Fusion, n: int, r: int) -> str | None:
    """Explain why a fusion does not fit N clicks of R annotators; None if it fits."""
    clustering, detection, rates, trace = (
        fusion.clustering, fusion.detection, fusion.rates, fusion.clustering.trace
    )  # fmt: skip
    m, k, t = len(clustering.mean), len(clustering.inlier), len(trace.objective)
    shapes: _Shapes = [
        ("mark", fusion.mark, (n,)),
        ("marked", fusion.marked, (r, m)),
        ("verdict", fusion.verdict, (m,)),
        ("mean", clustering.mean, (m, 2)),
        ("covariance", clustering.covariance, (m, 2, 2)),
        ("weight", clustering.weight, (m,)),
        ("nearest", clustering.nearest, (k,)),
        ("reliability", clustering.reliability, (r,)),
        ("components", trace.components, (t,)),
        ("removed", trace.removed, (t,)),
        ("clicks", rates.clicks, (r,)),
    ]
    shapes += [(f"rates {name}", getattr(rates, name), (r, 3)) for name in ("sensitivity", "precision")]
    shapes += [("reliability rate", rates.reliability, (r, 3))]
    shapes += [(name, getattr(detection, name), (m,)) for name in _PER_CLUSTER]
    shapes += [(name, getattr(detection, name), (r,)) for name in _PER_ANNOTATOR]
    if wrong := _mismatch_of_shapes(shapes):
        return wrong
    if fusion.score is not None and (fusion.score.shape != (m,) or np.isinf(fusion.score).any()):
        return f"the scores are not one number for each of {m} clusters"
    if rates.marks.size not in (0, r):
        return f"marks has the shape {rates.marks.shape}, not {(r,)}"
    if detection.undecided.size not in (0, m):
        return f"undecided has the shape {detection.undecided.shape}, not {(m,)}"
    if not 0 < detection.level_error < np.inf:
        return f"the level's error is {detection.level_error:g}"
    if fusion.halves.size and fusion.halves.shape != (len(fusion.halves), m):
        return f"halves has the shape {fusion.halves.shape}, not that of {m} clusters"
    if n and not 0 <= fusion.mark.min() <= fusion.mark.max() < k:
        return "`mark` refers to a mark that does not exist"
    if k and not -1 <= clustering.nearest.min() <= clustering.nearest.max() < m:
        return "`nearest` refers to a cluster that does not exist"
    if not _are_shares(detection.posterior):
        return "a posterior is not between 0 and 1"
    if not (np.abs(clustering.mean) <= FARTHEST).all() or not np.isfinite(clustering.covariance).all():
        return "a cluster's position is not a number, or is far outside every image"
    return None


def mismatch_of_labels(result: LabelResult, tasks: int, annotators: int, votes: int) -> str | None:
    """Explain why a fusion of labels does not fit these numbers of tasks, annotators and votes."""
    fusion, groups = result.fusion, result.communities
    classes, outputs = len(fusion.classes), len(fusion.outputs)
    shapes: _Shapes = [
        ("posterior", fusion.posterior, (tasks, classes)),
        ("votes", fusion.votes, (tasks,)),
        ("known", fusion.known, (tasks,)),
        ("shares", fusion.shares, (classes,)),
        ("confusion", fusion.confusion.alpha, (annotators, classes, outputs)),
        ("prior", fusion.confusion.prior, (classes, outputs)),
        ("weight", fusion.weight, (annotators,)),
    ]
    steps = 0 if fusion.drift is None else len(fusion.drift.vote)
    if fusion.drift is not None:
        shapes += [
            ("drift", fusion.drift.alpha, (steps, classes, outputs)),
            ("start", fusion.drift.start, (annotators + 1,)),
        ]
    if wrong := _mismatch_of_shapes(shapes):
        return wrong
    if fusion.drift is not None:
        if steps > votes or (np.diff(fusion.drift.start) < 0).any() or fusion.drift.start[-1] != steps:
            return f"its {steps} steps are not those of {votes} votes"
        if steps and not 0 <= fusion.drift.vote.min() <= fusion.drift.vote.max() < votes:
            return "a step refers to a vote that does not exist"
    if tasks and not OPEN <= fusion.known.min() <= fusion.known.max() < classes:
        return "a task has a known class that does not exist"
    if not _are_shares(fusion.posterior):
        return "a probability is not between 0 and 1"
    alpha = distinct(fusion.confusion.alpha)
    if not (np.isfinite(alpha).all() and (alpha > 0).all()):
        return "a confusion matrix has values that are not pseudo-counts"
    if not 0.0 < fusion.power <= 1.0:
        return f"each vote counts for {fusion.power:g}"
    programs = result.programs
    if programs is not None and (
        programs.weight.shape != (len(programs.names),)
        or programs.offset.shape != (classes,)
        or not (np.isfinite(programs.weight).all() and (programs.weight >= 0).all())
    ):
        return "the weights of programs do not fit their names and classes"
    if groups is not None and (wrong := _mismatch_of_communities(groups, annotators, (classes, outputs))):
        return wrong
    return None if result.copying is None else _mismatch_of_copying(result.copying, annotators)


def _mismatch_of_copying(copying: Copying, annotators: int) -> str | None:
    pairs, many = copying.pairs, len(copying.pairs)
    shapes: _Shapes = [
        ("pairs", pairs, (many, 2)),
        ("common", copying.common, (many,)),
        ("same", copying.same, (many,)),
        ("expected", copying.expected, (many,)),
    ]
    if wrong := _mismatch_of_shapes(shapes):
        return wrong
    if not all(array.dtype.kind == "i" for array in (pairs, copying.common, copying.same)):
        return "the indices of annotators who may copy are not integers"
    if many and not 0 <= pairs.min() <= pairs.max() < annotators:
        return "a pair that may copy refers to an annotator that does not exist"
    if not (np.isfinite(copying.expected).all() and (copying.expected < copying.common).all()):
        return "the expected agreement of a pair is not below the number of its tasks"
    return None


def _mismatch_of_communities(groups: Communities, annotators: int, matrix: tuple[int, int]) -> str | None:
    members, count = len(groups.members), len(groups.prototype)
    if groups.community.shape != (members,) or groups.participation.shape != (members, count):
        return "the communities have another shape"
    if count and groups.prototype.shape[1:] != matrix:
        return f"the communities' prototypes have the shape {groups.prototype.shape[1:]}, not {matrix}"
    if not all(array.dtype.kind == "i" for array in (groups.members, groups.community)):
        return "the members of communities are not integers"
    if members and not 0 <= groups.members.min() <= groups.members.max() < annotators:
        return "a member of a community is not an annotator"
    if (np.diff(groups.members) <= 0).any():
        return "an annotator is a member of communities twice"
    if members and not 0 <= groups.community.min() <= groups.community.max() < count:
        return "a community does not exist"
    if not (np.isfinite(groups.participation).all() and np.isfinite(groups.prototype).all()):
        return "a participation or a prototype is not a number"
    if not (np.isfinite(groups.modularity) and 0 <= groups.scale < np.inf):
        return "the communities' modularity or scale is not a number"
    return None


def mismatch_of_pairs(fusion: PairFusion, annotators: int, items: int) -> str | None:
    """Explain why a fusion of pairs does not fit these numbers of annotators and items."""
    draws, steps = len(fusion.statistic), len(fusion.path_at)
    shapes: _Shapes = [
        ("path_at", fusion.path_at, (steps,)),
        ("path", fusion.path, (steps, annotators)),
        ("statistic", fusion.statistic, (draws, annotators)),
    ]
    shapes += [(name, getattr(fusion, name), (annotators,)) for name in _PER_COMPARER]
    shapes += [(name, getattr(fusion, name), (items,)) for name in _PER_ITEM]
    tested = [(name, getattr(fusion, name)) for name in ("q_value", "detectable", "decidable", "t_test")]
    shapes += [(name, array, (annotators,)) for name, array in tested if array is not None]
    if wrong := _mismatch_of_shapes(shapes):
        return wrong
    if not (np.isfinite(fusion.path_at).all() and np.isfinite(fusion.path).all()):
        return "its path has values that are not finite"
    if fusion.rule not in RULES:
        return "the rule that flags annotators is unknown"
    if not 0.0 < fusion.rate <= HIGHEST_RATE:
        return f"its false discovery rate is {fusion.rate:g}"
    if annotators and not 0 <= fusion.behaviour.min() <= fusion.behaviour.max() < len(BEHAVIOURS):
        return "an annotator's behaviour is unknown"
    return None


def mismatch_of_masks(
    result: CaseResult, frame: tuple[int, int, int], raters: Mapping[str, Set[str]], *, renamed: bool = False
) -> str | None:
    """Explain why a fusion of masks does not fit these raters, by structure, and an image of this shape.

    If structures were `renamed`, a fused structure may have the masks of any.
    """
    all_raters = set().union(*raters.values())
    if not len(result.fusions) == len(result.reports) > 0:
        return f"{len(result.fusions)} fusions have {len(result.reports)} reports"
    for fusion, report in zip(result.fusions, result.reports, strict=True):
        of_it = all_raters if renamed else raters.get(next(iter(fusion.structures), ""), frozenset())
        unknown = [name for name in fusion.annotators if name not in of_it]
        if unknown:
            return f"it is of a mask by {plain(unknown[0])} that the study does not have"
        wrong = _mismatch_of_fusion(fusion, frame) or _mismatch_of_report(
            report, len(fusion.annotators), frame
        )
        wrong = wrong or _mismatch_of_calibration(report.calibration, len(fusion.annotators), frame)
        if wrong is not None:
            return wrong
    return None


def _mismatch_of_report(report: Report, raters: int, frame: tuple[int, int, int]) -> str | None:
    if len(report.compared) != raters:
        return f"{len(report.compared)} raters are compared, not {raters}"
    if report.pair_dice.shape != (raters, raters) or report.by_slice.shape != frame[:1]:
        return "the agreement or the uncertainty by slice has another shape"
    programs = report.programs
    if programs is not None and not (
        programs.near.shape == programs.elsewhere.shape == (len(programs.names),)
        and len(report.programs_compared) == len(programs.names)
        and all((np.isfinite(votes) & (votes >= 0)).all() for votes in (programs.near, programs.elsewhere))
        and min(programs.accuracy, programs.alone[0], programs.typical) > 0
    ):
        return "the weights of programs do not fit their names"
    for region in report.disputes:
        if min(region.shape) < 1 or not _fits(region.origin, region.shape, frame):
            return "a disputed region is outside the image"
        if len(region.bits) * 8 < np.prod(region.shape) or not 0 <= region.leader < raters:
            return "a disputed region has another shape"
    return None


def _mismatch_of_calibration(
    calibration: Calibration | None, raters: int, frame: tuple[int, int, int]
) -> str | None:
    if calibration is None:
        return None
    centres = [calibration.ratio] if calibration.moved is None else [calibration.ratio, calibration.moved]
    maps = [array for array in (*centres, calibration.scale, calibration.settled) if array is not None]
    if any(array.shape != calibration.ratio.shape for array in maps) or not all(
        np.isfinite(array).all() for array in centres
    ):
        return "the raters' spread has another shape"
    if (wrong := _mismatch_of_box(calibration.origin, calibration.ratio, frame)) is not None:
        return f"the raters' spread: {wrong}"
    if (
        calibration.settled is not None
        and not OPEN <= calibration.settled.min() <= calibration.settled.max() <= 1
    ):
        return "a settled voxel is not inside (1), outside (0) or open"
    if not (np.isfinite(calibration.scale).all() and (calibration.scale > 0).all()):
        return "the raters' spread is not a positive length"
    figures = (calibration.dof, *calibration.multipliers)
    every = calibration.raters + calibration.silent
    if every != raters or len(figures) != 4 or not all(0 < v < 1e6 for v in figures):
        return "the raters' spread belongs to other raters"
    assumed = (calibration.correlation, calibration.narrowing)
    if not (all(0 <= value <= 1 for value in assumed) and np.isfinite(calibration.offset)):
        return "the assumptions on the true outline are out of range"
    sizes = {None if array is None else array.shape for array in (calibration.tried, calibration.marked)}
    if len(sizes) > 1 or not (np.isfinite(calibration.curve).all() and calibration.curve[1] > 0):
        return "the number of excluded raters differs"
    checked = [array.shape[-1] for array in (calibration.covered, calibration.bins) if array is not None]
    if checked and checked != [3, 3]:
        return "the votes of left-out raters have another shape"
    return None


def _mismatch_of_fusion(fusion: MaskFusion, frame: tuple[int, int, int]) -> str | None:
    s, p, maps = len(fusion.structures), len(fusion.annotators), fusion.mask.shape
    if fusion.mask.ndim != 4 or maps[0] != 1 or s != 1 or not p:
        return f"mask has the shape {maps}, which is not that of one structure"
    shapes: _Shapes = [
        ("probability", fusion.probability, maps),
        ("distance", fusion.distance, maps),
        ("deviation", fusion.deviation, maps),
        ("weight", fusion.weight, (s, p, *maps[1:])),
        ("tau", fusion.tau, (s, p, *maps[1:])),
    ]
    shapes += [(name, getattr(fusion, name), (s, p)) for name in _PER_RATER]
    for number, alternative in enumerate(fusion.alternatives, start=1):
        shapes += [
            (f"alternative {number}", alternative.mask, maps),
            (f"alternative {number}", alternative.probability, maps),
            (f"alternative {number}", alternative.responsibility, (p,)),
        ]
    if wrong := _mismatch_of_shapes(shapes):
        return wrong
    if fusion.frame != frame or not _fits(fusion.origin, maps[1:], frame):
        return f"its maps lie at {fusion.origin} in {fusion.frame} voxels, not in {frame}"
    if not all(np.isfinite(step) and step > 0 for step in fusion.spacing):
        return "its spacing is not a positive length"
    positions = fusion.slice_positions
    if positions is not None and not (
        positions.shape == frame[:1] and np.isfinite(positions).all() and (np.diff(positions) > 0).all()
    ):
        return "its slice positions are invalid"
    if not _are_shares(fusion.probability):
        return "a probability is not between 0 and 1"
    return None


def mismatch_of_mask(record: MaskRecord, frame: tuple[int, int, int]) -> str | None:
    """Explain why a mask does not fit an image of this shape; None if it fits."""
    if (record.mask is None) == (record.probability is None):
        return "expected truth values or probabilities"
    wrong = _mismatch_of_box(record.origin, record.values, frame)
    if wrong is None and record.probability is not None and not _are_shares(record.probability):
        return "a probability is not between 0 and 1"
    return wrong


def mismatch_of_settled(settled: Settled, frame: tuple[int, int, int] | None) -> str | None:
    """Explain why a decision's voxels do not fit an image of this shape; None if they fit."""
    if settled.value.size and not OPEN <= settled.value.min() <= settled.value.max() <= 1:
        return "a settled voxel is not inside (1), outside (0) or open"
    return _mismatch_of_box(settled.origin, settled.value, frame)


def _mismatch_of_box(
    origin: tuple[int, int, int], values: np.ndarray, frame: tuple[int, int, int] | None
) -> str | None:
    if values.ndim != 3:
        return f"its voxels have {values.ndim} axes, not 3"
    ends = [start + n for start, n in zip(origin, values.shape, strict=True)]
    if values.size and (min(origin) < 0 or (frame is not None and any(np.array(ends) > frame))):
        return f"its voxels lie at {origin} to {tuple(ends)}, outside of the image"
    return None


def _are_shares(values: np.ndarray) -> bool:
    """Return whether all values are in [0, 1] up to rounding; NaN is not."""
    return bool(((values >= -_ROUNDING) & (values <= 1 + _ROUNDING)).all())


_ROUNDING = 1e-3


_PER_COMPARER = (
    "left", "right", "ties", "untested", "entry", "bias", "bias_low", "bias_high", "p_value", "flagged",
    "behaviour", "match",
)  # fmt: skip
_PER_ITEM = (
    "component", "score", "score_low", "score_high", "corrected", "corrected_low", "corrected_high"
)  # fmt: skip
_PER_RATER = ("bias", "variance", "dof", "sensitivity", "specificity", "sigma")
_PER_CLUSTER = ("posterior", "posterior_low", "posterior_high", "detected")
_PER_ANNOTATOR = (
    "sensitivity", "specificity", "true_positive", "false_negative", "true_negative", "false_positive"
)  # fmt: skip


@dataclass(frozen=True)
class StoredKind:
    """Kind of annotation as stored in the study."""

    review: ReviewedKind  # its decisions; its name is that of the kind
    result: type[Any]  # type: dataclass of arrays that a run stores of each item
    # ``mismatch(study, run, item, result)`` explains why a result does not fit its item as the run read it;
    # None if it fits
    mismatch: Callable[[Study, RunEntry, int, Any], str | None]
    newer: str  # SQL that selects a row where annotations of an item came after an import
    annotated: str = ""  # SQL that selects the images with annotations; empty where the items are questions
    # lists the questions, if these are the items
    questions: Callable[[Study], tuple[Item, ...]] | None = None
    # returns whether an image without annotations is listed with those of the kind
    takes: Callable[[ImageEntry], bool] = lambda _entry: False
    log: type[Any] | None = None  # type: record type of a run's log
    annotations: type[Any] | None = None  # type: record of annotations that contains annotators' numbers
    has_controls: bool = False  # whether images can be marked as positive or negative controls
    # ``annotators(study, run, item)`` returns the annotators of a result in its order; None for a kind whose
    # results contain their names
    annotators: Callable[[Study, RunEntry, int], Sequence[str]] | None = None
    title: Callable[[str], str] = str  # ``title(algorithm)`` names the algorithm of a run for the user

    @property
    def name(self) -> str:
        """Name of the kind: "clicks"."""
        return self.review.name

    @property
    def by_question(self) -> bool:
        """True if the items are questions, False if they are images."""
        return self.questions is not None


def _clicks_title(algorithm: str) -> str:
    """Return the titles of clustering and detection: "OEM + DEM"."""
    from raterscope.algorithms.clicks import CLUSTERERS, DETECTORS

    titles = {
        name: entry.title.removesuffix(" clustering").removesuffix(" detection")
        for name, entry in (*CLUSTERERS.items(), *DETECTORS.items())
    }
    bare = algorithm.removeprefix("online ")
    online = "online " if bare != algorithm else ""
    return online + " + ".join(titles.get(name, name) for name in bare.split(" + "))


def _masks_title(algorithm: str) -> str:
    from raterscope.algorithms.masks.catalogue import fuser_title

    return fuser_title(algorithm)


def _labels_title(algorithm: str) -> str:
    from raterscope.algorithms.labels.catalogue import labeller_title

    return labeller_title(algorithm)


def _pairs_title(algorithm: str) -> str:
    from raterscope.algorithms.pairs.catalogue import path_title

    return path_title(algorithm)


_VOTES = "SELECT 1 FROM votes WHERE question = ? AND import > ? AND truth = 0 LIMIT 1"

STORED: dict[str, StoredKind] = {
    kind.name: kind
    for kind in (
        StoredKind(
            REVIEWED["clicks"], Fusion, mismatch_of_fusion,
            "SELECT 1 FROM marks WHERE image = ? AND import > ? AND kind IN ('clicks', 'scores') LIMIT 1",
            annotated="SELECT DISTINCT image FROM marks WHERE kind IN ('clicks', 'truth', 'scores')",
            takes=lambda entry: entry.grid is None, has_controls=True, annotations=MarksRecord,
            annotators=lambda study, run, image: study.clicks(image, run).annotators, title=_clicks_title,
        ),
        StoredKind(
            REVIEWED["masks"], CaseResult, mismatch_of_case,
            "SELECT 1 FROM masks WHERE image = ? AND import > ? AND annotator >= 0 LIMIT 1",
            annotated="SELECT DISTINCT image FROM masks",
            takes=lambda entry: entry.grid is not None, log=MaskLog, title=_masks_title,
        ),
        StoredKind(
            REVIEWED["labels"], LabelResult, mismatch_of_fused_labels, _VOTES,
            questions=lambda study: study.questions(),
            annotators=lambda study, run, question: _names(
                study, study.vote_set(question, run.imported).annotator_ids
            ),
            title=_labels_title, annotations=VotesRecord,
        ),
        StoredKind(
            REVIEWED["pairs"], PairFusion, mismatch_of_fused_pairs, _VOTES,
            questions=lambda study: study.pair_questions(),
            annotators=lambda study, run, question: _names(
                study, study.comparison_set(question, run.imported).annotator_ids
            ),
            title=_pairs_title, annotations=PairsRecord,
        ),
    )
}  # fmt: skip
"""Kinds that a study can contain, in the order of tabs and reports."""


@contextmanager
def stored(kind: StoredKind) -> Iterator[None]:
    """Register another kind within this context."""
    STORED[kind.name] = kind
    try:
        with reviewed(kind.review):
            yield
    finally:
        del STORED[kind.name]


def image_kinds() -> tuple[str, ...]:
    """List the kinds whose items are images."""
    return tuple(name for name, kind in STORED.items() if not kind.by_question)


def question_kinds() -> tuple[str, ...]:
    """List the kinds whose items are questions."""
    return tuple(name for name, kind in STORED.items() if kind.by_question)


def mismatch_of(study: Study, run: RunEntry, item: int, result: object) -> str | None:
    """Explain why a result does not fit its item as the run read it; None if it fits."""
    kind = STORED[run.kind]
    if not isinstance(result, kind.result):
        return f"it is not a result of {run.kind}"
    return kind.mismatch(study, run, item, result)
