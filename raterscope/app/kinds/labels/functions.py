"""The functions of labels."""

from __future__ import annotations

from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.app.kinds.kind import Functions
from raterscope.app.kinds.labels.changes import compare_runs
from raterscope.app.kinds.labels.command import fuse_labels, plan_texts, summarise
from raterscope.app.kinds.labels.exporting import export_labels
from raterscope.app.kinds.labels.kind import LABELS
from raterscope.app.kinds.labels.running import fuse_inputs, gather, keep
from raterscope.app.kinds.labels.trust import trust_in_labels
from raterscope.app.study.labels import labels_of

FUNCTIONS = Functions(
    make_plan=LabelPlan.make,
    read_plan=LabelPlan.from_dict,
    plan_texts=plan_texts,
    gather=lambda items, study, _plan, _hold_truth, watch: gather(items, study, watch),
    fuse=lambda inputs, plan, _jobs, watch: fuse_inputs(inputs, plan, watch),
    keep=keep,
    summarise=summarise,
    fuse_files=fuse_labels,
    annotators_of=lambda study, item, run: labels_of(study, item, run).annotators,
    compare_runs=compare_runs,
    trust=lambda study, items, watch: trust_in_labels(study, items[0], watch),
    writers={export.what: export_labels for export in LABELS.exports},
)
