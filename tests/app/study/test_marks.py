"""Clicks, true places and images, as a study takes them up and gives them back."""

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.progress import Cancelled
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.formats import read
from raterscope.app.formats.image_heads import read_image
from raterscope.app.formats.images import load_image
from raterscope.app.formats.records import ClickTable, ImageFile, PointTable
from raterscope.app.formats.sources import Source
from raterscope.app.formats.table_files import read_table
from raterscope.app.study import ImageEntry, Study, StudyError
from tests.app.study.made import a_run, a_table, reopened


def a_picture(path: Path, size: tuple[int, int] = (40, 30), shade: int = 90) -> Path:
    path.parent.mkdir(exist_ok=True)
    Image.new("L", size, shade).save(path)
    return path


def points(name: str, x: list[float], y: list[float]) -> PointTable:
    return PointTable(Path("truth.csv"), (name,), np.zeros(len(x), dtype=int), np.array(x), np.array(y))


# Clicks


def a_click_table(path: Path, rows: list[tuple[str, float, float]]) -> ClickTable:
    lines = [f"{annotator},a.png,{x},{y}\n" for annotator, x, y in rows]
    path.write_text("annotator,image,x,y\n" + "".join(lines), encoding="utf-8")
    table = read(path)
    assert isinstance(table, ClickTable)
    return table


@pytest.mark.parametrize(
    ("places", "hint"),
    [([(5, 38), (9, 35), (20, 20)], True), ([(38, 5), (35, 9)], False), ([(5, 90), (50, 9)], False)],
)
def test_positions_that_fit_with_x_and_y_exchanged_are_noticed(
    study: Study, tmp_path: Path, places: list[tuple[float, float]], hint: bool
) -> None:
    study.add_images([read_image(a_picture(tmp_path / "a.png"))])
    table = a_click_table(tmp_path / "clicks.csv", [("ann", x, y) for x, y in places])
    assert ("0 would be with x and y exchanged" in study.add_clicks(table).in_words()) is hint


def test_annotators_whose_names_look_alike_are_noticed_once_they_are_together(
    study: Study, tmp_path: Path
) -> None:
    study.add_images([read_image(a_picture(tmp_path / "a.png"))])
    first = a_click_table(tmp_path / "clicks.csv", [("Ann", 1, 1), ("Zoë", 2, 2), ("bob", 3, 3)])
    assert "spellings" not in study.add_clicks(first).in_words()
    second = a_click_table(tmp_path / "more.csv", [("ann", 1, 1), ("Zoe\u0308", 2, 2), ("bob", 3, 4)])
    words = study.add_clicks(second).in_words()
    assert "Ann, ann, and 1 more name: spellings of one name count as different annotators" in words
    assert len(study.annotators()) == 5


@pytest.mark.parametrize(("header", "cells"), [("task,label", "t1,cat"), ("left,right,choice", "u,v,left")])
def test_annotators_of_votes_whose_names_look_alike_are_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: str, cells: str
) -> None:
    path = tmp_path / "votes.csv"
    names = ["007", "7", "12.0", "12", "v1.0", "v1"]
    path.write_text("\n".join([f"annotator,{header}", *(f"{name},{cells}" for name in names)]))
    assert main(["import", str(tmp_path / "s.rscope"), str(path)]) == 0
    assert "007, 7, and 1 more name: spellings of one name" in capsys.readouterr().out


def test_an_image_is_found_in_either_coding_of_accents(study: Study, tmp_path: Path) -> None:
    study.add_images([read_image(a_picture(tmp_path / "re\N{COMBINING ACUTE ACCENT}a.png"))])
    path = tmp_path / "clicks.csv"
    path.write_text(
        "annotator,image,x,y\nann,r\N{LATIN SMALL LETTER E WITH ACUTE}a.png,1,2\n", encoding="utf-8"
    )
    table = read(path)
    assert isinstance(table, ClickTable)
    assert study.add_clicks(table).marks == 1


def test_the_work_for_an_image_does_not_grow_with_the_images_of_the_table(tmp_path: Path) -> None:
    def steps(images: int) -> int:
        """Count what SQLite does, in hundreds of its instructions."""
        names = tuple(f"{n}.png" for n in range(images))
        table = PointTable(
            Path("truth.csv"), names, np.arange(images), np.ones(images), np.ones(images),
            dict.fromkeys(range(images), (40.0, 30.0)),
        )  # fmt: skip
        done = []
        with Study.create(tmp_path / f"{images}.rscope") as study:
            study._connection.set_progress_handler(lambda: done.append(1) and None, 100)
            study.add_clicks(table)
        return len(done)

    assert steps(1600) < 6 * steps(400)


