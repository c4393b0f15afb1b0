"""Points of other programs into a study, as clicks or as truth, and photographs beside them."""

import csv
import json
from collections import defaultdict

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from raterscope.app.cli import main
from raterscope.app.formats.points import read_points
from raterscope.app.importing import read_files, store
from raterscope.app.kinds.clicks.imports import assign_annotators
from raterscope.app.kinds.masks.attribution import MaskOptions
from raterscope.app.kinds.masks.imports import StudyImages
from raterscope.app.review import Decision, ScaleSubject
from raterscope.app.study import Study
from raterscope.app.study.masks import mask_entries
from tests.app.formats.points.crowds import SIZE, WRITERS, feature, geojson, label_studio, labelme, napari

CROWD = {
    ("ann", "smear1.png"): [(10.5, 20.25), (300, 200)],
    ("bob", "smear1.png"): [(11.5, 21)],
    ("eve", "smear1.png"): [],
    ("ann", "smear2.png"): [(50, 60)],
    ("bob", "smear2.png"): [(51, 61), (100, 90)],
    ("eve", "smear2.png"): [(52.125, 62)],
}


@pytest.fixture
def micrograph(tmp_path):
    """A microscope's image with pixels of half a micrometre."""
    values = np.random.default_rng(0).integers(0, 255, (200, 300), dtype=np.uint8)
    size = {"axes": "YX", "PhysicalSizeX": 0.5, "PhysicalSizeY": 0.5}
    tifffile.imwrite(tmp_path / "cells.ome.tif", values, metadata=size)
    return tmp_path / "cells.ome.tif"


def clicks_in(path, x, y, image):
    path.write_text(f"annotator,image,{x},{y}\nann,{image},50,40\nbob,{image},51,41.5\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("x", "y", "factors"),
    [
        ("x_um", "y_um", (2, 2)),
        ("X [µm]", "Y [\N{GREEK SMALL LETTER MU}m]", (2, 2)),
        ("Centroid X µm", "Centroid Y µm", (2, 2)),
        ("x (mm)", "y (mm)", (2000, 2000)),
        ("x_nm", "y_nm", (0.002, 0.002)),
        ("x_um", "y", (2, 1)),
        ("x_px", "y_pixel", (1, 1)),
    ],
)
def test_positions_in_micrometres_become_pixels(import_files, tmp_path, micrograph, x, y, factors):
    words = import_files(clicks_in(tmp_path / "clicks.csv", x, y, micrograph.name), micrograph)
    clicks, _ = held(tmp_path / "s.rscope")
    expected = np.array([[50, 40], [51, 41.5]]) * factors
    assert [clicks[name, "cells.ome.tif"] for name in ("ann", "bob")] == [
        [pytest.approx(p)] for p in expected
    ]
    assert ("to pixels of 0.5 µm" in words) == (factors != (1, 1))


def test_the_scale_of_an_image_that_is_in_the_study_converts(import_files, tmp_path, micrograph, smears):
    path, table = tmp_path / "s.rscope", tmp_path / "clicks.csv"
    import_files(micrograph, smears[0])
    assert "to pixels of 0.5 µm" in import_files(clicks_in(table, "x_um", "y_um", micrograph.name))
    clicks_in(table, "x_um", "y_um", "smear1")
    assert "x_um and y_um: in µm, and the size of a pixel of smear1 is unknown" in import_files(table)
    named = import_files(table, "--map", "x_um=x", "--map", "y_um=y")
    assert "Read as pixels, as you named them: x_um and y_um" in named
    with Study.open(path) as study:
        (image,) = (entry.id for entry in study.images() if entry.name == "smear1.png")
        study.record(Decision(verb="scale", item=image, subject=ScaleSubject(pixel_size=1.0)))
    assert "to pixels of 1 µm" in import_files(table)


@pytest.mark.parametrize("options", [(), ("--map", "x (%)=x", "--map", "y (%)=y")])
def test_positions_in_percent_need_the_size_of_the_image(import_files, tmp_path, options):
    table = clicks_in(tmp_path / "clicks.csv", "x (%)", "y (%)", "cells")
    assert "positions are in percent" in import_files(table, *options)
    rows = table.read_text(encoding="utf-8").splitlines()
    sizes = ("width,height", "300,200", "300,200")
    table.write_text("\n".join(map(",".join, zip(rows, sizes, strict=True))), encoding="utf-8")
    import_files(table, *options)
    assert held(tmp_path / "s.rscope")[0]["bob", "cells"] == [(153, 83)]


