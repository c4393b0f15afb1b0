"""Walk through a review by keys alone, with checks at every step."""

import re

from raterscope.app.study import Study
from tests.app.driving import press

MAX_STEPS = 60


def left(window) -> int:
    """How many items the queue says are left in the study."""
    text = window.workspace.queue._progress.accessibleName()
    result = re.search(r"([\d,]+) (?:left in the study|(?:disputed )?\w+ matter)", text)
    return int(result[1].replace(",", "")) if result else 0


def nothing_left(window) -> bool:
    return "Nothing disputed is left" in window.status.message


def walk(window, qtbot, keys, position, check=lambda: None) -> list[int]:
    """Press keys in turn until the window says that nothing is left; gives what was left after each."""
    observed = [left(window)]
    for step in range(MAX_STEPS):
        press(window, qtbot, keys[step % len(keys)], on=position)
        observed.append(left(window))
        check()
        if nothing_left(window):
            return observed
    raise AssertionError(f"still {observed[-1]} left after {MAX_STEPS} keys: {observed}")


def decisions(window, path):
    """All decisions in the study's file."""
    window.document.close()
    with Study.open(path) as study:
        return study.decisions()
