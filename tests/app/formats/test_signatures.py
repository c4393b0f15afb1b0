"""Files of annotation tools that are not read: one sentence says what to import instead."""

import csv
import io
import json
from pathlib import Path

import pytest

from raterscope.app.errors import InputError
from raterscope.app.importing import read_files

REGION = {"shape_attributes": {"name": "point", "cx": 1, "cy": 2}, "region_attributes": {"type": "cell"}}
VIA = {"a.jpg9": {"filename": "a.jpg", "size": 9, "regions": [REGION], "file_attributes": {}}}
KEYPOINTS = {
    "keypoints": [{"label": "cell", "x": 1, "y": 2}],
    "inputImageProperties": {"height": 9, "width": 9},
}
STUDIO = [{"x": 50, "y": 25, "width": 1, "keypointlabels": ["cell"], "original_width": 600}]
MARKUPS = {"type": "Fiducial", "controlPoints": [{"id": "1", "position": [1, 2, 3]}]}
LABELBOX = {"data_row": {"id": "c"}, "media_attributes": {"width": 9}, "projects": {"p": {"labels": []}}}
SUPERANNOTATE = {
    "metadata": {"name": "a.jpg"},
    "instances": [{"type": "point", "classId": 1, "x": 1, "y": 2}],
}
SUPERVISELY = {"size": {"height": 9}, "objects": [{"classTitle": "cell", "geometryType": "point"}]}


def table(*rows: list[str]) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.roi", b"Iout\x00\xe3\x0a\x00" + bytes(60), "is a ROI of ImageJ"),
        ("a.fcsv", "# Markups fiducial file version = 4.11\n# columns = id,x\n1,2\n", "points in space"),
        ("a.mrk.json", json.dumps({"markups": [MARKUPS]}), "points in space"),
        ("a.mps", "<?xml version='1.0'?><point_set_file><point_set/></point_set_file>", "points in space"),
        ("a.label", "#####\n# ITK-SnAP Label Description File\n#####\n 1 255 0 0 1 1 1 \"a\"\n", "ITK-SNAP"),
        ("via.json", json.dumps(VIA), "is a file of VIA"),
        ("project.json", json.dumps({"_via_settings": {}, "_via_img_metadata": VIA}), "is a file of VIA"),
        (
            "via.csv",
            table(["filename", "region_shape_attributes", "region_attributes"],
                  ["a.jpg", *(json.dumps(value) for value in REGION.values())]),
            "is a table of VIA",
        ),
        ("a.ndjson", json.dumps(LABELBOX) + "\n", "is an export of Labelbox"),
        ("a.jpg.json", json.dumps(SUPERANNOTATE), "is a file of SuperAnnotate"),
        ("b.jpg.json", json.dumps(SUPERVISELY), "is a file of Supervisely"),
        (
            "studio.csv",
            table(["image", "id", "kp", "annotator", "annotation_id", "lead_time"],
                  ["a.jpg", "1", json.dumps(STUDIO), "1", "1", "4.9"]),
            "export it as JSON",
        ),
        ("labelbox.json", json.dumps([{"DataRow ID": "d", "Labeled Data": "a.jpg"}]), "Labelbox"),
        (
            "toloka.csv",
            table(["INPUT:image", "OUTPUT:result", "ASSIGNMENT:task_id", "ASSIGNMENT:worker_id"],
                  ["a.jpg", json.dumps([{"type": "point", "left": 0.5, "top": 0.1}]), "t", "w"]),
            "holds drawings of Toloka",
        ),
        (
            "mturk.csv",
            table(["HITId", "WorkerId", "Input.image_url", "Answer.taskAnswers"],
                  ["H", "W", "a.jpg", json.dumps([{"annotatedResult": KEYPOINTS}])]),
            "holds drawings of Mechanical Turk",
        ),
        ("extracts.csv", "classification_id,user_name,subject_id,extractor,data.yes\n1,ann,7,question,1\n",
         "holds extracts of Zooniverse; import the export of its classifications"),
        ("reductions.csv", "subject_id,workflow_id,task,reducer,data.yes\n7,3,T0,question,3\n",
         "holds reductions of Zooniverse"),
        ("output.manifest", json.dumps({"source-ref": "s3://b/a.jpg", "animals-metadata": {"job-name": "x"}}),
         "manifest of Ground Truth"),
        ("worker.json", json.dumps({"answers": [{"answerContent": {"x": 1}, "workerId": "w"}]}),
         "answers of Ground Truth"),
        ("asap.xml", "<ASAP_Annotations><Annotations/></ASAP_Annotations>", "is a file of ASAP"),
        ("a.ndpa", "<annotations><ndpviewstate id='1'/></annotations>", "is a file of NDP.view"),
        ("ndpa.xml", "<annotations><ndpviewstate id='1'/></annotations>", "is a file of NDP.view"),
        ("a.annotations", "<Annotations><Annotation><Regions><Region><Vertices><V X='1' Y='2'/></Vertices>"
         "</Region></Regions></Annotation></Annotations>", "is a file of HALO"),
        ("aperio.xml", "<Annotations MicronsPerPixel='0.25'><Annotation><Regions><Region/></Regions>"
         "</Annotation></Annotations>", "is a file of Aperio"),
        ("voc.xml", "<annotation><object><bndbox><xmin>1</xmin></bndbox></object></annotation>",
         "boxes of Pascal VOC"),
        ("a.txt", "0 0.125 0.15 0.05 0.05\n1 .5 0.5 0.1 1\n", "of YOLO"),
        ("votes.feather", b"ARROW1\0\0" + bytes(60), "is a file of Arrow; save the table as CSV"),
        ("votes.db", b"SQLite format 3\0" + bytes(60), "is an SQLite database; save the table as CSV"),
        ("votes.sav", b"$FL2@(#) SPSS DATA FILE" + bytes(60), "is a file of SPSS"),
        ("votes.dta", b"<stata_dta><header><release>118</release>", "is a file of Stata"),
        ("old.dta", b"\x73\x02\x01\0" + bytes(60), "is a file of Stata"),
        ("votes.pkl", b"\x80\x04\x95" + bytes(60), "is a pickle"),
        ("votes.h5", b"\x89HDF\r\n\x1a\n" + bytes(60), "is an HDF5 file"),
        ("votes.csv.zst", b"\x28\xb5\x2f\xfd" + bytes(60), "is compressed by zstd"),
        ("lines.json", '{"text": "a"}\n{"text": "b"}\n', r"rename it to lines\.jsonl"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_read_is_refused_with_what_to_import_instead(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=words) as refusal:
        read_files([path])
    assert str(refusal.value).startswith(name)
