"""Walk through a review by keys alone, with checks at every step."""

import re

from raterscope.app.study import Study
from tests.app.driving import press

MOST_STEPS = 60


def left(window) -> int:
    """How many items the queue says are left in the study."""
    told = window.workspace.queue._progress.accessibleName()
    found = re.search(r"([\d,]+) (?:left in the study|(?:disputed )?\w+ matter)", told)
    return int(found[1].replace(",", "")) if found else 0


def nothing_left(window) -> bool:
    return "Nothing disputed is left" in window.status.message


def walk(window, qtbot, keys, place, check=lambda: None) -> list[int]:
    """Press keys in turn until the window says that nothing is left; gives what was left after each."""
    seen = [left(window)]
    for step in range(MOST_STEPS):
        press(window, qtbot, keys[step % len(keys)], on=place)
        seen.append(left(window))
        check()
        if nothing_left(window):
            return seen
    raise AssertionError(f"still {seen[-1]} left after {MOST_STEPS} keys: {seen}")


def decisions(window, path):
    """All decisions in the study's file."""
    window.document.close()
    with Study.open(path) as study:
        return study.decisions()
