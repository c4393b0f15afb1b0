"""`raterscope import`, `run` and `export`, of clicks above all."""

import numpy as np
import pytest

from raterscope.app.review import Decision, SpotSubject, WeightSubject
from raterscope.app.study import Study
from tests.app.commands import run


class TestImport:
    def test_whatever_the_order_of_the_files(self, files, tmp_path, capsys):
        path = tmp_path / "s.rscope"
        assert run("import", path, *files) == 0
        output = capsys.readouterr().out
        assert "60 clicks on 2 images by 10 annotators" in output
        assert "6 true points on 2 images" in output
        with Study.open(path) as study:
            assert [entry.name for entry in study.images()] == ["one.png", "two.png"]
            assert len(study.clicks(study.images()[0].id)) == 30
            assert len(study.truth(study.images()[1].id)) == 3

    def test_more_into_a_study_that_is_there(self, study, tmp_path):
        (tmp_path / "more.csv").write_text("annotator,image,x,y\nnew,one,30,41\n")
        assert run("import", study, tmp_path / "more.csv") == 0
        with Study.open(study) as opened:
            assert len(opened.clicks(opened.images()[0].id)) == 31

    def test_the_size_may_be_given(self, files, tmp_path):
        assert run("import", tmp_path / "s.rscope", files[0], "--extent", 200, 180) == 0
        with Study.open(tmp_path / "s.rscope") as study:
            assert study.images()[0].extent == (0, 0, 200, 180)

    def test_nothing_is_made_of_what_cannot_be_read(self, files, tmp_path, refusal):
        path = tmp_path / "s.rscope"
        message = refusal("import", path, files[0])
        assert message.startswith('clicks.csv, line 2, field image: "one.png"')
        assert not path.exists()
        assert refusal("import", path, tmp_path / "gone.csv").startswith("gone.csv: ")
        assert not path.exists()

    def test_what_fails_leaves_a_study_as_it_was(self, study, tmp_path, refusal):
        (tmp_path / "bad.csv").write_text("annotator,image,x,y\nnew,one,30,here\n")
        content_before = study.read_bytes()
        assert "line 2, field y" in refusal("import", study, tmp_path / "bad.csv")
        assert study.read_bytes() == content_before

    def test_columns_are_named_by_hand(self, tmp_path, refusal):
        table = tmp_path / "c.csv"
        table.write_text("wer,bild,a,b\nich,i,1,2\n")
        path = tmp_path / "s.rscope"
        assert "--map column=field" in refusal("import", path, table, "--extent", 9, 9)
        mapping = ["--map", "wer=annotator", "bild=image", "a=x", "b=y"]
        assert run("import", path, table, "--extent", 9, 9, *mapping) == 0

    def test_a_file_that_is_no_study(self, files, refusal):
        assert refusal("import", files[0], files[1]).startswith("clicks.csv: ")


class TestRun:
    def test_a_run_is_kept_whole(self, study, capsys):
        assert run("run", study, "oem", "--set", "seed=5") == 0
        assert "run 1 is in" in capsys.readouterr().out
        with Study.open(study) as opened:
            (entry,) = opened.runs.all()
            assert entry.seed == 5
            assert entry.settings["algorithm"] == "oem"
            assert len(entry.items) == 2
            assert [image["image"] for image in entry.log["images"]] == ["one.png", "two.png"]

    def test_one_image(self, study):
        assert run("run", study, "hdbscan", "--detector", "majority", "--item", "two") == 0
        with Study.open(study) as opened:
            (entry,) = opened.runs.all()
            assert entry.items == (opened.images()[1].id,)

    def test_decisions_are_held_fixed_and_the_excluded_left_out(self, study, export):
        with Study.open(study) as opened:
            first = opened.images()[0].id
            opened.record(Decision(verb="reject", item=first, subject=SpotSubject(x=30.0, y=40.0)))
            opened.record(Decision(verb="exclude", annotators=("w3", "rater of masks"), reason="sleeps"))
        assert run("run", study, "oem") == 0
        with Study.open(study) as opened:
            entry, fusion = opened.shown.result(first, "clicks")
            assert set(entry.excluded) == {"w3", "rater of masks"}
            assert entry.known == 2
            rejected = np.hypot(*(fusion.clustering.mean - [30, 40]).T).argmin()
            assert fusion.verdict[rejected] == 0
            assert not fusion.detection.detected[rejected]
            assert 8 <= fusion.votes.max() <= 9
        people = {row["annotator"]: row for row in export(study, "annotators")}
        assert set(people) == {f"w{n}" for n in range(10)}
        left_out = people["w3"]
        assert (left_out["clicks"], left_out["weight"], left_out["reason"]) == ("6", "0", "sleeps")
        for rate in ("reliability", "sensitivity", "precision"):
            low, value, high = (float(left_out[f"{rate}{end}"]) for end in ("_low", "", "_high"))
            assert value > 0.5
            assert low <= value <= high <= 1
        assert (people["w4"]["weight"], people["w4"]["reason"]) == ("1", "")

    def test_weights_of_annotators_apply_and_stand_in_the_tables(self, study, export):
        with Study.open(study) as opened:
            weight = WeightSubject(weight=0.5)
            opened.record(Decision(verb="weigh", annotators=("w3",), subject=weight, reason="hasty"))
        assert run("run", study, "oem") == 0
        with Study.open(study) as opened:
            assert opened.runs.all()[0].weights == {"w3": 0.5}
            opened.record(Decision(verb="include", annotators=("w3",)))
        people = {row["annotator"]: row for row in export(study, "annotators")}
        assert (people["w3"]["clicks"], people["w3"]["weight"], people["w3"]["reason"]) == (
            "6",
            "0.5",
            "hasty",
        )
        decided = export(study, "decisions")
        assert [(row["verb"], row["weight"]) for row in decided] == [("weigh", "0.5"), ("include", "")]

    def test_refusals(self, study, refusal, tmp_path):
        assert "contains no image three" in refusal("run", study, "oem", "--item", "three")
        assert "'magic'" in refusal("run", study, "magic")
        assert refusal("run", tmp_path / "gone.rscope", "oem").startswith("gone.rscope: does not exist")
        Study.create(tmp_path / "bare.rscope").close()
        assert "contains no images yet" in refusal("run", tmp_path / "bare.rscope", "oem")


