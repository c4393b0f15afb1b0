"""COCO, CVAT, Label Studio and labelme."""

import base64
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from raterscope.app.errors import InputError
from raterscope.app.formats.masks import holds_masks, read_masks
from raterscope.app.formats.records import MaskTable
from raterscope.app.study import Study
from raterscope.app.study.masks import PlacedMask, add_case, add_masks, mask_entries
from tests.app.formats.masks.test_shapes import brush, packed, runs

MASK = np.zeros((10, 20), dtype=bool)
MASK[2:5, 3:9] = True
MASK[3, 5] = False


@pytest.fixture
def written(tmp_path: Path):
    def write(content: Any, name: str | None = None) -> Path:
        text = content if isinstance(content, str) else json.dumps(content)
        path = tmp_path / (name or ("a.xml" if text.startswith("<") else "a.json"))
        path.write_text(text, encoding="utf-8")
        return path

    return write


def by_key(table: MaskTable) -> dict[tuple[str | None, str | None, str], np.ndarray]:
    return {(mask.annotator, mask.item, mask.structure): mask.whole()[0] for mask in table.masks}


def coco(*annotations: dict[str, Any], images: int = 1) -> dict[str, Any]:
    return {
        "images": [{"id": n, "file_name": f"{n}.png", "width": 20, "height": 10} for n in range(images)],
        "categories": [{"id": 1, "name": "cell"}, {"id": 2, "name": "nucleus"}],
        "annotations": [{"image_id": 0, "category_id": 1, **entry} for entry in annotations],
    }


def test_coco_run_lengths_go_down_the_columns(written) -> None:
    counts = runs(MASK.T.ravel())
    for form in (counts, packed(counts)):
        path = written(coco({"segmentation": {"size": [10, 20], "counts": form}, "iscrowd": 1}))
        masks = by_key(read_masks(path, annotator="anna"))
        np.testing.assert_array_equal(masks["anna", "0.png", "cell"], MASK)
        assert holds_masks(path) is True


def test_coco_polygons_of_one_category_are_one_mask(written) -> None:
    square = [0, 0, 2, 0, 2, 2, 0, 2]
    other = [1, 1, 4, 1, 4, 3, 1, 3]
    path = written(coco({"segmentation": [square, other]}, {"segmentation": [[10, 5, 12, 5, 12, 6, 10, 6]]}))
    (mask,) = read_masks(path).masks
    assert mask.annotator is None
    full = np.zeros((10, 20), dtype=bool)
    full[0:2, 0:2] = full[1:3, 1:4] = full[5, 10:12] = True
    np.testing.assert_array_equal(mask.whole()[0], full)


def test_coco_ids_that_are_listed_twice_or_not_at_all(written) -> None:
    content = coco({"segmentation": {"size": [10, 20], "counts": [200]}}, images=2)
    for changed, words in (
        (
            {"images": [image | {"id": 0} for image in content["images"]]},
            r"images\[1\]: has the id of another",
        ),
        (
            {"categories": [{"id": 1, "name": "cell"}, {"id": 1, "name": "nucleus"}]},
            r"categories\[1\]: has the id of another category",
        ),
        (
            {"categories": [{"id": 2, "name": "nucleus"}]},
            r"annotations\[0\]: is of category 1, which the file",
        ),
    ):
        with pytest.raises(InputError, match=words):
            read_masks(written(content | changed), annotator="anna")
    masks = read_masks(written(content | {"categories": []}), annotator="anna").masks
    assert {mask.structure for mask in masks} == {""}


