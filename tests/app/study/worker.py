"""A process that edits a study and runs on it until it is killed.

Started as ``python -m tests.app.study.worker STUDY``. For every line it reads it forks a process that works
at random. That one writes a line for everything that was reported as done, and never stops by itself.
"""

import os
import sys
from pathlib import Path
from random import Random

from raterscope.app.review import Decision, SpotSubject, fold
from raterscope.app.study import Study
from tests.app.study.made import a_fusion, a_run, a_table


def emit(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def work(path: Path, seed: int) -> None:
    random = Random(seed)
    study = Study.open(path)
    for step in range(1_000_000):
        choice = random.random()
        images = [entry.id for entry in study.images()]
        if choice < 0.15 or len(images) < 3:
            names = tuple(f"image {seed} {step} {part}" for part in range(3))
            study.add_clicks(a_table(seed * 1000 + step, names, clicks=400))
            emit("import", study.last_import())
        elif choice < 0.35:
            chosen = random.sample(images, 3)
            results = {image: a_fusion(study.clicks(image), seed=step, clusters=40) for image in chosen}
            emit("run", study.runs.add(a_run(log={"images": chosen, "seed": step}), results))
        elif choice < 0.4:
            study.close()
            study = Study.open(path)
        else:
            before = study.decisions()
            state = fold(before)
            standing = [item.id for item in before if state.stands(item.id)]
            if standing and choice > 0.9:
                decision = Decision(verb="undo", undoes=random.choice(standing))
            else:
                x, y = random.random() * 100, random.random() * 100
                verb = random.choice(["accept", "reject", "skip", "add"])
                decision = Decision(
                    verb=verb, item=random.choice(images), subject=SpotSubject(number=step, x=x, y=y)
                )
            done = study.record(decision)
            emit("decision", done.id, done.verb, done.undoes or 0, *place_of(done))


def place_of(decision: Decision) -> list[str]:
    """Write the place of a decision on a spot to the last digit; nothing for an undo."""
    spot = decision.subject
    return [repr(spot.x), repr(spot.y)] if isinstance(spot, SpotSubject) else []


def main() -> None:
    path = Path(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                emit("begin", os.getpid())
                work(path, int(line))
            except BaseException as error:  # an unexpected end is reported, and fails the test
                emit("broken", repr(error))
            os._exit(1)
        os.waitpid(child, 0)
        emit("end")


if __name__ == "__main__":
    main()