def test_positions_that_may_be_percent_are_named(import_files, tmp_path):
    Image.new("RGB", (400, 300), "red").save(tmp_path / "cells.png")
    Image.new("RGB", (100, 90), "red").save(tmp_path / "small.png")
    places = [(97, 3), (12, 88), (50, 50), (31, 66), (70, 12)]
    for name in ("cells", "small"):
        lines = [f"ann,{name}.png,{x},{y}" for x, y in places]
        (tmp_path / f"{name}.csv").write_text("\n".join(["annotator,image,x,y", *lines]))
    words = import_files(
        *(tmp_path / f"{name}.{end}" for name in ("cells", "small") for end in ("png", "csv"))
    )
    assert "cells.csv: all positions lie between 0 and 100 and are read as pixels" in words
    assert "small.csv: all positions" not in words


@pytest.fixture
def smears(tmp_path):
    """Two photographs in greys, dark and compressed well, in a folder of their own."""
    folder = tmp_path / "smears"
    folder.mkdir()
    return [photograph(folder / name, seed) for seed, name in enumerate(("smear1.png", "smear2.png"))]


def photograph(path, seed=0, size=SIZE):
    """A dark ground with noise of a grey or two, and bright spots: it compresses like a mask."""
    rng = np.random.default_rng(seed)
    spots = rng.uniform(10, min(size) - 10, (25, 2))
    across, down = (np.exp(-((np.arange(size[i])[:, None] - spots[:, i]) ** 2) / 18) for i in (0, 1))
    light = down @ across.T
    values = 3 + 0.2 * rng.normal(size=light.shape) + 200 * np.clip(light, 0, 1)
    Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8)).save(path)
    return path


def held(path):
    """Places by annotator and image; who looked and marked nothing is there too. And the true places."""
    with Study.open(path) as study:
        clicks = {}
        for entry in study.images():
            image_clicks = study.clicks(entry.id)
            for index, name in enumerate(image_clicks.annotators):
                mine = image_clicks.annotator == index
                clicks[name, entry.name] = sorted(
                    zip(image_clicks.x[mine].tolist(), image_clicks.y[mine].tolist(), strict=True)
                )
        truth = {}
        for entry in study.images():
            true = study.truth(entry.id)
            truth[entry.name] = sorted(zip(true.x.tolist(), true.y.tolist(), strict=True))
    return clicks, truth


def assert_same(actual, expected):
    assert set(actual) == set(expected)
    for key, points in expected.items():
        assert len(actual[key]) == len(points)
        np.testing.assert_allclose(
            np.reshape(actual[key], (-1, 2)), np.reshape(sorted(points), (-1, 2)), atol=1e-6
        )


@pytest.mark.parametrize("name", WRITERS)
def test_each_program_s_files_become_the_clicks_that_they_are(import_files, tmp_path, smears, name):
    files = WRITERS[name](tmp_path, CROWD)
    import_files(*files, *smears)
    # A table without rows cannot be read; of who marked nothing napari tells nothing.
    expected = {key: points for key, points in CROWD.items() if points or name != "napari"}
    assert_same(held(tmp_path / "s.rscope")[0], expected)


@pytest.mark.parametrize("name", WRITERS)
def test_or_the_truth(import_files, tmp_path, smears, name):
    only = {key: points for key, points in CROWD.items() if key[0] == "bob"}
    import_files(*smears)
    import_files("--kind", "truth", *WRITERS[name](tmp_path, only))
    clicks, truth = held(tmp_path / "s.rscope")
    assert not clicks
    assert_same(truth, {image: points for (_, image), points in only.items()})


def test_a_folder_dropped_brings_photographs_and_points(import_files, tmp_path, smears):
    folder = tmp_path / "all"
    folder.mkdir()
    geojson(folder, CROWD)
    for path in smears:
        path.rename(folder / path.name)
    import_files(folder)
    assert_same(held(tmp_path / "s.rscope")[0], CROWD)


