"""What a study keeps, and gives back."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.progress import Cancelled
from raterscope.app.errors import InputError
from raterscope.app.formats import read
from raterscope.app.formats.images import is_image, load_image, read_image
from raterscope.app.formats.records import ClickTable, ImageFile, PointTable
from raterscope.app.formats.tables import read_table
from raterscope.app.review import Decision, ImageSubject, SpotOf, SpotsSubject, SpotSubject, WeightSubject
from raterscope.app.study import ImageEntry, Study, StudyError, digest_of
from tests.app.study.made import a_fusion, a_run, a_table
from tests.app.study.test_arrays import same


@pytest.fixture
def study(tmp_path: Path):
    (tmp_path / "studies").mkdir()
    with Study.create(tmp_path / "studies" / "smears.rscope") as study:
        yield study


def a_picture(path: Path, size: tuple[int, int] = (40, 30), shade: int = 90) -> Path:
    path.parent.mkdir(exist_ok=True)
    Image.new("L", size, shade).save(path)
    return path


def points(name: str, x: list[float], y: list[float]) -> PointTable:
    return PointTable(Path("truth.csv"), (name,), np.zeros(len(x), dtype=int), np.array(x), np.array(y))


def reopened(study: Study) -> Study:
    study.close()
    return Study.open(study.path)


# Clicks


def test_clicks_come_back_by_image_in_the_order_of_the_file(study: Study) -> None:
    table = a_table(3, ("b.png", "a.png"), clicks=50)
    shuffled = np.random.default_rng(0).permutation(len(table))
    table = replace(
        table, annotator=table.annotator[shuffled], image=table.image[shuffled], x=table.x[shuffled],
        y=table.y[shuffled], time=table.time[shuffled],
    )  # fmt: skip
    study.add_clicks(table)
    with reopened(study) as again:
        for index, entry in enumerate(again.images()):
            assert entry.name == table.images[index]
            clicks, rows = again.clicks(entry.id), table.image == index
            np.testing.assert_array_equal(clicks.x, table.x[rows])
            np.testing.assert_array_equal(clicks.time, table.time[rows])
            assert [clicks.annotators[a] for a in clicks.annotator] == [
                table.annotators[a] for a in table.annotator[rows]
            ]
            assert clicks.extent == (0, 0, 100, 100)


def test_annotators_keep_their_number_for_good(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",), annotators=3))
    other = replace(a_table(2, ("b",), annotators=3), annotators=("zoe", "annotator 2", "abe"))
    study.add_clicks(other)
    assert study.annotators() == ["annotator 0", "annotator 1", "annotator 2", "zoe", "abe"]
    assert study.clicks(2).annotators == ("annotator 2", "zoe", "abe")


def test_who_looked_and_marked_nothing_counts(study: Study) -> None:
    table = ClickTable(
        Path("c.csv"), ("ann", "bob", "cy"), ("a",), np.array([0]), np.array([0]), np.array([1.0]),
        np.array([2.0]), looked=frozenset({(1, 0), (2, 0), (0, 0)}), extents={0: (9.0, 9.0)},
    )  # fmt: skip
    summary = study.add_clicks(table)
    assert study.clicks(1).annotators == ("ann", "bob", "cy")
    assert (summary.annotators, summary.empty) == (3, 2)
    assert "2 looks without a mark" in summary.in_words()


def test_duplicates_and_clicks_outside_are_kept_and_counted(study: Study) -> None:
    table = ClickTable(
        Path("c.csv"), ("ann", "bob"), ("a",), np.array([0, 0, 1, 0, 1]), np.zeros(5, dtype=int),
        np.array([1.0, 1.0, 1.0, -3.0, 9.0]), np.array([2.0, 2.0, 2.0, 2.0, 9.5]), extents={0: (9.0, 9.0)},
    )  # fmt: skip
    first = study.add_clicks(table)
    assert (first.marks, first.duplicates, first.outside) == (5, 1, 2)
    assert len(study.clicks(1)) == 5
    second = study.add_clicks(table)
    assert second.duplicates == 5
    clicks, _ = study.clicks(1).merged()
    assert len(clicks) == 4


def test_an_unknown_image_without_a_size_is_refused_whole(study: Study) -> None:
    table = replace(a_table(1, ("a", "b", "c")), extents={0: (100.0, 100.0)}, lines=(2, 7, 9))
    with pytest.raises(StudyError) as caught:
        study.add_clicks(table)
    sentence = str(caught.value)
    assert sentence.startswith('made.csv, line 7, field image: "b" (and 1 more images) is not among')
    assert study.images() == []
    assert study.annotators() == []
    assert study.last_import() == 0


def test_an_extent_makes_room_for_unknown_images(study: Study) -> None:
    study.add_clicks(replace(a_table(1, ("a",)), extents={}), extent=(640, 480))
    assert study.clicks(1).extent == (0, 0, 640, 480)


def test_clicks_on_unknown_images_can_be_left_out(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    summary = study.add_clicks(replace(a_table(2, ("a", "b")), extents={}), leave_out_unknown=True)
    assert (summary.marks, summary.left_out) == (60, 60)
    assert [entry.name for entry in study.images()] == ["a"]


def test_an_import_that_is_cancelled_leaves_nothing(study: Study) -> None:
    def stop(fraction: float, _words: str, **_: object) -> None:
        if fraction > 0.4:
            raise Cancelled

    with pytest.raises(Cancelled):
        study.add_clicks(a_table(1, ("a", "b", "c")), stop)
    assert study.images() == []
    assert study.add_clicks(a_table(1, ("a",))).marks == 60


def test_truth_comes_back_once_each(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    study.add_truth(points("a.png", [3.0, 1.0], [4.0, 2.0]))
    summary = study.add_truth(points("a", [1.0, 5.0], [2.0, 6.0]))
    truth = study.truth(1)
    assert list(zip(truth.x, truth.y, strict=True)) == [(3, 4), (1, 2), (5, 6)]
    assert summary.duplicates == 1
    assert len(study.clicks(1)) == 60


def test_that_nothing_is_on_an_image_is_truth_too(study: Study, tmp_path: Path) -> None:
    study.add_clicks(a_table(1, ("a.png", "b.png", "c.png")))
    table = tmp_path / "truth.csv"
    table.write_text("image,x,y\na.png,3,4\nb.png,,\n")
    summary = study.add_truth(read(table, "truth"))
    assert summary.in_words() == "1 true point on 2 images (1 image with nothing on it)."
    with reopened(study) as again:
        told = {entry.name: again.truth(entry.id) for entry in again.images()}
        assert {name: (one.known, len(one)) for name, one in told.items()} == {
            "a.png": (True, 1), "b.png": (True, 0), "c.png": (False, 0),
        }  # fmt: skip


def test_a_true_place_needs_both_of_its_coordinates(tmp_path: Path) -> None:
    table = tmp_path / "truth.csv"
    table.write_text("image,x,y\na.png,3,4\nb.png,5,\n")
    with pytest.raises(InputError, match=r"line 3.*y.*is empty"):
        read(table, "truth")


def test_sizes_then_clicks_then_files_meet_by_name(study: Study, tmp_path: Path) -> None:
    sizes = tmp_path / "images.csv"
    sizes.write_text("image_id,width,height,n_empty_jobs\nsmear_01,40,30,2\n")
    study.add_clicks(read(sizes))
    clicks = tmp_path / "clicks.csv"
    clicks.write_text("worker,image,x,y\nann,Smear_01.PNG,3,4\n")
    study.add_clicks(read(clicks, "clicks"))
    (entry,) = study.add_images([read_image(a_picture(tmp_path / "smear_01.png"))])
    assert study.images() == [entry]
    assert study.locate(entry) == tmp_path / "smear_01.png"
    assert study.clicks(entry.id).annotators[2] == "ann"
    assert len(study.clicks(entry.id).annotators) == 3


# Images


def test_images_are_references_relative_below_the_study(study: Study, tmp_path: Path) -> None:
    inside = a_picture(study.path.parent / "pictures" / "in.png")
    outside = a_picture(tmp_path / "out.png", shade=3)
    within, without = study.add_images([read_image(inside), read_image(outside)])
    assert (within.path, without.path) == ("pictures/in.png", str(outside))
    assert (within.width, within.height, within.size) == (40, 30, inside.stat().st_size)
    assert within.digest is not None
    assert within.digest.startswith("sha256:")
    assert study.add_images([read_image(inside)]) == [within]
    assert len(study.images()) == 2


def test_the_size_of_a_pixel_is_kept(study: Study, tmp_path: Path) -> None:
    files = [
        replace(read_image(a_picture(tmp_path / f"{n}.png")), pixel_size=size)
        for n, size in ((1, 0.5), (2, None))
    ]
    study.add_clicks(replace(a_table(1, ("1",)), extents={0: (40.0, 30.0)}))
    assert [entry.pixel_size for entry in study.add_images(files)] == [0.5, None]


def test_two_images_of_one_name_are_told_apart_by_their_folder(study: Study, tmp_path: Path) -> None:
    first = a_picture(tmp_path / "monday" / "a.png", shade=1)
    second = a_picture(tmp_path / "tuesday" / "a.png", shade=2)
    entries = study.add_images([read_image(first), read_image(second)])
    assert [entry.name for entry in entries] == ["a.png", "tuesday/a.png"]


def test_an_image_that_moved_is_looked_for_beside_the_study(study: Study, tmp_path: Path) -> None:
    path = a_picture(tmp_path / "far" / "a.png")
    (entry,) = study.add_images([read_image(path)])
    path.rename(study.path.parent / "a.png")
    assert study.locate(entry) == study.path.parent / "a.png"
    (study.path.parent / "a.png").write_bytes(b"something else")
    assert study.locate(entry) is None


def test_an_image_is_relocated_if_it_is_the_same(study: Study, tmp_path: Path) -> None:
    path = a_picture(tmp_path / "a.png")
    (entry,) = study.add_images([read_image(path)])
    path.rename(tmp_path / "b.png")
    a_picture(tmp_path / "c.png", shade=91)
    with pytest.raises(StudyError, match=r"c\.png: is another image than a\.png"):
        study.relocate(entry.id, tmp_path / "c.png")
    with pytest.raises(InputError, match=r"nothing\.png"):
        study.relocate(entry.id, tmp_path / "nothing.png")
    moved = study.relocate(entry.id, tmp_path / "b.png")
    assert study.locate(moved) == tmp_path / "b.png"


def test_all_missing_images_are_found_in_a_folder(study: Study, tmp_path: Path) -> None:
    paths = [a_picture(tmp_path / "old" / f"{n}.png", shade=n) for n in range(3)]
    study.add_images([read_image(path) for path in paths])
    (tmp_path / "old").rename(tmp_path / "new")
    assert len(study.relocate_all(tmp_path / "new")) == 3
    assert all(study.locate(entry) is not None for entry in study.images())


def test_what_cannot_be_noted_of_missing_images_is_said(study: Study, tmp_path: Path) -> None:
    study.add_images([read_image(a_picture(tmp_path / "old" / "a.png"))])
    (tmp_path / "old").rename(tmp_path / "new")
    study.path.rename(tmp_path / "away.rscope")
    with pytest.raises(StudyError, match="was moved"):
        study.relocate_all(tmp_path / "new")


def test_a_strangers_study_does_not_lead_out_of_its_folder(study: Study, tmp_path: Path) -> None:
    a_picture(tmp_path / "secret.png")
    for path in ("../secret.png", r"\\host\share\secret.png", "//host/share/secret.png", "a\0b"):
        assert study.locate(ImageEntry(1, "secret.png", path, 40, 30)) is None


def test_a_file_of_another_size_than_its_clicks_is_refused(study: Study, tmp_path: Path) -> None:
    study.add_clicks(a_table(1, ("a",)))
    with pytest.raises(StudyError, match="has 40 x 30 pixels, but the clicks on a were made on 100 x 100"):
        study.add_images([read_image(a_picture(tmp_path / "a.png"))])


def test_readers_leave_an_open_study_alone(study: Study, tmp_path: Path) -> None:
    """To look into its file would open it to others: this process would lose its lock."""
    link = tmp_path / "link.csv"
    link.symlink_to(study.path)
    for path in (study.path, link):
        for reader in (read, read_image, load_image, read_table):
            with pytest.raises(InputError, match="is a study"):
                reader(path)
        assert not is_image(path)
        with pytest.raises(InputError, match="is a study"):
            study.add_images([ImageFile("a.png", path, 4, 4)])
    code = f"from raterscope.app.study import Study; Study.open({str(study.path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "is open already" in other.stderr


# Runs


def test_a_run_comes_back_bit_by_bit(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    record = a_run(known=0, excluded=("annotator 3",), weights={"annotator 5": 0.25})
    clicks = {image: study.clicks(image).without({"annotator 3"}).weighed(record.weights) for image in (1, 2)}
    results = {image: a_fusion(clicks[image], seed=image) for image in (1, 2)}
    number = study.add_run(record, results)
    with reopened(study) as again:
        (entry,) = again.runs()
        assert (entry.id, entry.items, entry.imported) == (number, (1, 2), 1)
        told = ("kind", "algorithm", "settings", "seed", "versions", "digest", "started", "log", "excluded")
        for name in (*told, "weights"):
            assert getattr(entry, name) == getattr(record, name)
        for image in (1, 2):
            assert same(again.result(number, image), results[image])
            assert same(again.clicks(image, entry), clicks[image])


def test_the_latest_result_of_each_image(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    assert study.latest_result(1) is None
    first = study.add_run(a_run(), {1: a_fusion(study.clicks(1)), 2: a_fusion(study.clicks(2))})
    second = study.add_run(a_run(), {2: a_fusion(study.clicks(2), seed=8)})
    assert [study.latest_result(image)[0].id for image in (1, 2)] == [first, second]
    study.delete_run(second)
    assert [study.latest_result(image)[0].id for image in (1, 2)] == [first, first]
    assert study.result(second, 2) is None
    with pytest.raises(StudyError, match="no run number 2"):
        study.run(second)


def test_the_answers_of_the_latest_runs_are_had_without_their_results(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b", "c")))
    clicks = {image: study.clicks(image) for image in (1, 2, 3)}
    study.add_run(a_run(), {image: a_fusion(clicks[image], image) for image in (1, 2)})
    study.add_run(a_run(), {2: a_fusion(clicks[2], 9, clusters=0)})
    with reopened(study) as again:
        found = again.latest_answers()
        assert found.keys() == {1, 2}
        assert len(found[2].posterior) == 0
        fusion, answers = again.latest_result(1)[1], found[1]
        assert answers.looked == len(clicks[1].annotators)
        assert np.array_equal(answers.posterior, fusion.detection.posterior)
        assert np.array_equal(answers.detected, fusion.detection.detected)
        assert np.allclose(answers.mean, fusion.clustering.mean)
        assert np.allclose(answers.covariance, fusion.clustering.covariance)


def test_a_deleted_run_gives_back_its_room(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    clicks = study.clicks(1)
    for _ in range(3):
        study.delete_run(study.add_run(a_run(), {1: a_fusion(clicks, clusters=2000)}))
    size = study.path.stat().st_size
    study.close()
    with sqlite3.connect(study.path) as connection:
        left = connection.execute("SELECT count(*) FROM objects").fetchone()[0]
    connection.close()
    assert left == 1
    assert size < 5_000_000


def test_clicks_that_came_after_a_run_are_none_of_its(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    clicks = study.clicks(1)
    number = study.add_run(a_run(), {1: a_fusion(clicks)})
    study.add_clicks(a_table(2, ("a",), annotators=12))
    assert len(study.clicks(1)) == 120
    assert same(study.clicks(1, study.run(number)), clicks)
    assert study.result(number, 1) is not None


def test_a_run_on_clicks_that_have_changed_is_refused_unless_it_says_so(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    before, result = study.last_import(), a_fusion(study.clicks(1))
    study.add_clicks(a_table(2, ("a",)))
    with pytest.raises(StudyError, match="does not fit its clicks"):
        study.add_run(a_run(), {1: result})
    assert study.runs() == []
    study.add_run(a_run(imported=before), {1: result})


def test_a_run_that_is_cancelled_leaves_nothing(study: Study) -> None:
    def stop(fraction: float, _words: str, **_: object) -> None:
        if fraction > 0.7:
            raise Cancelled

    study.add_clicks(a_table(1, ("a", "b", "c", "d")))
    with pytest.raises(Cancelled):
        study.add_run(a_run(), {image: a_fusion(study.clicks(image)) for image in (1, 2, 3, 4)}, stop)
    assert study.runs() == []
    assert study.latest_result(1) is None


def test_a_full_disk_is_a_sentence_and_leaves_nothing_by_halves(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    clicks = study.clicks(1)
    (pages,) = study._connection.execute("PRAGMA page_count").fetchone()
    study._connection.execute(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(StudyError, match="cannot be written: the disk is full; nothing was changed"):
        study.add_run(a_run(), {1: a_fusion(clicks, clusters=2000)})
    with pytest.raises(StudyError, match="the disk is full"):
        study.add_clicks(a_table(2, ("a", "b"), clicks=5000))
    assert study.runs() == []
    assert [entry.name for entry in study.images()] == ["a"]
    study.record(Decision(verb="accept", item=1, subject=SpotSubject(x=1.0, y=1.0)))
    with reopened(study) as again:
        assert same(again.clicks(1), clicks)


# Decisions


def test_decisions_come_back_with_number_time_and_name(study: Study) -> None:
    asked = [
        Decision(
            verb="accept", item=1, subject=SpotSubject(number=4, x=1.5, y=2.5), run=1, who="dr <b>x</b>"
        ),
        Decision(
            verb="move", item=1, subject=SpotSubject(number=4, x=2.0, y=2.5, from_x=1.5, from_y=2.5), about=1
        ),
        Decision(verb="exclude", annotators=("=bob",), reason="clicks anywhere"),
        Decision(verb="undo", undoes=2),
        Decision(
            verb="reject",
            item=1,
            subject=SpotsSubject(
                spots=(SpotOf(image=1, x=1.5, y=2.5, number=4, run=1, about=1), SpotOf(image=2, x=0, y=9)),
                blind=True,
            ),
        ),
        Decision(verb="flag", item=1, subject=ImageSubject(name="a.png"), reason="blurred"),
        Decision(verb="weigh", annotators=("=bob", "kim"), subject=WeightSubject(weight=0.5), reason="hasty"),
    ]
    done = [study.record(one) for one in asked]
    with reopened(study) as again:
        found = again.decisions()
    assert [one.id for one in found] == [1, 2, 3, 4, 5, 6, 7]
    assert [replace(one, at=None) for one in found] == [replace(one, at=None) for one in done]
    for one, wanted in zip(found, asked, strict=True):
        assert one.at is not None
        assert one.who == (wanted.who or done[1].who)
        assert replace(one, id=0, at=None, who=wanted.who) == wanted


def test_an_undo_of_nothing_is_refused(study: Study) -> None:
    with pytest.raises(StudyError, match="no decision number 1"):
        study.record(Decision(verb="undo", undoes=1))


def test_what_is_undone_is_not_undone_twice(study: Study) -> None:
    """Two quick presses of Undo, before the first is on disk, ask for the same."""
    study.record(Decision(verb="accept", item=1, subject=SpotSubject(x=1.0, y=1.0)))
    study.record(Decision(verb="undo", undoes=1))
    with pytest.raises(StudyError, match="decision number 1 undone already"):
        study.record(Decision(verb="undo", undoes=1))
    study.record(Decision(verb="undo", undoes=2))
    study.record(Decision(verb="undo", undoes=1))
    assert len(study.decisions()) == 4


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decisions SET verb = 'reject'",
        "DELETE FROM decisions",
        "INSERT OR REPLACE INTO decisions SELECT * FROM decisions",
        "REPLACE INTO decisions(id, at, who, verb, reason) VALUES (1, '', '', 'skip', '')",
        "INSERT INTO decisions(id, at, who, verb, reason) VALUES (9, '', '', 'skip', '')",
    ],
)
def test_the_journal_only_grows_whoever_writes(study: Study, statement: str) -> None:
    study.record(Decision(verb="accept", item=1, subject=SpotSubject(x=1.0, y=1.0)))
    study.close()
    connection = sqlite3.connect(study.path)
    with pytest.raises(sqlite3.IntegrityError, match="decisions are"):
        connection.execute(statement)
    connection.close()


def test_the_digest_names_the_input(study: Study) -> None:
    study.add_clicks(a_table(1, ("a", "b")))
    one, two = study.clicks(1), study.clicks(2)
    assert digest_of({"a": one, "b": two}) == digest_of({"b": two, "a": one})
    assert digest_of({"a": one}) != digest_of({"a": two})
    assert digest_of({"a": one}) != digest_of({"a": one.without({"annotator 1"})})
    assert digest_of({"a": one}) != digest_of({"a": one.weighed({"annotator 1": 0.5})})
    assert digest_of({"a": one}) == digest_of({"a": one.weighed({"nobody": 0.5})})
