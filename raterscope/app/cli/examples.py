"""Examples of each command, for its help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["EXAMPLES", "examples_in_words"]

EXAMPLES: Mapping[str, Sequence[str]] = {
    "demo": ("demo", "demo samples"),
    "import": (
        "import study.rscope smears/*.png clicks.csv",
        "import study.rscope truth.csv --kind truth --radius 8",
        "import study.rscope CT/ rater1.nrrd rater2.nrrd --structure prostate",
        "import study.rscope votes.csv --map person=annotator cell=task answer=label",
    ),
    "run": (
        "run study.rscope oem",
        "run study.rscope oem --detector majority --set click_scatter=2",
        "run study.rscope laplace --item case_3",
        "run study.rscope pooled --hold-truth",
    ),
    "export": (
        "export study.rscope --what detections -o detections.csv",
        "export study.rscope --what detections --format geojson -o detections/",
        "export study.rscope --what consensus --format rtstruct -o consensus.dcm",
        "export study.rscope --what labels --run 3 -o run3.csv",
    ),
    "report": ("report study.rscope -o report.pdf", "report study.rscope --run 3 -o report.html"),
    "structures": (
        "structures study.rscope",
        "structures study.rscope --find lung",
        'structures study.rscope "left lung" --type lung --side left --role organ --label Lung_L',
    ),
    "references": ("references", "references warfield2004 --bibtex"),
    "watch": (
        "watch study.rscope clicks.csv --extent 1280 960",
        "watch study.rscope exports/ --every 10 --until-firm",
        "watch study.rscope clicks.csv --once --set limit=0.05",
    ),
    "simulate": ("simulate overlapping -o simulated", "simulate bias -o pairs --study"),
    "papers": ("papers -o page", "papers -o page --data DATA --only clicks pairs"),
    "fuse clicks": (
        "fuse clicks clicks.csv --extent 1280 960 -o results",
        "fuse clicks clicks.csv --images smears/ --truth truth.csv --radius 4 -o results",
        "fuse clicks clicks.csv --extent 1280 960 --weight kim=0.5 --negative blank.png -o results",
        "fuse clicks clicks.csv --images smears/ --algorithm cem --set expected_share=0.02 -o results",
    ),
    "fuse masks": (
        "fuse masks rater*.nii.gz -o results",
        "fuse masks rater*.nii.gz --image ct.nii.gz --truth true.nii.gz -o results",
        "fuse masks masks/ --naming {item}_{annotator} --algorithm staple -o results",
    ),
    "fuse labels": (
        "fuse labels votes.csv -o results",
        "fuse labels votes.csv --truth truth.csv --compare -o results",
        "fuse labels study.rscope --run 3 -o results",
        "fuse labels scores.csv --outputs -1,1,3 --classes no,yes --stands -1=no 1=yes 3=yes -o results",
    ),
    "fuse pairs": (
        "fuse pairs comparisons.csv -o results",
        "fuse pairs monday.csv tuesday.csv --path lasso --fdr 0.2 --exclude test-account -o results",
        "fuse pairs comparisons.csv --truth ranking.csv -o results",
    ),
}
"""What stands after `raterscope`, by command."""


def examples_in_words(command: str) -> str:
    """Give the examples of a command as lines of its help; empty without any."""
    lines = [f"  raterscope {one}\n" for one in EXAMPLES.get(command, ())]
    return f"\nexamples:\n{''.join(lines)}" if lines else ""