def test_photographs_are_imported_as_images_before_and_after_their_clicks(import_files, tmp_path, smears):
    """Greys that compress like a mask's are no probabilities unless something says so."""
    assert "2 images." in import_files(smears[0].parent)
    import_files(*label_studio(tmp_path, CROWD))
    (tmp_path / "s.rscope").unlink()
    (tmp_path / "c.csv").write_text("annotator,image,x,y\nann,smear1,1,2\nann,smear2,1,2\n")
    import_files(tmp_path / "c.csv", "--extent", *SIZE)
    disc = np.zeros(SIZE[::-1], dtype=np.uint8)
    disc[50:90, 40:80] = 255  # what would be a mask, were it not called as what was clicked on
    Image.fromarray(disc).save(smears[0])
    assert "2 images" in import_files(*smears)
    with Study.open(tmp_path / "s.rscope") as study:
        assert [study.locate(entry) is not None for entry in study.images()] == [True, True]
        assert not mask_entries(study)


def test_a_folder_brings_the_tables_whose_header_leaves_no_doubt(import_files, smears, tmp_path):
    folder = smears[0].parent
    (folder / "clicks.csv").write_text("annotator,image,x,y\nann,smear1,1,2\n")
    (folder / "gt.csv").write_text("image,x,y\nsmear1,1,2\nsmear2,3,4\n")
    (folder / "cells.csv").write_text("image,x,y,area\nsmear1,1,2,9\n")
    (folder / "broken.csv").write_text("annotator,image,x,y\nann,smear1,one,2\n")
    results = folder / "results"
    results.mkdir()
    (results / "run.json").write_text("{}")
    (results / "clicks.csv").write_text("annotator,image,x,y,cluster\nann,smear1,1,2,1\n")
    (folder / "export.csv").write_text("annotator,image,x,y,cluster\nann,smear1,1,2,1\n")
    (folder / "export.run.json").write_text("{}")
    words = import_files(folder)
    assert "not known for certain: cells.csv, export.csv, clicks.csv. To" in words
    assert "Skipped: broken.csv, line 2" in words
    clicks, truths = held(tmp_path / "s.rscope")
    assert clicks == {("ann", "smear1.png"): [(1, 2)]}
    assert truths == {"smear1.png": [(1, 2)], "smear2.png": [(3, 4)]}


def test_a_damaged_image_in_a_folder_is_skipped(import_files, smears):
    (smears[0].parent / "cut.png").write_bytes(smears[0].read_bytes()[:20])
    assert "Skipped: cut.png: cannot be read" in import_files(smears[0].parent)


def test_a_table_named_beside_its_folder_is_read_once(import_files, smears):
    table = smears[0].parent / "cells.csv"
    table.write_text("image,x,y\nsmear1,1,2\n")
    assert "To read one, import it alone" in import_files(smears[0].parent)
    assert "by name" not in import_files(smears[0].parent, table)


def test_a_table_may_name_more_images_than_are_at_hand(tmp_path, smears, capsys):
    table, study = tmp_path / "clicks.csv", tmp_path / "s.rscope"
    rows = [(*annotator, x, y) for annotator, points in CROWD.items() for x, y in points or [("", "")]]
    table.write_text("annotator,image,x,y\n" + "".join(f"{a},{i},{x},{y}\n" for a, i, x, y in rows))
    assert main(["import", str(study), str(smears[0]), str(table)]) == 0
    assert "4 skipped, on images that the study does not have" in capsys.readouterr().out
    of_one = {key: points for key, points in CROWD.items() if key[1] == "smear1.png"}
    assert_same(held(study)[0], of_one)
    assert main(["import", str(study), str(smears[1]), str(table)]) == 0
    with Study.open(study) as item:
        numbers = [len(item.clicks(entry.id).merged()[0]) for entry in item.images()]
    assert numbers == [3, 4]


