"""Paths along which biases come in, the strongest first: inverse scale space, LASSO, linearised Bregman.

All work on the scaled Gram matrix with the scores projected out, for which the paper's remark 1 shows that
the paths are the same; theta is then at its best at every place of the path, also of LBI, which algorithm 1
lets follow by gradient steps.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import Queue
from threading import Event
from typing import Any, Protocol

import numpy as np

from raterscope.algorithms.pairs.data import FloatArray
from raterscope.algorithms.progress import Watch, silent

__all__ = ["Exact", "Iterated", "Path", "Way", "iss", "lasso", "lbi"]

_PLACES = 600
_EVENTS_AT_ONCE = 32
_THREADS = min(4, os.cpu_count() or 1)
_FRESH = 0.05
_NONE = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Path:
    """Coefficients of m columns at T places.

    Attributes
    ----------
    at : (T,) float64
        Rising times of ISS, whose coefficients stand still until the next place, and of LBI; falling lambda
        of LASSO, whose coefficients move straight to the next place.
    value : (T, m) float64
    entry : (m,) float64
        Z: 1 / time, or lambda, where a coefficient first leaves 0 (section 2.3, step 2); 0 if it never does.
    """

    at: FloatArray
    value: FloatArray
    entry: FloatArray


class Way(Protocol):
    """Method of a path: followed alone, or with knockoffs for their entry times."""

    def follow(self, gram: FloatArray, pull: FloatArray, watch: Watch = silent) -> Path:
        """Follow the whole path of m columns of length 1 without knockoffs.

        Parameters
        ----------
        gram : (m, m) float64
        pull : (m,) float64
            The columns times what is to be explained.
        """

    def entries(
        self,
        gram: FloatArray,
        gap: FloatArray,
        pulls: FloatArray,
        stop: float = np.inf,
        watch: Watch = silent,
    ) -> FloatArray:
        """Find where m columns and their knockoffs come in, for each of D draws.

        Parameters
        ----------
        gram : (m, m) float64
        gap : (m,) float64
            s (eq. 7).
        pulls : (D, 2 m) float64
        stop : float
            A path ends where this many knockoffs for each other annotator came in before theirs: no cut
            beneath can have a false discovery rate of `stop` or less, since every knockoff ahead counts at
            any cut beneath, and no more than the others can ever be selected.

        Returns
        -------
        (D, 2 m) float64
            Z of the columns, then of their knockoffs; 0 where it ended before.
        """


@dataclass(frozen=True)
class Exact:
    """A path that is followed from event to event by a kernel."""

    events: Callable[..., int]
    moving: bool

    def follow(self, gram: FloatArray, pull: FloatArray, watch: Watch = silent) -> Path:
        """Follow the whole path; see `Way.follow`."""
        from raterscope.algorithms.pairs._path_kernels import start

        state = start(len(pull))
        gram, pull = np.ascontiguousarray(gram), np.ascontiguousarray(pull)
        stride = 1 + len(pull) // _PLACES
        at: list[float] = []
        values: list[FloatArray] = []
        done = stride
        while done == stride and len(pull):
            watch(min(len(at) * stride / len(pull), 1.0), "following the path")
            done = self.events(gram, _NONE, pull, state, stride, np.inf)
            if done:
                at.append(float(state.at[0]))
                values.append((state.value if self.moving else state.slope).copy())
        return Path(np.array(at), np.array(values).reshape(len(at), len(pull)), state.entry)

    def entries(
        self,
        gram: FloatArray,
        gap: FloatArray,
        pulls: FloatArray,
        stop: float = np.inf,
        watch: Watch = silent,
    ) -> FloatArray:
        """Find where columns and knockoffs come in; see `Way.entries`."""
        from raterscope.algorithms.pairs._path_kernels import start

        result = np.zeros(pulls.shape)
        gram, gap = np.ascontiguousarray(gram), np.ascontiguousarray(gap)
        memory: Queue[FloatArray] = Queue()
        for _ in range(min(_THREADS, len(pulls))):
            memory.put(np.empty((pulls.shape[1], pulls.shape[1])))
        ended = Event()

        def draw(k: int) -> None:
            factor = memory.get()
            pull = np.ascontiguousarray(pulls[k])
            state = start(len(pull), factor)
            done = _EVENTS_AT_ONCE
            while done == _EVENTS_AT_ONCE and not ended.is_set():
                done = self.events(gram, gap, pull, state, _EVENTS_AT_ONCE, stop)
            result[k] = state.entry
            memory.put(factor)

        with ThreadPoolExecutor(_THREADS) as pool:
            try:
                waiting = {pool.submit(draw, k) for k in range(len(pulls))}
                while waiting:
                    watch(1.0 - len(waiting) / len(pulls), f"{len(waiting):,} of {len(pulls):,} draws to go")
                    done, waiting = wait(waiting, _FRESH, FIRST_COMPLETED)
                    for future in done:
                        future.result()
            finally:
                ended.set()
        return result


def iss() -> Exact:
    """Inverse scale space, exactly (eq. 4; [osher2016]_): unbiased once a column is in.

    References
    ----------
    .. [osher2016] S. Osher, F. Ruan, J. Xiong, Y. Yao and W. Yin, "Sparse recovery via differential
       inclusions", Applied and Computational Harmonic Analysis 41 (2016) 436-469,
       doi:10.1016/j.acha.2016.01.002.
    """
    from raterscope.algorithms.pairs._path_kernels import iss_events

    return Exact(iss_events, moving=False)


def lasso() -> Exact:
    """LASSO, exactly, by its homotopy (eq. 5): biases are shrunk by lambda."""
    from raterscope.algorithms.pairs._path_kernels import lasso_events

    return Exact(lasso_events, moving=True)


@dataclass(frozen=True)
class Iterated:
    """Linearised Bregman iteration (algorithm 1), all draws at once.

    The step is 1 / (kappa lambda_max), half of what it may be. Within a step w moves straight, so that where
    it comes to -1 or 1 is known more finely than by whole steps, which would leave most columns tied.
    """

    kappa: float = 100.0
    steps: int = 20_000

    def follow(self, gram: FloatArray, pull: FloatArray, watch: Watch = silent) -> Path:
        """Follow the path until twice the time at which the last came in; see `Way.follow`."""
        at: list[float] = []
        values: list[FloatArray] = []

        def note(step: int, time: float, coefficient: FloatArray) -> None:
            if step >= len(at) ** 2 * self.steps / _PLACES**2:
                at.append(time)
                values.append(coefficient[0].copy())

        entry = self._run(gram, _NONE, pull[None], np.inf, note, watch)[0]
        return Path(np.array(at), np.array(values).reshape(len(at), len(pull)), entry)

    def entries(
        self,
        gram: FloatArray,
        gap: FloatArray,
        pulls: FloatArray,
        stop: float = np.inf,
        watch: Watch = silent,
    ) -> FloatArray:
        """Find where columns and knockoffs come in; see `Way.entries`."""
        return self._run(gram, gap, pulls, stop, None, watch)

    def _run(
        self, gram: FloatArray, gap: FloatArray, pulls: FloatArray, stop: float, note: Any, watch: Watch
    ) -> FloatArray:
        draws, columns = pulls.shape
        count = len(gram)
        entry = np.zeros((draws, columns))
        if not count:
            return entry
        largest = float(np.linalg.eigvalsh(2.0 * gram - np.diag(gap) if len(gap) else gram)[-1])
        step = 1.0 / (self.kappa * max(largest, float(gap.max(initial=0.0))))
        w = np.zeros((draws, columns))
        coefficient = np.zeros((draws, columns))
        going, last = np.arange(draws), 0
        for k in range(self.steps):
            watch(k / self.steps, f"step {k + 1:,}, {len(going)} draws going on")
            speed = pulls[going] - _times(gram, gap, coefficient)
            after = w + step * speed
            new = (np.abs(after) > 1.0) & (entry[going] == 0.0)
            if new.any():
                row, column = np.nonzero(new)
                part = (np.sign(after[new]) - w[new]) / (after[new] - w[new])
                entry[going[row], column] = 1.0 / (step * (k + part))
            w = after
            coefficient = self.kappa * np.sign(w) * np.maximum(np.abs(w) - 1.0, 0.0)
            if note is not None:
                note(k, step * (k + 1), coefficient)
                last = k if new.any() else last
                if entry.all() and k > 2 * last:
                    break
            elif new.any():
                ended = (entry[going] > 0.0).all(axis=1)
                if len(gap):
                    behind = (entry[going, count:] > entry[going, :count]).sum(axis=1)
                    ended |= behind > stop * (count - behind)
                going, w, coefficient = going[~ended], w[~ended], coefficient[~ended]
                if not len(going):
                    break
        return entry


def lbi(kappa: float = 100.0, steps: int = 20_000) -> Iterated:
    """Linearised Bregman iteration, which comes near the inverse scale space as kappa grows."""
    return Iterated(kappa, steps)


def _times(gram: FloatArray, gap: FloatArray, coefficient: FloatArray) -> FloatArray:
    """Multiply coefficients by the Gram matrix of columns and knockoffs, [[R, R - S], [R - S, R]]."""
    if not len(gap):
        return np.asarray(coefficient @ gram)
    own, knockoff = coefficient[:, : len(gram)], coefficient[:, len(gram) :]
    both = (own + knockoff) @ gram
    return np.hstack((both - gap * knockoff, both - gap * own))