def test_a_run_counts_the_clicks_of_its_imports_and_none_of_one_that_failed(study: Study) -> None:
    study.add_clicks(a_table(3, ("a.png",), clicks=50))
    (image,) = (entry.id for entry in study.images())
    first = a_run(imported=study.last_import())
    assert study.count_clicks(image, first) == (50, len(study.clicks(image).annotators))
    with suppress(ZeroDivisionError), study.change():
        study.add_clicks(a_table(4, ("a.png",), clicks=20))
        assert study.count_clicks(image, a_run(imported=study.last_import()))[0] == 70
        raise ZeroDivisionError
    study.add_clicks(a_table(5, ("a.png",), clicks=30))
    second = a_run(imported=study.last_import())
    assert [study.count_clicks(image, run)[0] for run in (first, second)] == [50, 80]


def test_clicks_come_back_by_image_in_the_order_of_the_file(study: Study) -> None:
    table = a_table(3, ("b.png", "a.png"), clicks=50)
    shuffled = np.random.default_rng(0).permutation(len(table))
    table = replace(
        table, annotator=table.annotator[shuffled], image=table.image[shuffled], x=table.x[shuffled],
        y=table.y[shuffled], time=table.time[shuffled],
    )  # fmt: skip
    study.add_clicks(table)
    with reopened(study) as second:
        for index, entry in enumerate(second.images()):
            assert entry.name == table.images[index]
            clicks, rows = second.clicks(entry.id), table.image == index
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
    assert "2 views without a mark" in summary.in_words()


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
    assert sentence.startswith('made.csv, line 7, field image: "b" (and 1 more image) is not among')
    assert study.images() == []
    assert study.annotators() == []
    assert study.last_import() == 0


def test_an_extent_makes_room_for_unknown_images(study: Study) -> None:
    study.add_clicks(replace(a_table(1, ("a",)), extents={}), extent=(640, 480))
    assert study.clicks(1).extent == (0, 0, 640, 480)


def test_clicks_on_unknown_images_can_be_left_out(study: Study) -> None:
    study.add_clicks(a_table(1, ("a",)))
    summary = study.add_clicks(replace(a_table(2, ("a", "b")), extents={}), skip_unknown=True)
    assert (summary.marks, summary.left_out) == (60, 60)
    assert [entry.name for entry in study.images()] == ["a"]
    with pytest.raises(StudyError, match='"b" is not among'):  # nothing would come in
        study.add_clicks(replace(a_table(3, ("b",)), extents={}), skip_unknown=True)


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
    study.add_clicks(points("a.png", [3.0, 1.0], [4.0, 2.0]))
    summary = study.add_clicks(points("a", [1.0, 5.0], [2.0, 6.0]))
    truth = study.truth(1)
    assert list(zip(truth.x, truth.y, strict=True)) == [(3, 4), (1, 2), (5, 6)]
    assert summary.duplicates == 1
    assert len(study.clicks(1)) == 60


