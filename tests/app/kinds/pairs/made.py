"""Files of a crowd that compares pairs; some annotators prefer one side."""

import numpy as np

ITEMS = tuple(f"item {n:02}" for n in range(16))
"""The higher the number, the better."""

GOOD = tuple(f"good {n:02}" for n in range(40))
UGLY = tuple(f"ugly {n:02}" for n in range(9))
"""Annotators who click the left side without looking in 7 of 10 cases."""

BAD = tuple(f"<b>bad</b> {n}" for n in range(6))
"""Annotators who always click the right side."""

PEOPLE = GOOD + UGLY + BAD
BIASED = frozenset(UGLY + BAD)
HEADER = ("annotator", "left", "right", "choice")


def answers(seed: int = 7) -> list[tuple[str, str, str, str]]:
    """Return every annotator's answers on every pair: annotator, left, right, side."""
    rng = np.random.default_rng(seed)
    rows = []
    for annotator in PEOPLE:
        for low in range(len(ITEMS)):
            for high in range(low + 1, len(ITEMS)):
                swap, wrong, idle = rng.random(3)
                first, second = (high, low) if swap < 0.5 else (low, high)
                better = first > second
                side = "left" if better != (wrong < 0.15) else "right"
                if annotator in BAD:
                    side = "right"
                elif annotator in UGLY and idle < 0.7:
                    side = "left"
                rows.append((annotator, ITEMS[first], ITEMS[second], side))
    return rows
