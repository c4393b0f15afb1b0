"""The functions of masks."""

from __future__ import annotations

from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.app.kinds.kind import Functions
from raterscope.app.kinds.masks.changes import compare_runs
from raterscope.app.kinds.masks.command import fuse_masks, summarise
from raterscope.app.kinds.masks.exporting import export_maps, export_table
from raterscope.app.kinds.masks.kind import MASKS
from raterscope.app.kinds.masks.running import fuse_inputs, gather, keep
from raterscope.app.kinds.masks.trust import trust_in_masks
from raterscope.app.study.masks import mask_entries

FUNCTIONS = Functions(
    make_plan=MaskPlan.make,
    read_plan=MaskPlan.from_dict,
    gather=lambda items, study, _plan, _hold_truth, watch: gather(items, study, watch),
    fuse=lambda inputs, plan, _jobs, watch: fuse_inputs(inputs, plan, watch),
    keep=keep,
    summarise=summarise,
    fuse_files=fuse_masks,
    annotators_of=lambda study, item, run: {mask.annotator for mask in mask_entries(study, item, run)},
    compare_runs=compare_runs,
    trust=trust_in_masks,
    writers={export.what: export_maps if export.by_case else export_table for export in MASKS.exports},
)