def test_that_nothing_is_on_an_image_is_truth_too(study: Study, tmp_path: Path) -> None:
    study.add_clicks(a_table(1, ("a.png", "b.png", "c.png")))
    table = tmp_path / "truth.csv"
    table.write_text("image,x,y\na.png,3,4\nb.png,,\n")
    assert not study.has_truth()
    summary = study.add_clicks(read(table, "truth"))
    assert study.has_truth()
    assert summary.in_words() == "1 true point on 2 images (1 image without structures)."
    with reopened(study) as second:
        truths_used = {entry.name: second.truth(entry.id) for entry in second.images()}
        assert {name: (item.known, len(item)) for name, item in truths_used.items()} == {
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
    assert within.digest.startswith("png:")
    assert study.add_images([read_image(inside)]) == [within]
    assert len(study.images()) == 2


def test_the_size_of_a_pixel_is_kept(study: Study, tmp_path: Path) -> None:
    files = [
        replace(read_image(a_picture(tmp_path / f"{n}.png")), pixel_size=size)
        for n, size in ((1, 0.5), (2, None))
    ]
    study.add_clicks(replace(a_table(1, ("1",)), extents={0: (40.0, 30.0)}))
    assert [entry.pixel_size for entry in study.add_images(files)] == [0.5, None]


def test_two_images_of_one_name_are_distinguished_by_their_folder(study: Study, tmp_path: Path) -> None:
    first = a_picture(tmp_path / "monday" / "a.png", shade=1)
    second = a_picture(tmp_path / "tuesday" / "a.png", shade=2)
    entries = study.add_images([read_image(first), read_image(second)])
    assert [entry.name for entry in entries] == ["a.png", "tuesday/a.png"]


@pytest.mark.parametrize("order", [("monday/", ""), ("", "monday/")])
def test_an_image_is_known_with_its_folder_or_without(
    study: Study, tmp_path: Path, order: tuple[str, str]
) -> None:
    image = read_image(a_picture(tmp_path / "monday" / "a.png"))
    first, again = (study.add_images([replace(image, name=f"{folder}a.png")]) for folder in order)
    assert [entry.id for entry in again] == [entry.id for entry in first]
    assert len(study.images()) == 1


def test_a_name_with_a_folder_means_the_image_in_that_folder(study: Study, tmp_path: Path) -> None:
    for folder, shade in (("B", 1), ("A", 2)):  # B's is "a.png", as it came first
        path = a_picture(tmp_path / folder / "a.png", shade=shade)
        study.add_images([replace(read_image(path), name="a.png" if folder == "B" else "A/a.png")])
    table = replace(a_table(4, ("A/a.png", "B\\A.PNG", "b/a")), extents={})
    study.add_clicks(table, skip_unknown=True)
    assert [len(study.clicks(entry.id)) for entry in study.images()] == [120, 60]
    summary = study.add_clicks(replace(table, images=("B/a.png", "C/a.png", "A/a.png")), skip_unknown=True)
    assert "(60 skipped, on images that the study does not have" in summary.in_words()


def test_a_name_of_several_images_is_refused_with_their_names(study: Study, tmp_path: Path) -> None:
    for folder, shade in (("A", 1), ("B", 2)):
        image = read_image(a_picture(tmp_path / folder / "a.png", shade=shade))
        study.add_images([replace(image, name=f"{folder}/a.png")])
    with pytest.raises(StudyError, match=r'"a\.png" may be any of A/a\.png, B/a\.png; expected the folder'):
        study.add_clicks(replace(a_table(3, ("a.png",)), extents={}))
    with pytest.raises(StudyError, match=r'"C/a\.png" is not among'):
        study.add_clicks(replace(a_table(3, ("C/a.png",)), extents={}))


def test_clicks_of_a_folder_that_is_not_in_the_study_are_skipped(study: Study, tmp_path: Path) -> None:
    study.add_images([read_image(a_picture(tmp_path / "B" / "a.png"))])
    table = a_table(4, ("A/a.png", "B/a.png", "a.png", "C:\\x\\B\\a.png"))
    study.add_clicks(replace(table, extents={}), skip_unknown=True)
    assert [len(study.clicks(entry.id)) for entry in study.images()] == [180]


def test_an_image_that_moved_is_looked_for_beside_the_study(study: Study, tmp_path: Path) -> None:
    path = a_picture(tmp_path / "far" / "a.png")
    (entry,) = study.add_images([read_image(path)])
    path.rename(study.path.parent / "a.png")
    assert study.locate(entry) == study.path.parent / "a.png"
    (study.path.parent / "a.png").write_bytes(b"something else")
    assert study.locate(entry) is None


def test_a_missing_image_is_found_if_it_is_the_same(study: Study, tmp_path: Path) -> None:
    path = a_picture(tmp_path / "a.png")
    study.add_images([read_image(path)])
    (tmp_path / "new").mkdir()
    path.rename(tmp_path / "new" / "a.png")
    a_picture(tmp_path / "other" / "a.png", shade=91)
    assert study.relocate_all(tmp_path / "other") == []
    (moved,) = study.relocate_all(tmp_path / "new")
    assert study.locate(moved) == tmp_path / "new" / "a.png"


def test_all_missing_images_are_found_in_a_folder(study: Study, tmp_path: Path) -> None:
    paths = [a_picture(tmp_path / "old" / f"{n}.png", shade=n) for n in range(3)]
    study.add_images([read_image(path) for path in paths])
    (tmp_path / "old").rename(tmp_path / "new")
    assert len(study.relocate_all(tmp_path / "new")) == 3
    assert all(study.locate(entry) is not None for entry in study.images())


def test_what_cannot_be_noted_of_missing_images_is_reported(study: Study, tmp_path: Path) -> None:
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
        assert not Source(path).is_image()
        with pytest.raises(InputError, match="is a study"):
            study.add_images([ImageFile("a.png", path, 4, 4)])
    code = f"from raterscope.app.study import Study; Study.open({str(study.path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "is open already" in other.stderr
