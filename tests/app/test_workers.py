"""Processes that work for this one, and can be ended at any moment."""

import multiprocessing
import os
import time

import numpy as np
import pytest

from raterscope.algorithms.progress import Cancelled
from raterscope.app.workers import Workers, in_processes


def total(values):
    return float(values.sum()), os.getpid()


def sleep_or_die(seconds):
    if seconds < 0:
        os._exit(9)
    time.sleep(seconds)
    return seconds


LOADED = []


def load():
    LOADED.append(True)


def is_loaded():
    return bool(LOADED)


def nothing(count):
    pass


def test_every_task_is_done_in_another_process():
    tasks = {str(n): (np.full(10, n),) for n in range(7)}
    answers = in_processes(total, tasks, 2, nothing)
    assert {name: value for name, (value, _) in answers.items()} == {str(n): 10.0 * n for n in range(7)}
    assert os.getpid() not in {process for _, process in answers.values()}


def test_this_process_answers_the_last_tasks_until_all_workers_have_started():
    tasks = {str(n): (np.full(10, n),) for n in range(50)}
    with Workers(2) as workers:
        answers = workers.answer(total, tasks, nothing, lambda name: total(*tasks[name]))
    assert {name: value for name, (value, _) in answers.items()} == {str(n): 10.0 * n for n in range(50)}
    assert answers["49"][1] == os.getpid()


def test_processes_that_start_early_load_before_their_first_task():
    with Workers(2) as workers:
        workers.start(load)
        answers = workers.answer(is_loaded, {"a": (), "b": ()}, nothing)
    assert answers == {"a": True, "b": True}
    assert not is_loaded()


def test_a_process_that_dies_takes_only_its_task_with_it():
    tasks = {"good": (0.0,), "deadly": (-1.0,), "late": (0.1,), "later": (0.1,)}
    assert in_processes(sleep_or_die, tasks, 2, nothing) == {"good": 0.0, "late": 0.1, "later": 0.1}


def test_an_answer_adds_tasks_that_all_processes_do():
    def then(name, answer):
        return {f"{name}{n}": (np.full(10, answer[0]),) for n in range(3)} if len(name) < 3 else {}

    with Workers(2) as workers:
        answers = workers.answer(total, {"a": (np.ones(10),)}, nothing, then=then)
    sums = {name: value for name, (value, _) in answers.items()}
    assert len(sums) == 13
    assert all(value == 10.0 ** len(name) for name, value in sums.items())


def test_large_tasks_under_way_do_not_hold_up_the_end():
    """A pipe holds 64 kB: what does not fit waits in the sender until it is read."""
    started, before = [], set(multiprocessing.active_children())  # decoders of other tests

    def give_up(count):
        started.append(len(set(multiprocessing.active_children()) - before))
        if len(started) > 20:
            raise Cancelled

    tasks = {str(n): (np.zeros(100_000),) for n in range(2000)}
    with pytest.raises(Cancelled):
        in_processes(total, tasks, 2, give_up)
    assert max(started) == 2
    assert set(multiprocessing.active_children()) <= before


def test_no_task_needs_no_process():
    assert in_processes(total, {}, 2, nothing) == {}