def test_coco_annotators_are_attributes(written) -> None:
    """An annotator who marks other images and not this one looked and found nothing."""
    square = [[0, 0, 2, 0, 2, 2, 0, 2]]
    path = written(
        coco(
            {"segmentation": square, "attributes": {"annotator": "anna"}},
            {"segmentation": square, "attributes": {"annotator": "bob"}, "image_id": 1, "category_id": 2},
            images=2,
        )
    )
    masks = by_key(read_masks(path))
    assert {key: int(mask.sum()) for key, mask in masks.items()} == {
        ("anna", "0.png", "cell"): 4, ("bob", "0.png", "cell"): 0,
        ("anna", "1.png", "nucleus"): 0, ("bob", "1.png", "nucleus"): 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ({"segmentation": {"size": [20, 10], "counts": [200]}}, "another size"),
        ({"segmentation": {"size": [10, 20], "counts": [100]}}, "do not fill"),
        ({"segmentation": {"size": [10, 20], "counts": "\x01"}}, "packed run lengths"),
        ({"segmentation": [[0, 0, "x", 0, 1, 1]]}, "not numbers"),
        ({"segmentation": [[0, 0, 1]]}, "not pairs"),
        ({"image_id": 5}, "does not list"),
        ({"image_id": [1]}, "does not name its image"),
        ({"bbox": [0, 0, 1, 1]}, r"has no masks \(it has boxes 1\); .*; a box is no outline"),
    ],
)
def test_coco_that_cannot_be_read(written, annotation: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_masks(written(coco(annotation)))


def test_an_image_that_claims_too_much_is_refused(written) -> None:
    content = coco({"segmentation": [[0, 0, 1, 0, 1, 1]]})
    content["images"][0]["width"] = content["images"][0]["height"] = 99_999
    with pytest.raises(InputError, match="voxels"):
        read_masks(written(content))
    with pytest.raises(InputError, match="claims a size of 10 x 20"):
        read_masks(written(coco() | {"images": [{"id": 0, "height": 10, "width": "20"}]}))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "", "{", "nonsense", "[NaN]", "null"])
def test_json_that_is_none(written, text: str) -> None:
    path = written(text, "a.json")
    assert holds_masks(path) is False
    with pytest.raises(InputError, match=r"a\.json"):
        read_masks(path)


CVAT = """<annotations><version>1.1</version><meta>{meta}</meta>
<image id="0" name="a.png" width="20" height="10" {more}>{shapes}</image></annotations>"""
JOB = "<job><owner><username>boss</username></owner><assignee><username>anna</username></assignee></job>"


def cvat(shapes: str, meta: str = JOB, more: str = "") -> str:
    return CVAT.format(shapes=shapes, meta=meta, more=more)


def test_cvat_runs_go_along_the_rows_of_the_box(written) -> None:
    counts = ", ".join(map(str, runs(MASK[2:5, 3:9].ravel())))
    path = written(cvat(f'<mask label="cell" rle="{counts}" left="3" top="2" width="6" height="3"/>'))
    masks = by_key(read_masks(path))
    np.testing.assert_array_equal(masks["anna", "a.png", "cell"], MASK)
    assert holds_masks(path) is True


def test_cvat_shapes(written) -> None:
    table = read_masks(
        written(
            cvat(
                '<polygon label="p" points="1,1;4,1;4,3;1,3"/>'
                '<ellipse label="e" cx="10" cy="5" rx="4" ry="2"/>'
                '<ellipse label="t" cx="10" cy="5" rx="4" ry="2" rotation="90"/>'
                '<box label="b" xtl="0" ytl="0" xbr="3" ybr="3"/><points label="x" points="1,1"/>'
            )
        )
    )
    masks = by_key(table)
    assert masks["anna", "a.png", "p"].sum() == 6
    y, x = np.mgrid[:10, :20] + 0.5
    ellipse = ((x - 10) / 4) ** 2 + ((y - 5) / 2) ** 2 < 1
    np.testing.assert_array_equal(masks["anna", "a.png", "e"], ellipse)
    np.testing.assert_array_equal(masks["anna", "a.png", "t"], ((x - 10) / 2) ** 2 + ((y - 5) / 4) ** 2 < 1)
    assert ("anna", "a.png", "b") not in masks
    assert table.notices == ("Skipped, because they are not masks: points 1, boxes 1.",)


