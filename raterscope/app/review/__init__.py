"""The expert's decisions: the journal, and its effect on each kind of annotation."""

from raterscope.app.review.decision import Decision, in_words, one_by_one, target_of
from raterscope.app.review.journal import ReviewState, Standing, Weighed, differ, fold, redo, undo
from raterscope.app.review.measures import Measures, Shape, is_measure, read_measures
from raterscope.app.review.regions import Region, known_voxels
from raterscope.app.review.spots import Control, Flag, Spot, Verdict, known_spots, match
from raterscope.app.review.subjects import (
    SUBJECTS,
    BiasSubject,
    CountingSubject,
    ImageSubject,
    RegionSubject,
    ScaleSubject,
    ShapeSubject,
    SpotOf,
    SpotsSubject,
    SpotSubject,
    StructureSubject,
    Subject,
    TaskSubject,
    WeightSubject,
)
from raterscope.app.review.tasks import DecidedTask, described_structures
from raterscope.app.review.viewed import LONG_ENOUGH, View, ViewedHow, viewed_places

__all__ = [
    "LONG_ENOUGH",
    "SUBJECTS",
    "BiasSubject",
    "Control",
    "CountingSubject",
    "DecidedTask",
    "Decision",
    "Flag",
    "ImageSubject",
    "Measures",
    "Region",
    "RegionSubject",
    "ReviewState",
    "ScaleSubject",
    "Shape",
    "ShapeSubject",
    "Spot",
    "SpotOf",
    "SpotSubject",
    "SpotsSubject",
    "Standing",
    "StructureSubject",
    "Subject",
    "TaskSubject",
    "Verdict",
    "View",
    "ViewedHow",
    "Weighed",
    "WeightSubject",
    "described_structures",
    "differ",
    "fold",
    "in_words",
    "is_measure",
    "known_spots",
    "known_voxels",
    "match",
    "one_by_one",
    "read_measures",
    "redo",
    "target_of",
    "undo",
    "viewed_places",
]
