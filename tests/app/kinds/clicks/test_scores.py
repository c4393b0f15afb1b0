"""Scores of a program in a study: imported, fused, named, excluded, replaced, followed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from raterscope.algorithms.clicks.data import PROGRAM
from raterscope.algorithms.clicks.fusion import FusionPlan
from raterscope.algorithms.progress import silent
from raterscope.app.kinds.clicks.annotators import preview
from raterscope.app.kinds.clicks.live_watching import replay
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.review import Decision, fold, undo
from raterscope.app.study import Study
from raterscope.app.study.kinds import mismatch_of
from tests.app.commands import run
from tests.app.tables import rows_of

CENTRES = [(30.0, 40.0), (150.0, 60.0), (90.0, 150.0)]


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(1)
    clicks = ["annotator,image,x,y"]
    for name in ("one", "two"):
        clicks += [
            f"w{n},{name},{x + rng.normal():.1f},{y + rng.normal():.1f}" for x, y in CENTRES for n in range(8)
        ]
    (tmp_path / "clicks.csv").write_text("\n".join(clicks))
    lines = ["image,x,y,score", *(f"one,{x + 1},{y},{x}" for x, y in CENTRES[:2]), "two,,,"]
    (tmp_path / "found.csv").write_text("\n".join(lines))
    study = tmp_path / "s.rscope"
    assert run("import", study, tmp_path / "clicks.csv", "--extent", 200, 200) == 0
    assert run("import", study, tmp_path / "found.csv") == 0
    return study


def fused(study):
    images = [entry.id for entry in study.images()]
    number = keep(fuse_inputs(gather(images, study), FusionPlan(), jobs=1), study)
    return study.runs.get(number), [study.runs.result(number, image).score for image in images]


def test_scores_go_into_fusion_record_and_export(path, tmp_path, capsys):
    with Study.open(path) as study:
        inputs, scores = fused(study)
    assert inputs.log["scores"] == {"images": 2, "detections": 2}
    assert sorted(scores[0][np.isfinite(scores[0])]) == [30, 150]
    assert np.isnan(scores[1]).all()
    assert run("export", path, "--what", "detections", "-o", tmp_path / "d.csv") == 0
    assert sorted(row["score"] for row in rows_of(tmp_path / "d.csv")) == ["", "", "", "", "150", "30"]
    assert run("report", path, "-o", tmp_path / "r.html") == 0
    assert "scores of a program, 2 detections on 2 images" in (tmp_path / "r.html").read_text()


def test_scores_are_excluded_and_undone(path):
    with Study.open(path) as study:
        inputs, _ = fused(study)
        study.record(Decision(verb="exclude", annotators=(PROGRAM,), reason="too old"))
        assert study.shown.outdated(inputs, inputs.items)
        without, scores = fused(study)
        assert scores == [None, None]
        assert "scores" not in without.log
        study.record(undo(fold(study.decisions())))
        assert fused(study)[1][0] is not None
        assert study.clicks(inputs.items[0], without).scores is None


def test_a_new_import_replaces_the_scores_of_its_images(path, tmp_path):
    with Study.open(path) as study:
        inputs, _ = fused(study)
        (tmp_path / "new.csv").write_text("image,x,y,score\none,90,150,0.5\n")
    assert run("import", path, tmp_path / "new.csv") == 0
    with Study.open(path) as study:
        first, second = inputs.items
        assert study.scores(first).tolist() == [[90, 150, 0.5]]
        assert len(study.scores(second)) == 0
        assert study.shown.outdated(inputs, [first])
        assert len(study.clicks(first, inputs).scores) == 2
        assert study.truth(first).known is False


def test_a_replay_has_the_scores(path):
    with Study.open(path) as study:
        clicks = study.clicks(study.images()[0].id)
    pending = replay(clicks, "random", 4)
    np.testing.assert_array_equal(pending.clicks(len(pending.arrivals)).scores, clicks.scores)
    assert replace(clicks, scores=None).without({PROGRAM}).scores is None


def test_scores_of_another_number_are_no_result(path):
    with Study.open(path) as study:
        inputs, _ = fused(study)
        image = inputs.items[0]
        fusion = study.runs.result(inputs.id, image)
        assert mismatch_of(study, inputs, image, fusion) is None
        for score in (fusion.score[1:], fusion.score + np.inf):
            assert "the scores are not" in mismatch_of(study, inputs, image, replace(fusion, score=score))


def test_clicks_of_marked_programs_are_scores_and_no_votes(path, tmp_path, capsys):
    lines = ["annotator,image,x,y"]
    lines += [f"{net},two,{x + 1},{y}" for net, found in (("a", 2), ("b", 1)) for x, y in CENTRES[:found]]
    (tmp_path / "nets.csv").write_text("\n".join(lines))
    assert run("import", path, tmp_path / "nets.csv", "--program", "a", "b") == 0
    assert "Mark 2 annotators as programs." in capsys.readouterr().out
    with Study.open(path) as study:
        study.record(Decision(verb="exclude", annotators=(PROGRAM,)))
        crowd, _ = fused(study)
        study.record(undo(fold(study.decisions())))
        inputs, _ = fused(study)
        image = inputs.items[1]
        clicks = study.clicks(image, inputs)
        assert inputs.programs == ("a", "b")
        assert clicks.programs == ()  # imported scores take precedence
        assert len(clicks) == len(study.clicks(image, crowd)) == 24
        assert not {"a", "b"} & set(clicks.annotators)


def test_programs_without_imported_scores_count_as_one(path, tmp_path):
    lines = ["annotator,image,x,y", *(f"w{n},three,{x},{y}" for x, y in CENTRES for n in range(6))]
    lines += ["a,three,31,40", "b,three,30,41", "b,three,150,60", "b,three,5,190"]
    (tmp_path / "more.csv").write_text("\n".join(lines))
    assert run("import", path, tmp_path / "more.csv", "--extent", 200, 200, "--program", "a", "b") == 0
    with Study.open(path) as study:
        images = [entry.id for entry in study.images() if entry.name == "three"]
        number = keep(fuse_inputs(gather(images, study), FusionPlan(), jobs=1), study)
        entry = study.runs.get(number)
        clicks, fusion = study.clicks(images[0], entry), study.runs.result(number, images[0])
        assert clicks.programs == ("a", "b")
        assert sorted(clicks.scores[:, 2]) == [1, 1, 2]
        study.settings.set_matching_radius(0.5)
        assert sorted(study.clicks(images[0], entry).scores[:, 2]) == [1, 1, 2]
        centres = [tuple(mean.round()) for mean in fusion.clustering.mean]
        by_centre = dict(zip(centres, fusion.score, strict=True))
        assert by_centre[30, 40] == 2
        assert by_centre[150, 60] == 1
        assert np.isnan(by_centre[90, 150])
        assert mismatch_of(study, entry, images[0], fusion) is None
        (note,) = preview(study, ("a",), None, silent).notes
        assert (
            note == f"Run {number} scores spots by all its programs: changes by a program are not previewed."
        )
        decision = study.record(Decision(verb="person", annotators=("a", "b")))
        assert study.shown.outdated(entry, images) == [
            f"Run {number} is outdated: other annotators are marked as programs now. Fuse again."
        ]
        assert decision.verb == "person"
    assert run("export", path, "--what", "clicks", "-o", tmp_path / "clicks_out.csv") == 0
    assert {row["annotator"] for row in rows_of(tmp_path / "clicks_out.csv")} >= {"a", "b"}


RESULTS = {
    "boxes": {"bbox": [28, 36, 4, 8]},
    "keypoints": {"keypoints": [20, 40, 2, 40, 40, 1, 0, 0, 0]},
}


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_coco_results_find_their_images_by_the_ids_of_a_coco_file(path, tmp_path, capsys, name, together):
    listed = {"images": [{"id": 7, "file_name": "one.png"}, {"id": 9, "file_name": "two.png"}]}
    marks = [{"image_id": 7, "category_id": 1, "keypoints": [30, 40, 2]}]
    coco, results = tmp_path / "coco.json", tmp_path / "results.json"
    coco.write_text(json.dumps(listed | {"annotations": [] if together else marks}))
    results.write_text(json.dumps([{"image_id": 7, "category_id": 1, "score": 0.5, **RESULTS[name]}]))
    assert run("import", path, results) == 1
    assert '"7" is the id of an image; import the COCO file that lists the images' in capsys.readouterr().err
    if together:
        assert run("import", path, coco, results) == 0
    else:
        assert run("import", path, coco, "--kind", "truth") == 0
        assert run("import", path, results) == 0
    with Study.open(path) as study:
        assert study.scores(study.images()[0].id).tolist() == [[30, 40, 0.5]]


def test_ids_on_which_coco_files_disagree_name_no_image(path, tmp_path, capsys):
    for name in ("one", "two"):
        listed = {"images": [{"id": 7, "file_name": f"{name}.png"}]}
        marks = [{"image_id": 7, "category_id": 1, "keypoints": [30, 40, 2]}]
        (tmp_path / "coco.json").write_text(json.dumps(listed | {"annotations": marks}))
        assert run("import", path, tmp_path / "coco.json", "--kind", "truth") == 0
    (tmp_path / "r.json").write_text(json.dumps([{"image_id": 7, "bbox": [1, 2, 3, 4], "score": 0.5}]))
    assert run("import", path, tmp_path / "r.json") == 1
    assert "is the id of an image" in capsys.readouterr().err
