"""Files of points read: the right places, and one sentence for what is wrong."""

import json
import sys

import numpy as np
import pytest
import shapely.geometry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raterscope.app.errors import InputError
from raterscope.app.formats.points import has_points, read_points
from tests.app.formats.points.crowds import SIZE, WRITERS, coco, cvat, feature, keypoint, label_studio

RING = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]


@pytest.fixture
def written(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def refusal():
    def message_of(path):
        with pytest.raises(InputError) as caught:
            read_points(path)
        assert caught.value.file == path
        return str(caught.value)

    return message_of


def places(path):
    clicks = read_points(path).clicks
    return np.column_stack([clicks.x, clicks.y]).tolist()


def star(rng, middle, radius):
    """A closed ring about a place, between half a radius and one away."""
    angle = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    away = radius * rng.uniform(0.5, 1, 12)
    ring = np.column_stack([middle[0] + away * np.cos(angle), middle[1] + away * np.sin(angle)]).tolist()
    return [*ring, ring[0]]


def collection(*features):
    return {"type": "FeatureCollection", "features": list(features)}


class TestQuPath:
    def test_points_and_centroids(self, written):
        hole = [[1, 1], [1, 3], [2, 3], [2, 1], [1, 1]]
        path = written(
            "a.geojson",
            collection(
                feature({"type": "Point", "coordinates": [7, 8]}),
                feature({"type": "MultiPoint", "coordinates": [[1.5, 2.5], [30, 40]]}),
                feature({"type": "Polygon", "coordinates": [RING]}, "detection"),
                feature({"type": "Polygon", "coordinates": [RING, hole]}, "cell"),
                feature(
                    {"type": "MultiPolygon", "coordinates": [[RING], [[[9, 1], [11, 1], [11, 3], [9, 3]]]]},
                    "detection",
                ),
            ),
        )
        # A square of 16 about (2, 2) without 2 about (1.5, 2); and with 4 more about (10, 2).
        expected = [[7, 8], [1.5, 2.5], [30, 40], [2, 2], [29 / 14, 2], [3.6, 2]]
        np.testing.assert_allclose(places(path), expected)

    @pytest.mark.parametrize("seed", range(5))
    def test_centroids_are_those_of_another_library(self, written, seed):
        rng = np.random.default_rng(seed)
        middles = [(2000.0 * seed, 70.0), (2000.0 * seed + 60, 5e5)]
        polygons = [
            [star(rng, middle, 20), star(rng, middle, 5)[:: rng.choice([1, -1])]] for middle in middles
        ]
        kinds = [{"type": "Polygon", "coordinates": polygon} for polygon in polygons]
        kinds.append({"type": "MultiPolygon", "coordinates": polygons})
        path = written("a.geojson", collection(*(feature(kind, "detection") for kind in kinds)))
        expected = [shapely.geometry.shape(kind).centroid.coords[0] for kind in kinds]
        np.testing.assert_allclose(places(path), expected, rtol=1e-12)

    def test_a_list_one_feature_and_what_old_versions_wrote(self, written):
        old = {
            "type": "Feature", "id": "PathAnnotationObject",
            "geometry": {"type": "Point", "coordinates": [7, 8, 0]},
            "properties": {"classification": {"name": "Old", "colorRGB": -65536}, "measurements": []},
        }  # fmt: skip
        below = feature({"type": "Point", "coordinates": [1, 2]}, childObjects=[old])
        assert places(written("one.json", old)) == [[7, 8]]
        assert places(written("list.json", [old, below])) == [[7, 8], [1, 2], [7, 8]]

    def test_a_region_in_which_objects_were_looked_for_is_none_itself(self, written):
        wide = [[0, 0], [50, 0], [50, 50], [0, 50], [0, 0]]
        cells = [feature({"type": "Point", "coordinates": [x, 9]}, "detection") for x in (5, 20)]
        region = feature({"type": "Polygon", "coordinates": [wide]})
        file = read_points(written("a.geojson", collection(region, *cells)))
        assert file.clicks.x.tolist() == [5, 20]
        assert "outlines of regions 1" in file.clicks.notices[-1]
        assert places(written("b.geojson", collection(region))) == [[25, 25]]

    def test_classes_that_qupath_ignores_are_skipped_and_others_reported(self, written):
        point = {"type": "Point", "coordinates": [1, 2]}
        names = ({"name": "Parasite"}, {"names": ["Cell", "Dead"]}, {"name": "Ignore*"})
        file = read_points(
            written("a.geojson", collection(*(feature(point, classification=name) for name in names)))
        )
        assert len(file.clicks) == 2
        assert file.clicks.notices[0] == "Points of all classes are imported: Parasite 1, Cell: Dead 1."
        assert "ignored classes, tiles and cores 1" in file.clicks.notices[1]

    def test_who_marked_may_stand_in_the_metadata(self, written):
        by = [
            feature({"type": "Point", "coordinates": [n, n]}, metadata={"annotator": annotator})
            for n, annotator in enumerate(("ann", "bob", "ann"))
        ]
        clicks = read_points(written("a.geojson", collection(*by))).clicks
        assert [clicks.annotators[annotator] for annotator in clicks.annotator] == ["ann", "bob", "ann"]

    @pytest.mark.parametrize(
        ("geometry", "words"),
        [
            (
                {"type": "Point", "coordinates": [1]},
                "features[0]: cannot be read: it has no pairs of numbers",
            ),
            ({"type": "Point", "coordinates": [1, "2"]}, "no pairs of numbers"),
            ({"type": "MultiPoint", "coordinates": {"x": 1}}, "no pairs of numbers"),
            ({"type": "Point", "coordinates": [1, 1e12]}, "outside any possible image"),
            ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}, "a ring of fewer than three positions"),
            ({"type": "Polygon", "coordinates": []}, "no rings of positions"),
            ({"type": "MultiPolygon", "coordinates": [[]]}, "no rings of positions"),
            (None, "features[0]: has no geometry"),
        ],
    )
    def test_what_cannot_be_read(self, written, refusal, geometry, words):
        assert words in refusal(written("a.geojson", collection(feature(geometry))))