def test_boxes_count_in_a_file_of_boxes(written) -> None:
    table = read_masks(written(cvat('<box label="b" xtl="0" ytl="0" xbr="3" ybr="2"/>')))
    assert by_key(table)["anna", "a.png", "b"].sum() == 6
    assert "only boxes" in table.notices[0]


def test_a_project_has_the_assignees_of_its_tasks(written) -> None:
    meta = (
        "<project><tasks><task><id>7</id><assignee><username>bob</username></assignee></task></tasks>"
        "<assignee></assignee></project>"
    )
    path = written(cvat('<polygon label="p" points="1,1;4,1;4,3;1,3"/>', meta, 'task_id="7"'))
    assert [mask.annotator for mask in read_masks(path).masks] == ["bob"]


def test_a_job_file_without_marks_on_an_image(written) -> None:
    text = cvat('<polygon label="cell" points="1,1;4,1;4,3;1,3"/>').replace(
        "</annotations>", '<image id="1" name="b.png" width="5" height="4"/></annotations>'
    )
    masks = by_key(read_masks(written(text)))
    assert masks["anna", "b.png", "cell"].shape == (4, 5)
    assert not masks["anna", "b.png", "cell"].any()


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ('<mask label="c" rle="0,99" left="3" top="2" width="6" height="3"/>', "do not fill"),
        ('<mask label="c" rle="0,18" left="19" top="2" width="6" height="3"/>', "beyond its image"),
        ('<mask label="c" rle="0,18" left="a" top="2" width="6" height="3"/>', "no position"),
        ('<mask label="c" rle="0,18" left="0" top="2" width="-6" height="3"/>', "claims a size"),
        ('<polygon label="c" points="1,1;nan,1;4,3"/>', "not pairs of numbers"),
        ('<ellipse label="c" cx="1" cy="" rx="1" ry="1"/>', "no numbers"),
        ('<points label="c" points="1,1"/>', "has no masks"),
    ],
)
def test_cvat_that_cannot_be_read(written, shapes: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_masks(written(cvat(shapes)))


def test_xml_is_not_trusted(written) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY b "bbbb">]><annotations>&b;</annotations>'
    with pytest.raises(InputError, match="declares entities"):
        read_masks(written(bomb, "a.xml"))
    with pytest.raises(InputError, match="nested too deeply"):
        read_masks(written("<a>" * 100_000, "a.xml"))
    with pytest.raises(InputError, match="is not XML"):
        read_masks(written("<a", "a.xml"))
    assert holds_masks(written("<a/>", "a.xml")) is False


def region(kind: str, **value: Any) -> dict[str, Any]:
    value[kind] = ["cell"]
    return {"type": kind, "value": value, "original_width": 20, "original_height": 10}


