"""Control images: in the journal, in every fusion, in reports and exports."""

import numpy as np

from raterscope.algorithms.clicks import FusionPlan
from raterscope.algorithms.clicks.image_priors import Experience
from raterscope.app.exports import provenance_of, record_of_export
from raterscope.app.kinds.clicks.annotators import gather_run
from raterscope.app.kinds.clicks.live_watching import WatchedImage, WatchPlan, follow_image, read_pending
from raterscope.app.kinds.clicks.runs import fuse_inputs, gather, keep
from raterscope.app.report import methods_section
from raterscope.app.review import Decision, ImageSubject, fold, undo
from raterscope.app.study import Study, digest_of
from tests.app.study.made import a_table, reopened

PLAN = FusionPlan.make("kmeans", {"detector": "majority"})
NAMES = ("a", "b")


def mark(verb: str, image: int = 1) -> Decision:
    return Decision(verb=verb, item=image, subject=ImageSubject(name=NAMES[image - 1]))


def controls(study: Study) -> list[bool | None]:
    """Return what a fusion takes each image for."""
    return [clicks.control for clicks in gather([1, 2], study).given.values()]


def test_a_mark_reaches_every_fusion_survives_and_is_undone(study: Study) -> None:
    study.add_clicks(a_table(1, NAMES))
    assert controls(study) == [None, None]
    study.record(mark("negative"))
    study.record(mark("positive", 2))
    assert controls(study) == [False, True]
    with reopened(study) as second:
        assert controls(second) == [False, True]
        values = read_pending(second, [1, 2], WatchPlan(), {}, 0)
        assert [values[image].clicks(len(values[image].arrivals)).control for image in (1, 2)] == [
            False,
            True,
        ]
        back = undo(fold(second.decisions()))
        assert back is not None
        second.record(back)
        assert controls(second) == [False, None]


def test_a_run_names_its_controls_and_can_be_repeated(study: Study) -> None:
    study.add_clicks(a_table(1, NAMES))
    without = gather([1, 2], study)
    study.record(mark("negative"))
    inputs = gather([1, 2], study)
    assert digest_of(inputs.given) != digest_of(without.given)
    run = keep(fuse_inputs(inputs, PLAN, jobs=1), study)
    study.record(mark("uncontrol"))
    second = gather_run(run, study)
    assert digest_of(second.clicks) == study.runs.get(run).digest
    entry, items = study.runs.get(run), {("clicks", image.id): image.name for image in study.images()}
    (prose,) = methods_section([entry], (), study, items).blocks
    text = " ".join(words for _, words in prose.paragraphs)  # type: ignore[union-attr]
    name = study.image(1).name
    assert f"Negative control images: {name};" in text
    assert "Positive control" not in text
    record = record_of_export(
        study, provenance_of(study, ["clicks"]), what="detections", form="csv", files=(), deidentify=False
    )
    assert record["runs"][0]["controls"] == {name: False}
    assert record["runs"][0]["decisions_since"] is True


def test_a_stream_takes_up_a_control_mark(study: Study) -> None:
    study.add_clicks(a_table(1, NAMES))
    plan = WatchPlan.make({"interval_draws": "20"})

    def follow_on(before: WatchedImage | None) -> WatchedImage:
        values = read_pending(study, [1], plan, {}, 0)[1]
        if before is not None and not values.has_more(before):
            return before
        return list(follow_image(before, values, Experience.none, plan))[-1]

    first = follow_on(None)
    assert (first.fusion.verdict < 0).all()
    assert follow_on(first) is first
    study.record(mark("negative"))
    second = follow_on(first)
    assert second.control is False
    assert (second.fusion.verdict == 0).all()
    assert np.allclose(second.fusion.detection.posterior, 0)
    assert follow_on(second) is second
