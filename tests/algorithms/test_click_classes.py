"""Classes of clusters from the classes of their clicks, against the truth that simulated crowds have."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

from raterscope.algorithms.click_classes import add_classes, class_names
from raterscope.algorithms.clicks.data import KnownSpots
from raterscope.algorithms.clicks.fusion import fuse
from raterscope.algorithms.simulation.click_crowds import separated_crowd
from tests.algorithms.clicks.crowds import name_clicks

CLASSES = ("ring", "trophozoite", "schizont", "gametocyte")
SHARES = (0.55, 0.25, 0.1, 0.1)


def crowds(images=6, annotators=8, seed=1):
    """Clicks of a crowd on some images, the centres and the class of each structure."""
    simulated = [separated_crowd(annotators, seed + image, 30, fewest=25, most=35) for image in range(images)]
    named = [
        name_clicks(crowd.clicks, crowd.mean, CLASSES, seed, image=image, shares=SHARES, accuracy=(0.4, 0.95))
        for image, crowd in enumerate(simulated)
    ]
    return [(clicks, crowd.mean, truth) for (clicks, truth), crowd in zip(named, simulated, strict=True)]


def posteriors(images):
    """Posteriors, shares of votes and true classes of all clusters on a structure with votes."""
    fusions = add_classes([clicks for clicks, _, _ in images], [fuse(clicks) for clicks, _, _ in images])
    layer, votes, true = [], [], []
    for fusion, (_, mean, truth) in zip(fusions, images, strict=True):
        distance, nearest = cKDTree(mean).query(fusion.clustering.mean)
        rows = (distance < 20) & (fusion.classes.votes.sum(axis=1) > 0)
        order = [fusion.classes.names.index(name) for name in CLASSES]
        layer.append(fusion.classes.posterior[rows][:, order])
        votes.append(fusion.classes.votes[rows][:, order])
        true.append(truth[nearest[rows]])
    counts = np.concatenate(votes)
    return np.concatenate(layer), counts / counts.sum(axis=1, keepdims=True), np.concatenate(true)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_annotators_confusion_decides_better_than_the_majority_of_a_cluster(seed):
    layer, shares, true = posteriors(crowds(seed=10 * seed))
    right, by_votes = (float((each.argmax(axis=1) == true).mean()) for each in (layer, shares))
    assert right > by_votes
    rows = np.arange(len(true))
    loss, loss_of_votes = (-np.log(np.maximum(each[rows, true], 0.01)).mean() for each in (layer, shares))
    assert loss < 0.8 * loss_of_votes
    assert abs(layer.max(axis=1).mean() - right) < abs(shares.max(axis=1).mean() - by_votes)


def test_a_decided_class_is_held_and_clusters_without_class_have_the_shares_of_the_classes():
    clicks, _, _ = crowds(images=1)[0]
    fusion = fuse(clicks)
    at = fusion.clustering.mean[0]
    known = KnownSpots(at[:1], at[1:], np.array([True]), ("leukocyte",))
    silent = replace(
        clicks, known=known, label=np.where(fusion.clustering.nearest[fusion.mark] == 1, -1, clicks.label)
    )
    (held,) = add_classes([silent], [fuse(silent)])
    assert held.classes.names == ("gametocyte", "leukocyte", "ring", "schizont", "trophozoite")
    assert held.classes.posterior[0].tolist() == [0, 1, 0, 0, 0]
    assert held.classes.known[0] == 1
    assert held.classes.votes[1].sum() == 0
    assert held.classes.posterior[1].sum() == pytest.approx(1)
    assert (held.classes.posterior[1] < 1).all()


def test_images_fused_earlier_inform_the_confusion_and_positions_do_not_change():
    images = crowds(images=4)
    fusions = [fuse(clicks) for clicks, _, _ in images]
    others = [(clicks, fusion) for (clicks, _, _), fusion in zip(images[1:], fusions[1:], strict=True)]
    (alone,) = add_classes([images[0][0]], fusions[:1])
    (informed,) = add_classes([images[0][0]], fusions[:1], others)
    together = add_classes([clicks for clicks, _, _ in images], fusions)
    assert informed.detection is fusions[0].detection
    np.testing.assert_array_equal(informed.classes.posterior, together[0].classes.posterior)
    assert not np.allclose(informed.classes.posterior, alone.classes.posterior)


def test_clicks_of_one_class_have_no_classes():
    clicks = separated_crowd(10, seed=3).clicks
    same = replace(clicks, classes=("parasite",), label=np.zeros(len(clicks), dtype=np.int64))
    fusion = fuse(same)
    assert add_classes([same], [fusion]) == [fusion]
    assert class_names([clicks]) == ()


def test_the_last_click_of_an_annotator_in_a_cluster_names_it():
    clicks, _, _ = crowds(images=1)[0]
    twice = replace(
        clicks,
        x=np.append(clicks.x, clicks.x[0] + 0.1), y=np.append(clicks.y, clicks.y[0]),
        annotator=np.append(clicks.annotator, clicks.annotator[0]),
        label=np.append(clicks.label, (clicks.label[0] + 1) % 4),
    )  # fmt: skip
    fusion = fuse(twice)
    cluster = fusion.clustering.nearest[fusion.mark[0]]
    assert fusion.clustering.nearest[fusion.mark[-1]] == cluster
    (named,) = add_classes([twice], [fusion])
    assert fusion.marked[twice.annotator[0], cluster]
    without = replace(twice, label=np.append(np.where(clicks.annotator == 0, -1, clicks.label), -1))
    of_others = add_classes([without], [fusion])[0].classes.votes[cluster]
    own = named.classes.votes[cluster] - of_others
    assert twice.annotator[0] == 0
    assert own.tolist() == [int(name == CLASSES[twice.label[-1]]) for name in named.classes.names]