def studio(*annotations: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    return [{"id": 1, "data": {"image": "/data/upload/a.png?d=1"}, "annotations": list(annotations), **more}]


def painted(mask: np.ndarray) -> list[int]:
    values = np.zeros((*mask.shape, 4), dtype=np.uint8)
    values[..., :3] = 77
    values[..., 3] = mask * 255
    return brush(values.ravel().tolist(), repeat=True)


def test_label_studio_annotators(written) -> None:
    polygon = region("polygonlabels", points=[[0, 0], [10, 0], [10, 20], [0, 20]])
    done = region("brushlabels", format="rle", rle=painted(MASK))
    path = written(
        studio(
            {
                "completed_by": {"id": 7, "email": "a@x.test", "first_name": "Anna", "last_name": "A"},
                "result": [done],
            },
            {"completed_by": 8, "result": [polygon]},
            {"completed_by": 9, "result": [done], "was_cancelled": True},
            {"completed_by": {"id": 6, "email": "b@x.test"}, "result": [region("choices"), done]},
            predictions=[{"model_version": "v2", "result": [polygon]}],
        )
    )
    masks = by_key(read_masks(path))
    assert [key[0] for key in masks] == ["Anna A", "annotator 8", "b@x.test", "model v2"]
    assert {key[1:] for key in masks} == {("a.png", "cell")}
    np.testing.assert_array_equal(masks["Anna A", "a.png", "cell"], MASK)
    square = np.zeros((10, 20), dtype=bool)
    square[:2, :2] = True
    np.testing.assert_array_equal(masks["annotator 8", "a.png", "cell"], square)
    assert holds_masks(path) is True


def test_who_skipped_the_brush_has_found_nothing(written) -> None:
    done = region("brushlabels", format="rle", rle=painted(MASK))
    empty = {"completed_by": 8, "result": [region("choices")]}
    masks = by_key(read_masks(written(studio({"completed_by": 7, "result": [done]}, empty))))
    assert not masks["annotator 8", "a.png", "cell"].any()


def test_a_brush_of_another_size_is_refused(written) -> None:
    wrong = region("brushlabels", format="rle", rle=painted(MASK[:5]))
    with pytest.raises(InputError, match="packed runs of 400 values for 200 pixels"):
        read_masks(written(studio({"completed_by": 7, "result": [wrong]})))
    huge = region("brushlabels", format="rle", rle=[255] * 40) | {"original_width": 10**6}
    with pytest.raises(InputError, match="claims a size"):
        read_masks(written(studio({"completed_by": 7, "result": [huge]})))


def labelme(*shapes: dict[str, Any]) -> dict[str, Any]:
    return {"imagePath": "..\\b\\a.png", "imageHeight": 10, "imageWidth": 20, "shapes": list(shapes)}


def test_labelme(written) -> None:
    content = io.BytesIO()
    Image.fromarray(MASK[2:5, 3:9]).save(content, format="PNG")
    mask = {
        "label": "m", "shape_type": "mask", "points": [[3, 2], [8, 4]],
        "mask": base64.b64encode(content.getvalue()).decode(),
    }  # fmt: skip
    path = written(
        labelme(
            mask,
            {"label": "p", "shape_type": "polygon", "points": [[0, 0], [2, 0], [2, 2], [0, 2]]},
            {"label": "r", "shape_type": "rectangle", "points": [[5, 5], [2, 1]]},
            {"label": "c", "shape_type": "circle", "points": [[10, 5], [13, 5]]},
            {"label": "x", "shape_type": "point", "points": [[1, 1]]},
        ),
        "anna.json",
    )
    table = read_masks(path, naming="{annotator}")
    masks = by_key(table)
    np.testing.assert_array_equal(masks["anna", "a.png", "m"], MASK)
    assert masks["anna", "a.png", "p"].sum() == 4
    assert masks["anna", "a.png", "r"].sum() == 12
    y, x = np.mgrid[:10, :20] + 0.5
    np.testing.assert_array_equal(masks["anna", "a.png", "c"], (x - 10) ** 2 + (y - 5) ** 2 < 9)
    assert table.notices == ("Skipped, because they are not masks: points 1.",)


@pytest.mark.parametrize("where", ["within", "beside", "nowhere"])
def test_labelme_without_a_size_takes_that_of_its_image(written, tmp_path: Path, where: str) -> None:
    content = labelme({"label": "p", "shape_type": "polygon", "points": [[0, 0], [2, 0], [2, 2], [0, 2]]})
    del content["imageHeight"], content["imageWidth"]
    image = io.BytesIO()
    Image.new("L", (20, 10)).save(image, format="PNG")
    content["imageData"] = base64.b64encode(image.getvalue()).decode() if where == "within" else None
    for folder in "ab":
        (tmp_path / folder).mkdir()
    path = written(content, "a/a.json")
    if where == "beside":
        (tmp_path / "b" / "a.png").write_bytes(image.getvalue())
    if where == "nowhere":
        with pytest.raises(InputError, match="field imageHeight: does not state the size of its image"):
            read_masks(path, annotator="anna")
    else:
        (mask,) = read_masks(path, annotator="anna").masks
        assert (mask.grid.shape, mask.whole().sum()) == ((1, 10, 20), 4)


def test_labelme_of_who_marked_nothing(written) -> None:
    (mask,) = read_masks(written(labelme()), annotator="anna", structure="cell").masks
    assert (mask.annotator, mask.structure, mask.values.size) == ("anna", "cell", 0)


def test_a_labelme_mask_is_bounded(written) -> None:
    content = io.BytesIO()
    Image.new("L", (3000, 3000)).save(content, format="PNG")
    for packed_mask in (base64.b64encode(content.getvalue()).decode(), "####", "aaaa"):
        shape = {"label": "m", "shape_type": "mask", "points": [[3, 2], [8, 4]], "mask": packed_mask}
        with pytest.raises(InputError, match=r"larger than its image|is not a PNG"):
            read_masks(written(labelme(shape)))


def test_samples_of_other_programs(real_data: Path) -> None:
    formats = real_data / "formats"
    coco_b = by_key(read_masks(formats / "coco/instances_val.json"))
    assert {key[2]: int(mask.sum()) for key, mask in coco_b.items()} == {"a": 2, "b": 20}
    two = read_masks(formats / "synthetic/label_studio_two_annotators.json")
    assert [mask.annotator for mask in two.masks] == ["a@x.test", "annotator 8"]
    jobs = [read_masks(formats / f"synthetic/cvat_job_{job}.xml").masks[0].annotator for job in (11, 12)]
    assert jobs == ["ann", "bob"]


def test_what_is_of_another_type_than_it_should_be_is_passed_over(written) -> None:
    done = {"completed_by": 7, "result": [region("brushlabels", format="rle", rle=painted(MASK))]}
    path = written([*studio(done, predictions=1.5), {"data": 7, "annotations": None, "completions": "x"}])
    assert by_key(read_masks(path))["annotator 7", "a.png", "cell"].any()
    content = coco({"segmentation": [[0, 0, 2, 0, 2, 2, 0, 2]], "attributes": 5}) | {"categories": 7}
    assert [mask.structure for mask in read_masks(written(content)).masks] == [""]


def test_marks_larger_than_the_memory_allows_are_refused_with_what_to_do(tmp_path):
    square = [0, 0, 29_000, 0, 29_000, 29_000, 0, 29_000]
    content = {
        "images": [{"id": 1, "file_name": "a.png", "width": 29_000, "height": 29_000}],
        "categories": [{"id": 1, "name": "cell"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "segmentation": [square]}],
    }
    path = tmp_path / "large.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"841 million .* 30\d million .* fewer images or annot"):
        read_masks(path)


def test_masks_of_many_large_images_need_little_memory(tmp_path):
    rows, columns, images = 3000, 4000, 27
    content = {
        "images": [
            {"id": at, "file_name": f"{at}.png", "width": columns, "height": rows} for at in range(images)
        ],
        "annotations": [
            {
                "id": at, "image_id": at, "category_id": 1, "annotator": "anna",
                "segmentation": {"size": [rows, columns], "counts": [at + 1, rows - at - 1] * columns},
            }
            for at in range(images)
        ],
        "categories": [{"id": 1, "name": "cell"}],
    }  # fmt: skip
    path = tmp_path / "large.json"
    path.write_text(json.dumps(content))
    tracemalloc.start()
    table = read_masks(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * rows * columns  # all masks together have 27 times as many pixels as an image
    for at, mask in enumerate(table.masks):
        assert np.count_nonzero(mask.values) == columns * (rows - at - 1)
    with Study.create(tmp_path / "s.rscope") as study:
        grid = table.masks[0].grid
        placed = [
            PlacedMask(add_case(study, mask.item, grid).id, "anna", "cell", mask.origin, mask.voxels)
            for mask in table.masks[:2]
        ]
        assert add_masks(study, placed, "large.json") == "2 masks on 2 images by 1 annotator."
        assert [entry.voxels for entry in mask_entries(study)] == [columns * (rows - at - 1) for at in (0, 1)]