def test_greys_are_probabilities_where_the_file_name_has_probability(import_files, tmp_path, smears):
    masks = [
        photograph(tmp_path / f"smear1_{annotator}_prob.png", seed)
        for seed, annotator in enumerate(("ann", "bob"), 5)
    ]
    output = import_files(smears[0], *masks)
    assert "1 image." in output
    with Study.open(tmp_path / "s.rscope") as study:
        assert {entry.annotator for entry in mask_entries(study)} == {"ann", "bob"}


def test_a_map_of_many_labels_is_still_a_mask_beside_its_photograph(import_files, tmp_path, smears):
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    cells = (y // 24) * 13 + x // 25 + 1
    Image.fromarray(cells.astype(np.uint8)).save(tmp_path / "smear1_ann.png")
    import_files(smears[0], tmp_path / "smear1_ann.png")
    with Study.open(tmp_path / "s.rscope") as study:
        assert len(mask_entries(study)) == cells.max()


class TestWhoAndWhere:
    def test_a_file_without_annotator_needs_one(self, import_files, tmp_path, smears):
        path = tmp_path / "marks.geojson"
        path.write_text(json.dumps(feature({"type": "Point", "coordinates": [1, 2]})))
        assert "marks.geojson: its annotator is unknown; give --annotator" in import_files(smears[0], path)
        import_files(smears[0], path, "--annotator", "ann")
        assert held(tmp_path / "s.rscope")[0] == {("ann", "smear1.png"): [(1, 2)]}

    def test_a_name_gives_the_annotator_and_the_only_image_the_position(self, import_files, tmp_path, smears):
        import_files(smears[0])
        for annotator in ("ann", "bob"):
            content = feature({"type": "Point", "coordinates": [1, 2]})
            (tmp_path / f"{annotator}.geojson").write_text(json.dumps(content))
        import_files(tmp_path / "ann.geojson", tmp_path / "bob.geojson")
        assert set(held(tmp_path / "s.rscope")[0]) == {("ann", "smear1.png"), ("bob", "smear1.png")}

    def test_of_several_images_the_file_must_name_one(self, import_files, tmp_path, smears):
        path = tmp_path / "ann.csv"
        path.write_text("index,axis-0,axis-1\n0,1,2\n")
        import_files(*smears)
        output = import_files(path, "--annotator", "ann")
        assert output.startswith("ann.csv: does not name its image, and there are 2")

    def test_the_image_is_found_wherever_it_stands_in_the_name_of_the_file(
        self, import_files, tmp_path, smears
    ):
        path = tmp_path / "Points on smear2 (final).csv"
        path.write_text("index,axis-0,axis-1\n0,1,2\n")
        import_files(*smears, path, "--annotator", "ann")
        assert held(tmp_path / "s.rscope")[0] == {("ann", "smear2.png"): [(2.5, 1.5)]}

    def test_photographs_that_come_with_true_positions_are_no_masks(self, import_files, tmp_path, smears):
        path = tmp_path / "smear2.csv"
        path.write_text("index,axis-0,axis-1\n0,1,2\n")
        output = import_files(*smears, path, "--kind", "truth")
        assert "2 images." in output
        assert held(tmp_path / "s.rscope")[1]["smear2.png"] == [(2.5, 1.5)]

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            (
                "a.json",
                '[{"id": 1, "image": "a.png", "annotator": 1, "annotation_id": 2, "kp": []}]',
                "JSON-MIN",
            ),
            (
                "a.xml",
                '<annotations><track id="0"><points frame="0" points="1,2"/></track></annotations>',
                "export it as CVAT for images 1.1",
            ),
        ],
    )
    def test_what_is_to_be_exported_otherwise_is_reported(
        self, import_files, tmp_path, smears, name, content, words
    ):
        (tmp_path / name).write_text(content)
        assert words in import_files(smears[0], tmp_path / name, "--annotator", "ann")

    def test_a_pattern_shows_both(self, import_files, tmp_path, smears):
        path = tmp_path / "ann-on-smear2.csv"
        path.write_text("index,axis-0,axis-1\n0,1,2\n")
        import_files(*smears)
        import_files(path, "--naming", "{annotator}-on-{item}")
        assert held(tmp_path / "s.rscope")[0] == {("ann", "smear2.png"): [(2.5, 1.5)]}

    def test_a_file_called_truth_is_the_truth(self, import_files, tmp_path, smears):
        files = labelme(tmp_path, {("truth", "smear1.png"): [(3, 4)], ("ann", "smear1.png"): [(5, 6)]})
        import_files(*smears, *files)
        clicks, truth = held(tmp_path / "s.rscope")
        assert clicks == {("ann", "smear1.png"): [(5, 6)]}
        assert truth["smear1.png"] == [(3, 4)]

    def test_two_spellings_name_one_image_and_one_annotator(self, tmp_path):
        files = label_studio(tmp_path, {("ann", "smear1.png"): [(1, 2)]})
        files += napari(tmp_path, {("ann", "smear1.png"): [(3, 4)]})
        tables, *_ = assign_annotators([read_points(path) for path in files], ["smear1.png", "smear2.png"])
        assert {table.images for table in tables} == {("smear1.png",)}
        assert {table.annotators for table in tables} == {("ann",)}

    def test_columns_set_by_the_user_take_precedence_over_napari(self, import_files, tmp_path, smears):
        path = tmp_path / "odd.csv"
        path.write_text("axis-0,axis-1,annotator,image\n1,2,ann,smear1\n")
        import_files(smears[0], path, "--map", "axis-0=x", "axis-1=y")
        assert held(tmp_path / "s.rscope")[0] == {("ann", "smear1.png"): [(1, 2)]}

    def test_properties_of_a_layer_are_no_labels(self, import_files, tmp_path, smears):
        path = tmp_path / "layer.csv"
        path.write_text("index,axis-0,axis-1,annotator,image,label\n0,1,2,ann,smear1.png,cell\n")
        import_files(smears[0], path)
        assert held(tmp_path / "s.rscope")[0] == {("ann", "smear1.png"): [(2.5, 1.5)]}
        with Study.open(tmp_path / "s.rscope") as study:
            assert not study.questions()

    def test_masks_and_points_in_one_file_both_are_imported(self, import_files, tmp_path, smears):
        shapes = [
            {"label": "s", "shape_type": "point", "points": [[1, 2]]},
            {"label": "s", "shape_type": "polygon", "points": [[10, 10], [20, 10], [20, 20], [10, 20]]},
        ]
        content = {"shapes": shapes, "imagePath": "smear1.png", "imageWidth": SIZE[0], "imageHeight": SIZE[1]}
        (tmp_path / "a.json").write_text(json.dumps(content))
        import_files(smears[0], tmp_path / "a.json", "--annotator", "ann")
        assert held(tmp_path / "s.rscope")[0] == {("ann", "smear1.png"): [(1, 2)]}
        with Study.open(tmp_path / "s.rscope") as study:
            assert [entry.voxels for entry in mask_entries(study)] == [100]


