"""Functions that run in threads beside an algorithm."""

import threading

import pytest

from raterscope.algorithms.progress import Background, Cancelled, no_check


def test_results_belong_to_their_functions():
    with Background() as beside:
        waiting = [beside.start(lambda at=at: at * at) for at in range(9)]
        assert [result(no_check) for result in waiting] == [at * at for at in range(9)]


def test_an_error_of_a_function_is_raised_where_its_result_is_needed():
    with Background() as beside:
        result = beside.start(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            result(no_check)


def test_a_check_that_raises_ends_the_function():
    begun, ended = threading.Event(), threading.Event()

    def cancel() -> None:
        begun.wait()
        raise Cancelled

    with Background() as beside:

        def work() -> None:
            begun.set()
            try:
                while True:
                    beside.watch(0.5, "counting")
            finally:
                ended.set()

        result = beside.start(work)
        with pytest.raises(Cancelled):
            result(cancel)
    assert ended.is_set()