class TestOthers:
    def test_keypoints_that_are_not_labelled_are_no_points(self, written, tmp_path):
        (path,) = coco(tmp_path, {("ann", "one.png"): [(3.5, 4.5)], ("ann", "two.png"): []})
        clicks = read_points(path).clicks
        assert (clicks.x.tolist(), clicks.y.tolist()) == ([3.5], [4.5])
        assert clicks.looked == {(0, 0), (0, 1)}
        assert clicks.extents == {0: SIZE, 1: SIZE}

    def test_of_several_in_a_file_it_is_not_known_who_looked_where(self, tmp_path):
        (path, other) = coco(
            tmp_path, {("ann", "one.png"): [(1, 2)], ("bob", "one.png"): [], ("ann", "two.png"): []}
        )
        content = json.loads(path.read_text())
        content["annotations"].append(
            content["annotations"][0] | {"id": 9, "image_id": 1, "attributes": {"annotator": "bob"}}
        )
        other.write_text(json.dumps(content))
        assert read_points(other).clicks.looked == {(0, 0), (1, 1)}

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"keypoints": [1, 2]}, "annotations[0].keypoints: cannot be read: it has no triples"),
            ({"keypoints": [1, None, 2]}, "no triples"),
            ({"image_id": 7}, "annotations[0]: is on image 7, which the file does not list"),
            ({"image_id": [7]}, "annotations[0]: does not name its image"),
        ],
    )
    def test_keypoints_that_cannot_be_read(self, tmp_path, refusal, change, words):
        (path,) = coco(tmp_path, {("ann", "one.png"): [(3.5, 4.5)]})
        content = json.loads(path.read_text())
        content["annotations"][0] |= change
        path.write_text(json.dumps(content))
        assert words in refusal(path)

    def test_an_image_of_a_job_without_a_shape_was_looked_at(self, tmp_path):
        (path,) = cvat(tmp_path, {("ann", "one.png"): [(1, 2), (3, 4.5)], ("ann", "two.png"): []})
        clicks = read_points(path).clicks
        assert clicks.annotators == ("ann",)
        assert (clicks.x.tolist(), clicks.y.tolist()) == ([1, 3], [2, 4.5])
        assert clicks.looked == {(0, 0), (0, 1)}

    def test_the_points_of_skeletons_are_clicks_except_those_outside(self, written):
        point = '<points label="{}" outside="{}" points="{}"/>'
        drawn = "".join(
            point.format(*some) for some in (("eye", 0, "1,2"), ("ear", 0, "3,4.5"), ("tail", 1, "0,0"))
        )
        skeleton = f'<skeleton label="cat" z_order="0">{drawn}</skeleton>'
        job = "<meta><job><assignee>ann</assignee></job></meta>"
        text = f'<annotations>{job}<image name="one.png">{skeleton}</image></annotations>'
        clicks = read_points(written("a.xml", text)).clicks
        assert (clicks.x.tolist(), clicks.y.tolist()) == ([1, 3], [2, 4.5])
        assert [clicks.classes[at] for at in clicks.label] == ["cat: eye", "cat: ear"]

    @pytest.mark.parametrize("points", ["", "1;2", "1,nan", "1,2,3,4", "a,b"])
    def test_points_of_a_job_that_cannot_be_read(self, written, refusal, points):
        text = f'<annotations><image name="one.png"><points points="{points}"/></image></annotations>'
        assert "field points on one.png: cannot be read: it has no pairs" in refusal(written("a.xml", text))

    def test_cancelled_and_true_annotations_of_label_studio(self, written, tmp_path):
        (path,) = label_studio(tmp_path, {(w, "one.png"): [(5, 6)] for w in ("ann", "bob", "eve")})
        content = json.loads(path.read_text())
        content[0]["annotations"][1]["ground_truth"] = True
        content[0]["annotations"][2]["was_cancelled"] = True
        content[0]["predictions"] = [{"model_version": "v2", "result": [keypoint(7, 8)]}]
        file = read_points(written("b.json", content))
        assert file.clicks.annotators == ("ann", "model v2")
        np.testing.assert_allclose(file.clicks.x, [5, 7])
        assert file.truth is not None
        np.testing.assert_allclose([file.truth.x[0], file.truth.y[0]], [5, 6])

    @pytest.mark.parametrize(
        ("address", "name"),
        [
            ("/data/local-files/?d=smears/a%20b.png", "a b.png"),
            ("/data/local-files/?d=smears%2Fone.png", "one.png"),
            ("/data/upload/3/1f2e3d4c-one.png", "1f2e3d4c-one.png"),
            ("https://host/bucket/one.png?Expires=1&Signature=x.yz", "one.png"),
            ("s3://bucket/smears/one.png", "one.png"),
        ],
    )
    def test_the_image_of_a_task_is_distinguished_from_its_address(self, written, address, name):
        """As label-studio-sdk 2.1.2 (convert_coco_to_ls) and Label Studio's exports write it."""
        tasks = [{"id": 1, "data": {"image": address}, "annotations": [{"result": [keypoint(1, 2)]}]}]
        assert read_points(written("a.json", tasks)).clicks.images == (name,)

    def test_keypoints_need_the_size_of_their_image(self, written, refusal):
        bare = {key: value for key, value in keypoint(1, 2).items() if not key.startswith("original")}
        tasks = [{"id": 1, "data": {"image": "one.png"}, "annotations": [{"result": [bare]}]}]
        message = refusal(written("a.json", tasks))
        assert "task 1, keypoint 1: cannot be read: it has no size of its image" in message

    def test_a_layer_of_napari_counts_rows_first_and_from_the_centre_of_a_pixel(self, written):
        path = written("a.csv", "index,axis-0,axis-1,annotator\n0,1.5,2.5,a\n1,3,4,b\n")
        clicks = read_points(path).clicks
        assert clicks.annotators == ("a", "b")
        assert (clicks.x.tolist(), clicks.y.tolist()) == ([3.0, 4.5], [2.0, 3.5])

    def test_a_table_of_positions_alone_is_of_the_annotator_and_image_in_its_name(self, written, refusal):
        """As the results of ImageJ's multi-point tool."""
        path = written("a.csv", " ,Area,Mean,X,Y\n1,0,120,30.5,40\n2,0,99,7,8.25\n")
        assert has_points(path) == "alone"
        assert places(path) == [[30.5, 40.0], [7.0, 8.25]]
        assert has_points(written("b.csv", "annotator,image,x,y\nkim,a,1,2\n")) is None
        assert has_points(written("c.csv", "image,x,y\na,1,2\n")) is None
        assert "line 3, field Y" in refusal(written("d.csv", " ,X,Y\n1,2,3\n2,4,here\n"))

    def test_a_layer_without_points_records_a_viewed_image(self, written):
        """As napari 0.9.2 saves an empty layer of points."""
        clicks = read_points(written("a.csv", "index,axis-0,axis-1\n")).clicks
        assert (len(clicks), clicks.looked) == (0, {(0, 0)})

    def test_a_layer_on_one_slice_is_of_that_slice_and_one_on_several_is_refused(self, written, refusal):
        assert places(written("a.csv", "index,axis-0,axis-1,axis-2\n0,5,1,2\n1,5,3,4\n")) == [
            [2.5, 1.5],
            [4.5, 3.5],
        ]
        message = refusal(written("b.csv", "index,axis-0,axis-1,axis-2\n0,5,1,2\n1,6,3,4\n"))
        assert "field axis-0: has 2 different values" in message
        assert "line 3, field axis-1" in refusal(written("c.csv", "axis-0,axis-1\n1,2\n3,here\n"))