class TestExport:
    def test_clicks_before_a_run(self, study, export):
        rows = export(study, "clicks")
        assert len(rows) == 60
        assert {row["cluster"] for row in rows} == {""}

    def test_clicks_know_their_cluster(self, study, capsys, export):
        run("run", study, "oem")
        capsys.readouterr()
        detections = {(r["image"], r["cluster"]): r for r in export(study, "detections")}
        rows = [row for row in export(study, "clicks") if row["cluster"]]
        assert len(rows) > 50
        for row in rows:
            detection = detections[row["image"], row["cluster"]]
            assert (
                np.hypot(float(detection["x"]) - float(row["x"]), float(detection["y"]) - float(row["y"])) < 6
            )

    def test_clicks_of_the_excluded_and_of_later_imports_stay_unjudged(self, study, tmp_path, capsys, export):
        with Study.open(study) as opened:
            opened.record(Decision(verb="exclude", annotators=("w3",)))
        run("run", study, "oem")
        (tmp_path / "late.csv").write_text("annotator,image,x,y\nw0,one,31,41\n")
        run("import", study, tmp_path / "late.csv")
        capsys.readouterr()
        rows = export(study, "clicks")
        assert len(rows) == 61
        late = [row for row in rows if (row["x"], row["y"]) == ("31", "41")]
        assert [row["cluster"] for row in late] == [""]
        assert {row["inlier_probability"] for row in rows if row["annotator"] == "w3"} == {""}
        judged = [row for row in rows if row["annotator"] != "w3" and row not in late]
        assert all(row["inlier_probability"] for row in judged)

    def test_the_expert_has_the_last_word_on_detections(self, study, capsys, export):
        run("run", study, "oem")
        with Study.open(study) as opened:
            first = opened.images()[0].id
            opened.record(Decision(verb="reject", item=first, subject=SpotSubject(x=30.0, y=40.0)))
            opened.record(
                Decision(
                    verb="move", item=first, subject=SpotSubject(x=152.0, y=61.0, from_x=150.0, from_y=60.0)
                )
            )
            opened.record(Decision(verb="add", item=first, subject=SpotSubject(x=10.0, y=170.0)))
        capsys.readouterr()
        rows = [row for row in export(study, "detections") if row["image"] == "one.png"]
        by_verdict = {row["verdict"]: row for row in rows}
        assert set(by_verdict) == {"", "rejected", "accepted", "added"}
        assert by_verdict["rejected"]["detected"] == "0"
        assert (float(by_verdict["accepted"]["x"]), float(by_verdict["accepted"]["y"])) == (152, 61)
        assert by_verdict["added"]["cluster"] == ""
        assert (float(by_verdict["added"]["x"]), by_verdict["added"]["detected"]) == (10, "1")

    def test_decisions(self, study, export):
        with Study.open(study) as opened:
            opened.record(Decision(verb="exclude", annotators=("w3",), reason="=sleeps"))
        (row,) = export(study, "decisions")
        assert (row["verb"], row["annotators"], row["reason"]) == ("exclude", "w3", "'=sleeps")

    @pytest.mark.parametrize("kind", ["detections", "annotators"])
    def test_nothing_to_export_yet(self, study, refusal, kind):
        out = study.with_name("x.csv")
        assert "`raterscope run`" in refusal("export", study, "--what", kind, "-o", out)
        assert not out.exists()


def test_an_export_of_other_kinds_than_the_study_has_names_both(study_fused, tmp_path, refusal):
    for what, kinds in (("agreement", "masks or labels"), ("ranking", "pairs")):
        refused = refusal("export", study_fused, "--what", what, "-o", tmp_path / "out.csv")
        assert f"has clicks; {what} is exported of {kinds}" in refused