places = st.tuples(*(st.integers(0, 8 * side).map(lambda eighths: eighths / 8) for side in SIZE))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    crowd=st.dictionaries(
        st.tuples(st.sampled_from(["ann", "bob", "eve"]), st.sampled_from(["smear1.png", "smear2.png"])),
        st.lists(places, min_size=1, max_size=4, unique=True),
        min_size=2,
    ),
    split=st.data(),
)
def test_any_split_of_a_crowd_over_files_and_programs_is_the_same_crowd(tmp_path_factory, crowd, split):
    folder = tmp_path_factory.mktemp("split")
    parts = defaultdict(dict)
    for key, marks in crowd.items():
        for mark in marks:
            name = split.draw(st.sampled_from(list(WRITERS)))
            parts[name].setdefault(key, []).append(mark)
    files = []
    for name, part in parts.items():
        (folder / name).mkdir()
        files += WRITERS[name](folder / name, part)
    images = [photograph(folder / name) for name in ("smear1.png", "smear2.png")]
    naming = "{item}_{annotator}"
    with Study.create(folder / "s.rscope") as study:
        store(read_files(images), study)
        for lot in split.draw(st.permutations(files)):
            annotator = lot.parent.name if "labelme" in lot.parts else None
            at_hand = StudyImages(tuple(study.images()))
            reading = MaskOptions(annotator=annotator, naming=naming)
            store(read_files([lot], reading=reading, at_hand=at_hand), study)
    assert_same(held(folder / "s.rscope")[0], crowd)