class TestTelling:
    def test_each_format_is_known_by_what_is_in_it(self, tmp_path):
        for name, write in WRITERS.items():
            (tmp_path / name).mkdir()
            for path in write(tmp_path / name, {("ann", "one.png"): [(1, 2)]}):
                assert has_points(path) == "alone", name

    def test_outlines_beside_points_are_reported(self, written):
        shapes = [
            {"shape_type": "point", "points": [[1, 2]]},
            {"shape_type": "polygon", "points": [[0, 0], [2, 0], [2, 2]]},
            {"shape_type": "rectangle", "points": [[0, 0], [2, 2]]},
        ]
        result = [
            has_points(written("a.json", {"shapes": chosen, "imagePath": "one.png"}))
            for chosen in (shapes, shapes[1:], shapes[::2], shapes[2:], [])
        ]
        assert result == ["beside", None, "alone", None, "nothing"]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.json", "{"),
            ("a.json", "[" * 100_000),
            ("a.json", '{"type": "FeatureCollection", "features": ' + '[{"a":' * 50_000),
            ("a.json", {"some": "thing"}),
            ("a.xml", "<annotations>"),
            ("a.xml", "<a>" * 100 + "</a>" * 100),
            ("a.csv", "annotator,image,x,y\nann,one.png,1,2\n"),
            ("a.csv", "index,shape-type,vertex-index,axis-0,axis-1\n0,polygon,0,0,0\n"),
            ("a.png", "no table"),
        ],
    )
    def test_what_holds_no_points_is_none_and_no_error(self, written, name, content):
        assert has_points(written(name, content)) is None

    @pytest.mark.parametrize(
        ("name", "content", "words"),
        [
            ("a.geojson", "[" * 100_000, "is nested too deeply"),
            ("a.geojson", "", "is empty"),
            ("a.geojson", {"type": "Topology"}, "contains no readable points"),
            ("a.xml", "<a>" * 100 + "</a>" * 100, "is nested too deeply"),
            ("a.json", {"images": [], "annotations": [{"image_id": None}]}, "does not name its image"),
            ("a.json", {"images": [{}], "annotations": []}, "images[0]: has no number"),
        ],
    )
    def test_what_is_refused_is_refused_in_one_sentence(self, written, refusal, name, content, words):
        message = refusal(written(name, content))
        assert words in message
        assert message.count("\n") == 0


