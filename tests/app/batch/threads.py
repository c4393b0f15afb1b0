"""An executor of cohorts without processes: the start of one takes longer than the cases of a test."""

from concurrent.futures import ThreadPoolExecutor

__all__ = ["Threads"]


class Threads(ThreadPoolExecutor):
    """Work on cases in threads of this process."""

    slots = 2
    task_seconds = 0.0
