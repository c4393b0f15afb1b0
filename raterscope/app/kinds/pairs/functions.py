"""The functions of pairs."""

from __future__ import annotations

from raterscope.algorithms.pairs.fusion import PairPlan
from raterscope.app.kinds.kind import Functions
from raterscope.app.kinds.pairs.changes import compare_runs
from raterscope.app.kinds.pairs.command import fuse_pairs, summarise
from raterscope.app.kinds.pairs.exporting import export_pairs
from raterscope.app.kinds.pairs.kind import PAIRS
from raterscope.app.kinds.pairs.running import fuse_inputs, gather, keep
from raterscope.app.kinds.pairs.trust import trust_in_pairs
from raterscope.app.study.pairs import pairs_of

FUNCTIONS = Functions(
    make_plan=PairPlan.make,
    read_plan=PairPlan.from_dict,
    gather=lambda items, study, _plan, _hold_truth, watch: gather(items, study, watch),
    fuse=lambda inputs, plan, _jobs, watch: fuse_inputs(inputs, plan, watch),
    keep=keep,
    summarise=summarise,
    fuse_files=fuse_pairs,
    annotators_of=lambda study, item, run: pairs_of(study, item, run).annotators,
    compare_runs=compare_runs,
    trust=lambda study, items, watch: trust_in_pairs(study, items[0], watch),
    writers={export.what: export_pairs for export in PAIRS.exports},
)
