"""The tasks behind a cell of a confusion matrix."""

from __future__ import annotations

import numpy as np

from raterscope.app.workspaces.labels import view
from raterscope.app.workspaces.labels.scene import Scene
from raterscope.widgets.panels.task_browser import GridView

__all__ = ["cell_tasks"]


def cell_tasks(
    scene: Scene, annotators: tuple[int, ...], true: int, given: int, *, blind: bool = False
) -> GridView:
    """Give the tasks of a class, known or most probable, of which annotators gave an output.

    Parameters
    ----------
    scene : Scene
        With an answer.
    annotators : tuple of int
        Nobody in particular is everybody.
    true, given : int
        Class and output.
    blind : bool
        Hide names.
    """
    labels, fusion = scene.labels, scene.fusion
    assert fusion is not None
    theirs = np.ones(len(labels.annotators), dtype=bool)
    if annotators:
        theirs[:] = False
        theirs[list(annotators)] = True
    is_class = np.where(scene.truth >= 0, scene.truth, fusion.label()) == true
    found = []
    for some in (labels, *([scene.excluded] if scene.excluded is not None and annotators else [])):
        votes = (some.label == given) & is_class[some.task] & theirs[some.annotator]
        found.append(some.task[votes])
    tasks, said = np.unique(np.concatenate(found), return_counts=True)
    order = np.argsort(-said, kind="stable")
    who = view.name_of(scene, annotators[0], blind=blind) if len(annotators) == 1 else "they"
    if not annotators:
        who = "anybody"
    return GridView(
        title=f"{who} said {labels.outputs[given]} where {fusion.classes[true]} is true",
        tasks=tasks[order],
        names=labels.tasks,
        classes=fusion.classes,
        posterior=fusion.posterior,
        outputs=labels.outputs,
        given=np.full(len(tasks), given, dtype=np.int16),
        pictures=bool(scene.pictures),
    )