@pytest.mark.parametrize("name", WRITERS)
def test_a_real_crowd_in_each_program_s_files(real_data, import_files, tmp_path, name):
    """Clicks of paid annotators on micrographs, and the exact truth: the same whichever way they come."""
    quantius = real_data / "clicks" / "quantius"
    crowd = defaultdict(list)
    images = set()
    with (quantius / "clicks.csv").open() as file:
        for row in csv.DictReader(file):
            images.add(row["image_id"])
            if len(images) > 3:
                break
            crowd[row["annotator_id"], row["image_id"] + ".png"].append((float(row["x"]), float(row["y"])))
    files = [quantius / "images" / image for image in sorted({image for _, image in crowd})]
    paths = WRITERS[name](tmp_path, crowd)
    reading = ["--naming", "{item}_{annotator}"] if name in ("geojson", "napari") else []
    import_files(*files, *paths, *reading)
    assert_same(held(tmp_path / "s.rscope")[0], crowd)


def test_real_micrographs_in_greys_are_imported_as_images(real_data, import_files, tmp_path):
    assert import_files(real_data / "clicks" / "quantius" / "images").startswith("24 images.")
    with Study.open(tmp_path / "s.rscope") as study:
        assert not mask_entries(study)


@pytest.mark.parametrize("name", WRITERS)
def test_fuse_clicks_finds_the_same_in_each_program_s_files(tmp_path, smears, name):
    rng = np.random.default_rng(8)
    spots = np.array([[60, 60], [200, 80], [120, 180], [280, 200]])
    crowd = {
        (f"w{index}", image): [
            tuple(point) for point in np.round(spots + rng.normal(0, 1.5, (4, 2)), 3).tolist()
        ]
        for index in range(8)
        for image in ("smear1.png", "smear2.png")
    }
    table = tmp_path / "clicks.csv"
    lines = [f"{annotator},{image},{x},{y}" for (annotator, image), marks in crowd.items() for x, y in marks]
    table.write_text("\n".join(["annotator,image,x,y", *lines]) + "\n")
    written = WRITERS[name](tmp_path, crowd)
    matched = []
    for number, files in enumerate(([table], written)):
        out = tmp_path / f"results{number}"
        paths = [str(path) for path in (*files, "--images", *smears, "-o", out)]
        assert main(["fuse", "clicks", *paths]) == 0
        with (out / "detections.csv").open(newline="") as file:
            rows = sorted((row["image"], float(row["x"]), float(row["y"])) for row in csv.DictReader(file))
        matched.append(rows)
    assert [row[0] for row in matched[0]] == [row[0] for row in matched[1]]
    np.testing.assert_allclose(*([row[1:] for row in rows] for rows in matched), atol=1e-3)
    assert len(matched[0]) == 2 * len(spots)


@pytest.mark.parametrize(
    ("names", "images"),
    [
        (("x", "x.bmp"), ["x.bmp"]),
        (("X.bmp", "x"), ["X.bmp"]),
        (("x", "x.bmp", "x.png"), ["x", "x.bmp", "x.png"]),
        (("x.1", "x.bmp"), ["x.1", "x.bmp"]),
        (("a/x.bmp", "b/x"), ["a/x.bmp", "b/x"]),
    ],
)
def test_an_image_named_with_and_without_suffix_is_one_if_no_other_file_has_its_name(
    tmp_path, capsys, names, images
):
    rows = [f"{who},{name},{10 + 40 * at},{20 + 0.5 * at}" for who in "ab" for at, name in enumerate(names)]
    (tmp_path / "clicks.csv").write_text("\n".join(["annotator,image,x,y", *rows]))
    arguments = [str(tmp_path / "clicks.csv"), "--extent", "200", "100", "-o", str(tmp_path / "results")]
    assert main(["fuse", "clicks", *arguments]) == 0
    answer = capsys.readouterr()
    assert f"on {len(images)} image" in answer.out
    assert ("are taken as one image" in answer.out + answer.err) == (len(images) < len(names))
    with (tmp_path / "results" / "clicks.csv").open() as file:
        assert sorted({row["image"] for row in csv.DictReader(file)}) == sorted(images)
