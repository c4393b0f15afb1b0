"""The expert's decisions: the journal, and what it amounts to for each kind of annotation."""

from raterscope.app.review.decision import Decision, in_words, one_by_one, target_of
from raterscope.app.review.journal import ReviewState, differ, fold, redo, undo
from raterscope.app.review.regions import Region, known_voxels
from raterscope.app.review.spots import Flag, Spot, Verdict, known_spots, match
from raterscope.app.review.subjects import (
    SUBJECTS,
    BiasSubject,
    ImageSubject,
    RegionSubject,
    SpotOf,
    SpotsSubject,
    SpotSubject,
    Subject,
    TaskSubject,
)
from raterscope.app.review.tasks import DecidedTask

__all__ = [
    "SUBJECTS",
    "BiasSubject",
    "DecidedTask",
    "Decision",
    "Flag",
    "ImageSubject",
    "Region",
    "RegionSubject",
    "ReviewState",
    "Spot",
    "SpotOf",
    "SpotSubject",
    "SpotsSubject",
    "Subject",
    "TaskSubject",
    "Verdict",
    "differ",
    "fold",
    "in_words",
    "known_spots",
    "known_voxels",
    "match",
    "one_by_one",
    "redo",
    "target_of",
    "undo",
]
