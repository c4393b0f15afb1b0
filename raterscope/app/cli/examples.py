"""Examples in the help of each command but `fuse`: what stands after `raterscope`, a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EXAMPLES: Mapping[str, Sequence[str]] = {
    "demo": ("demo", "demo samples"),
    "import": (
        "import study.rscope smears/*.png clicks.csv",
        "import study.rscope truth.csv --kind truth --radius 8",
        "import study.rscope CT/ rater1.nrrd rater2.nrrd --structure prostate",
        "import study.rscope votes.csv --map person=annotator cell=task answer=label",
        "import study.rscope votes.csv --preview",
        "import study.rscope --groups patients.csv",
        "import study.rscope probabilities.csv --program unet",
        "import study.rscope CT/ contours.dcm --rename structure:gtv=GTV structure:GTVp=GTV",
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
        "export study.rscope --what counts --groups patients.csv -o counts.csv",
        "export study.rscope --what training --groups patients.csv -o training.yaml",
        "export study.rscope --what training --format crops -o crops/",
        "export study.rscope --what training --kind masks --groups patients.csv -o Dataset501_Prostate",
        "export study.rscope --what retirement -o retired.csv",
        "export study.rscope --what sessions -o sessions.csv",
        "export study.rscope --what consensus --format rtstruct -o consensus.dcm",
        "export study.rscope --what labels --run 3 -o run3.csv",
        "export study.rscope --what tags -o tags.csv",
        "export study.rscope --what assignments --set votes=500 each=40 --costs costs.csv -o assignments.csv",
    ),
    "report": (
        "report study.rscope -o report.pdf",
        "report study.rscope --run 3 -o report.html",
        "report study.rscope --variability protocol.toml -o report.html",
        "report study.rscope --cost -o report.html",
        "report study.rscope --annotator anna -o anna.pdf",
    ),
    "structures": (
        "structures study.rscope",
        "structures study.rscope --find lung",
        'structures study.rscope "left lung" --type lung --side left --role organ --label Lung_L',
    ),
    "rename": (
        "rename study.rscope structure:gtv=GTV structure:GTVp=GTV",
        "rename study.rscope class:Ring=ring",
    ),
    "references": ("references", "references warfield2004 --bibtex"),
    "watch": (
        "watch study.rscope clicks.csv --extent 1280 960",
        "watch study.rscope exports/ --every 10 --until-firm",
        "watch study.rscope clicks.csv --once --set limit=0.05",
    ),
    "simulate": ("simulate overlapping -o simulated", "simulate bias -o pairs --study"),
    "papers": ("papers -o page", "papers -o page --data DATA --only clicks pairs"),
    "prepare": ("prepare",),
    "desktop": ("desktop", "desktop --remove"),
    "pacs": (
        "pacs find https://pacs.example.org/dicom-web --patient 4711 --modality CT",
        "pacs get https://pacs.example.org/dicom-web --study 1.2.840.113619.2.5 -o ct",
        "pacs store https://pacs.example.org/dicom-web ct/ consensus.dcm",
    ),
    "batch": (
        "batch cases.csv -o results --jobs 8",
        "batch cases.csv -o results --only-failed",
        "batch 'derivatives/sub-*/ses-*/anat/*_mask.nii.gz' --list",
        "batch cases.csv -o results --script slurm --shards 50",
    ),
    "gather": ("gather results -o cohort.rscope",),
    "annotators": (
        "annotators study.rscope -o annotators.csv",
        "annotators cohort/ --where 'accuracy < .6 and votes >= 50' -o careless.csv",
    ),
    "copy": ("copy anna.rscope --blind -o ben.rscope",),
    "merge": ("merge anna.rscope ben.rscope -o both.rscope --conflicts conflicts.csv",),
    "decide": ("decide study.rscope decisions.csv",),
    "reader-study": (
        "reader-study new protocol.toml -o liver-readers",
        "reader-study collect liver-readers -o liver.rscope",
        'reader-study collect liver-readers -o liver.rscope --unblind "interim analysis, see protocol"',
    ),
    "plan": (
        "plan cases icc --expected 0.8 --width 0.2 --readers 3",
        "plan cases kappa --expected 0.7 --width 0.2 --rates 0.3 0.7",
        "plan acceptance --acceptable 0.025 --unacceptable 0.16",
        "plan acceptance --acceptable 0.02 --unacceptable 0.15 --sequential --checked 20 1",
        "plan sample study.rscope --kind labels --acceptable 0.025 --unacceptable 0.16",
        "plan progress study.rscope",
    ),
}
