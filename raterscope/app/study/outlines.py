"""Outlines of runs of clicks: the part of the results that a queue needs, stored in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.clicks.data import FloatArray
from raterscope.algorithms.clicks.results import Fusion

__all__ = ["Answers", "Outline"]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a fusion says of the M spots of one image, and where they are.

    Attributes
    ----------
    looked : int
        Annotators who looked at it.
    posterior : (M,) float64
    detected : (M,) bool
    mean : (M, 2) float64
        Pixels.
    covariance : (M, 2, 2) float64
        Square pixels.
    """

    looked: int
    posterior: FloatArray
    detected: NDArray[np.bool_]
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, fusion: Fusion) -> Answers:
        """Take them from a result."""
        detection, clustering = fusion.detection, fusion.clustering
        looked = len(fusion.rates.clicks)
        return cls(looked, detection.posterior, detection.detected, clustering.mean, clustering.covariance)


@dataclass(frozen=True, eq=False)
class Outline:
    """The answers of a run to all its K images, one after the other.

    Attributes
    ----------
    items : (K,) int64
        The images' numbers in the study.
    ends : (K,) int64
        Up to which spot the answers to each image go.
    looked : (K,) int64
    posterior, detected
        As `Answers` has them, of all spots.
    mean, covariance : float32
        That a decision is found at its spot again, which they are for, wants no more digits.
    """

    items: NDArray[np.int64]
    ends: NDArray[np.int64]
    looked: NDArray[np.int64]
    posterior: FloatArray
    detected: NDArray[np.bool_]
    mean: NDArray[np.float32]
    covariance: NDArray[np.float32]

    @classmethod
    def of(cls, results: Mapping[int, Fusion]) -> Outline:
        """Take it from results by image."""
        answers = [Answers.of(fusion) for fusion in results.values()]
        return cls(
            np.array(list(results), dtype=np.int64),
            np.cumsum([len(one.posterior) for one in answers], dtype=np.int64),
            np.array([one.looked for one in answers], dtype=np.int64),
            np.concatenate([np.empty(0), *(one.posterior for one in answers)]),
            np.concatenate([np.empty(0, dtype=bool), *(one.detected for one in answers)]),
            np.concatenate([np.empty((0, 2)), *(one.mean for one in answers)]).astype(np.float32),
            np.concatenate([np.empty((0, 2, 2)), *(one.covariance for one in answers)]).astype(np.float32),
        )

    def answers(self) -> dict[int, Answers]:
        """Give the answers by image.

        Raises
        ------
        ValueError
            When the arrays do not belong together, as in a stranger's file.
        """
        images, (spots,) = len(self.items), self.posterior.shape
        shapes = tuple(
            one.shape for one in (self.ends, self.looked, self.detected, self.mean, self.covariance)
        )
        bounds = np.concatenate([[0], self.ends])
        expected = (images,), (images,), (spots,), (spots, 2), (spots, 2, 2)
        if shapes != expected or self.detected.dtype != bool:
            raise ValueError("an outline's arrays are of different spots")
        if self.ends.dtype.kind != "i" or bounds[-1] != spots or (np.diff(bounds) < 0).any():
            raise ValueError("an outline's images are in no order")
        mean, covariance = self.mean.astype(float), self.covariance.astype(float)
        places = [slice(*ends) for ends in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        return {
            image: Answers(
                looked, self.posterior[place], self.detected[place], mean[place], covariance[place]
            )
            for image, looked, place in zip(self.items.tolist(), self.looked.tolist(), places, strict=True)
        }
