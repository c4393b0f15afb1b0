"""The functions of clicks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.clicks.stream import StreamPlan
from raterscope.app.kinds.clicks.changes import compare_runs
from raterscope.app.kinds.clicks.command import fuse_clicks, plan_texts, summarise
from raterscope.app.kinds.clicks.exporting import export_detections, export_measurements, export_table
from raterscope.app.kinds.clicks.parasitaemia import export_counts
from raterscope.app.kinds.clicks.running import fuse_inputs, gather, keep
from raterscope.app.kinds.clicks.trust import trust_in_clicks
from raterscope.app.kinds.kind import Functions, Plan


def _read_plan(values: Mapping[str, Any]) -> Plan:
    return (StreamPlan if "stream" in values else FusionPlan).from_dict(values)


FUNCTIONS = Functions(
    make_plan=FusionPlan.make,
    read_plan=_read_plan,
    plan_texts=plan_texts,
    gather=lambda items, study, plan, hold_truth, watch: gather(
        items, study, watch, hold_truth=hold_truth, plan=plan
    ),
    fuse=lambda inputs, plan, jobs, watch: fuse_inputs(inputs, plan, jobs=jobs, watch=watch),
    keep=keep,
    summarise=summarise,
    fuse_files=fuse_clicks,
    annotators_of=lambda study, item, run: study.clicks(item, run).annotators,
    compare_runs=compare_runs,
    trust=trust_in_clicks,
    writers={
        "detections": export_detections,
        "annotators": export_table,
        "clicks": export_table,
        "counts": export_counts,
        "measurements": export_measurements,
    },
)
