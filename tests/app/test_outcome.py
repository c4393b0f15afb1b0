"""Non-convergence is reported with the setting that limits iterations, for every such algorithm."""

import numpy as np

from raterscope.algorithms.clicks import Clicks, FusionPlan
from raterscope.algorithms.clicks import fuse as fuse_clicks
from raterscope.algorithms.clicks.catalogue import CLUSTERERS, DETECTORS
from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.catalogue import LABELLERS
from raterscope.algorithms.labels.fusion import LabelPlan
from raterscope.algorithms.masks import Masks
from raterscope.algorithms.masks.catalogue import FUSERS
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.app.kinds.clicks.runs import explain_not_converged as of_clicks
from raterscope.app.kinds.labels.runs import explain_not_converged as of_labels
from raterscope.app.kinds.masks.runs import explain_not_converged as of_masks
from raterscope.app.outcome import explain_limit


def test_whatever_limits_an_iteration_is_known():
    for algorithm in (*FUSERS.values(), *LABELLERS.values(), *CLUSTERERS.values(), *DETECTORS.values()):
        limits = [
            spec
            for spec in algorithm.settings.specs()
            if spec.help.startswith("Maximum number") and spec.label == "Iterations"
        ]
        values = {spec.name: spec.default for spec in limits}
        count = max(values.values(), default=7)
        words = explain_limit(algorithm, values, [count])
        assert f"{algorithm.title} did not converge in {count:,} iterations" in words
        for spec in limits:
            assert f"“{spec.label}”" in words, algorithm.name
            assert "Raise" not in explain_limit(algorithm, values, [count - 1]), algorithm.name


def three_masks() -> Masks:
    rng = np.random.default_rng(1)
    values = np.zeros((3, 4, 20, 20), dtype=bool)
    for number in range(3):
        values[number, 1:3, 5 : 14 + number, 5:15] = True
    values ^= rng.random(values.shape) < 0.02
    return Masks(values, ("a", "b", "c"), (1.0, 1.0, 1.0))


def test_masks_that_did_not_converge_are_distinguished_from_those_that_did():
    plan = MaskPlan.make("laplace", {"max_iterations": "1"})
    (fusion, *_) = fused_masks(plan)
    words = of_masks(fusion, plan.as_dict())
    assert "did not converge in 1 iteration" in words
    assert "“Iterations”" in words
    assert "(now 1)" in words
    enough = MaskPlan.make("laplace")
    assert of_masks(fused_masks(enough)[0], enough.as_dict()) == ""


def fused_masks(plan):
    from raterscope.algorithms.masks.fusion import fuse

    return [fuse(three_masks(), plan)]


def test_a_run_with_a_requested_number_of_iterations_has_no_warning():
    task, annotator = np.divmod(np.arange(40), 4)
    answers = np.random.default_rng(2).integers(0, 2, 40)
    labels = Labels(
        annotator.astype(np.int32), task.astype(np.int32), answers, tuple("abcd"),
        tuple(f"t{n}" for n in range(10)), ("x", "y"), ("x", "y"),
    )  # fmt: skip
    from raterscope.algorithms.labels.fusion import fuse

    for tolerance, blamed in (("1e-12", True), ("0", False)):
        plan = LabelPlan.make("ibcc", {"iterations": "1", "tolerance": tolerance})
        words = of_labels(fuse(labels, plan).fusion, plan.as_dict())
        assert bool(words) == blamed


def test_clicks_name_the_step_that_did_not_converge():
    rng = np.random.default_rng(1)
    clicks = Clicks(
        rng.normal(50, 2, 60), rng.normal(50, 2, 60), np.arange(60) % 6, tuple("abcdef"), (0, 0, 100, 100)
    )
    plan = FusionPlan.make(texts={"detection_iterations": "1", "detection_tolerance": "1e-15"})
    words = of_clicks(fuse_clicks(clicks, plan), plan.as_dict())
    assert DETECTORS["dem"].title in words
    assert "“Detection iterations”" in words
    assert CLUSTERERS["oem"].title not in words