JUNK = [
    None,
    True,
    -1,
    1.5,
    1e300,
    10**400,
    -(10**4400),
    float("nan"),
    float("-inf"),
    "",
    "x",
    "1",
    [],
    [[]],
    [1],
    {},
    {"type": "Feature"},
    [[1, 2], [3]],
]


def json_text(content):
    """Write JSON with whole numbers of any length, which `json.dumps` refuses."""
    sys.set_int_max_str_digits(0)
    try:
        return json.dumps(content)
    finally:
        sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)


def spoilt(content, where, junk):
    """Return decoded JSON with one of its parts replaced; `where` chooses at every level."""
    if not isinstance(content, (dict, list)) or not content or (where and where[0] == 0) or not where:
        return junk
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    key = keys[where[0] % len(keys)]
    changed = dict(content) if isinstance(content, dict) else list(content)
    changed[key] = spoilt(content[key], where[1:], junk)
    return changed


@pytest.mark.parametrize("name", ["geojson", "coco", "label_studio", "labelme"])
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.lists(st.integers(1, 9), min_size=1, max_size=9), junk=st.sampled_from(JUNK))
def test_whatever_stands_where_something_else_should_is_read_or_refused(tmp_path, name, where, junk):
    marks = {("ann", "one.png"): [(1.5, 2.5), (3, 4)], ("ann", "two.png"): [(5, 6)]}
    path = WRITERS[name](tmp_path, marks)[0]
    path.write_text(json_text(spoilt(json.loads(path.read_text()), where, junk)))
    has_points(path)
    try:
        file = read_points(path)
    except InputError:
        return
    assert np.isfinite(file.clicks.x).all()
    assert all(isinstance(annotator, str) for annotator in file.clicks.annotators)


def test_boxes_of_coco_without_points_are_refused_by_their_name(tmp_path):
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 20, 5, 5]}
    images = [{"id": 1, "file_name": "a.png", "width": 60, "height": 40}]
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps({"images": images, "annotations": [box], "categories": []}))
    words = r"has no points \(it has boxes 1\); expected keypoints of objects; a box is no click"
    with pytest.raises(InputError, match=words):
        read_points(path)
