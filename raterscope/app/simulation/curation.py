"""Simulated data for curators: texts, species, a large crowd, copiers, grades, questions, judges.

Everything is drawn at random; no text is from a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.progress import Watch
from raterscope.app.sample_files import BEGUN, write_rows
from raterscope.app.simulation.setups import (
    CopiersSettings,
    GradesSettings,
    JudgesSettings,
    LargeCrowdSettings,
    QuestionsSettings,
    SimulatedFiles,
    SpeciesSettings,
    TextsSettings,
)

IntArray = NDArray[np.int64]

SENTIMENTS = ("negative", "neutral", "positive")
_PHRASES = (
    ("was late and cold", "broke after a day", "ignored my question", "costs too much for this"),
    ("arrived on Tuesday", "comes in two sizes", "is what the picture shows", "needs four batteries"),
    ("works better than expected", "made my week", "is worth every cent", "was friendly and quick"),
)
_SUBJECTS = ("The parcel", "This lamp", "The support", "My second order", "The new version", "The room")
_LINKS = ("and", "but the box", "although it", "and then it", "while the rest")

SPECIES = {
    "bird/owl": "tawny barn snowy little eagle", "bird/duck": "mallard eider teal pintail tufted",
    "bird/tit": "great blue coal willow marsh", "mammal/deer": "red roe fallow elk muntjac",
    "mammal/cat": "lynx wildcat leopard ocelot caracal", "mammal/mustelid": "otter badger stoat mink marten",
}  # fmt: skip
"""Thirty species by class and family."""

GRADES = 5
QUALITIES = {
    "sharp": ("yes", "no"), "exposure": ("too dark", "right", "too bright"),
    "subject": ("person", "animal", "plant", "thing"),
}  # fmt: skip
"""Questions about a photograph, and their answers."""

MODELS = ("aster", "birch", "cedar", "daisy", "elder", "fern", "ginkgo", "hazel")
_PROMPTS = (
    "Explain {} to a child of ten.", "Write a short letter that asks for {}.",
    "List three risks of {} and how to avoid them.", "Summarise what is known of {} in two sentences.",
    "What would you ask an expert on {} first?",
)  # fmt: skip
_TOPICS = (
    "tides", "vaccination", "a rent reduction", "solar panels", "beekeeping", "compound interest",
    "jet lag", "sourdough", "glaciers", "encryption", "a night shift", "earthquakes",
)  # fmt: skip
_ANSWERS = (
    "It depends; no answer is certain.",
    "There are several points, and the first matters most.",
    "The main point first, then an example that shows where it fails.",
    "A direct answer, one example with numbers, the usual mistake, and where to read more.",
)


def numbered_names(prefix: str, count: int) -> list[str]:
    """Return names by number, short enough for narrow columns."""
    width = len(str(count))
    return [f"{prefix}{number:0{width}d}" for number in range(1, count + 1)]


def _assign(rng: np.random.Generator, tasks: int, annotators: int, votes: int) -> tuple[IntArray, IntArray]:
    """Assign several different annotators to each task; return task and annotator of each vote."""
    votes = min(votes, annotators)
    task = np.repeat(np.arange(tasks), votes)
    first = rng.integers(0, annotators, tasks)
    steps = np.stack([rng.permutation(annotators)[:votes] for _ in range(min(tasks, 997))])
    annotator = (first[:, None] + steps[np.arange(tasks) % len(steps)]) % annotators
    return task, annotator.ravel()


def _answer(
    rng: np.random.Generator, true: IntArray, accuracy: NDArray[np.floating], classes: int
) -> IntArray:
    """Draw answers: the true class with a given probability, else another class."""
    other = (true + rng.integers(1, classes, len(true))) % classes
    return np.where(rng.random(len(true)) < accuracy, true, other)


def _votes(
    folder: Path, header: Sequence[str], tasks: Sequence[str], annotators: Sequence[str],
    votes: tuple[IntArray, IntArray, IntArray], labels: Sequence[str],
) -> Path:  # fmt: skip
    """Write one vote per row, twenty seconds apart."""
    path = folder / "labels.csv"
    rows = zip(*(column.tolist() for column in votes), strict=True)
    write_rows(
        path, (*header, "time"),
        (
            (annotators[annotator], tasks[task], labels[label], f"{BEGUN + 20 * number:.0f}")
            for number, (task, annotator, label) in enumerate(rows)
        ),
    )  # fmt: skip
    return path


def _truth(folder: Path, header: str, tasks: Sequence[str], true: IntArray, labels: Sequence[str]) -> Path:
    path = folder / "truth.csv"
    write_rows(path, (header, "label"), ((task, labels[at]) for task, at in zip(tasks, true, strict=True)))
    return path


def _annotators(folder: Path, header: Sequence[str], rows: Iterator[Sequence[str]]) -> Path:
    path = folder / "true_annotators.csv"
    write_rows(path, ("annotator", *header), rows)
    return path


def draw_texts(settings: TextsSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write opinions in three classes by several annotators; the last annotator answers at random."""
    watch(0.0, "writing texts")
    rng = np.random.default_rng(settings.seed)
    true = rng.integers(0, len(SENTIMENTS), settings.texts)
    texts = [
        f"{number}. {rng.choice(_SUBJECTS)} {rng.choice(_PHRASES[at])}"
        + (f" {rng.choice(_LINKS)} {rng.choice(_PHRASES[at])}." if number % 3 else ".")
        for number, at in enumerate(true.tolist(), 1)
    ]
    task, annotator = _assign(rng, settings.texts, settings.annotators, settings.votes)
    accuracy = rng.uniform(0.75, 0.95, settings.annotators)
    accuracy[-1] = 1 / len(SENTIMENTS)
    label = _answer(rng, true[task], accuracy[annotator], len(SENTIMENTS))
    names = numbered_names("annotator ", settings.annotators)
    data = _votes(folder, ("annotator", "text", "label"), texts, names, (task, annotator, label), SENTIMENTS)
    beside = _annotators(folder, ("accuracy",), _accuracies(names, accuracy))
    return SimulatedFiles((data,), (_truth(folder, "text", texts, true, SENTIMENTS),), (beside,))


def _accuracies(names: Sequence[str], accuracy: NDArray[np.floating]) -> Iterator[Sequence[str]]:
    return ((name, f"{value:.3f}") for name, value in zip(names, accuracy.tolist(), strict=True))


def draw_species(settings: SpeciesSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write species of a hierarchy; mistakes stay mostly within a family."""
    watch(0.0, "drawing species")
    rng = np.random.default_rng(settings.seed)
    labels = [f"{family}/{name}" for family, names in SPECIES.items() for name in names.split()]
    size = len(labels) // len(SPECIES)
    true = rng.choice(len(labels), settings.tasks, p=rng.dirichlet(np.full(len(labels), 4.0)))
    task, annotator = _assign(rng, settings.tasks, settings.annotators, settings.votes)
    accuracy = rng.beta(6, 2, settings.annotators)
    correct = true[task]
    near = correct - correct % size + (correct + rng.integers(1, size, len(task))) % size
    mistake = np.where(rng.random(len(task)) < 0.8, near, rng.integers(0, len(labels), len(task)))
    label = np.where(rng.random(len(task)) < accuracy[annotator], correct, mistake)
    photos, names = numbered_names("photo ", settings.tasks), numbered_names("observer ", settings.annotators)
    data = _votes(folder, ("annotator", "photo", "label"), photos, names, (task, annotator, label), labels)
    beside = _annotators(folder, ("accuracy",), _accuracies(names, accuracy))
    return SimulatedFiles((data,), (_truth(folder, "photo", photos, true, labels),), (beside,))


def draw_large_crowd(settings: LargeCrowdSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write a few votes of each of very many annotators."""
    watch(0.0, "drawing votes")
    rng = np.random.default_rng(settings.seed)
    labels = ("galaxy", "star", "artefact")
    tasks = max(settings.votes, settings.annotators * settings.votes // 10)
    true = rng.choice(3, tasks, p=(0.6, 0.3, 0.1))
    annotator, task = _assign(rng, settings.annotators, tasks, settings.votes)
    accuracy = np.where(rng.random(settings.annotators) < 0.1, 1 / 3, 0.85)
    label = _answer(rng, true[task], accuracy[annotator], 3)
    names, images = numbered_names("user ", settings.annotators), numbered_names("object ", tasks)
    data = _votes(folder, ("annotator", "task", "label"), images, names, (task, annotator, label), labels)
    beside = _annotators(folder, ("accuracy",), _accuracies(names, accuracy))
    return SimulatedFiles((data,), (_truth(folder, "task", images, true, labels),), (beside,))


def draw_copiers(settings: CopiersSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write labels of annotators; the first of them copy the answers of a careless annotator."""
    watch(0.0, "drawing labels")
    rng = np.random.default_rng(settings.seed)
    labels = ("healthy", "infected", "unclear")
    true = rng.choice(3, settings.tasks, p=(0.5, 0.35, 0.15))
    names, tasks = numbered_names("annotator ", settings.annotators), numbered_names("cell ", settings.tasks)
    task = np.repeat(np.arange(settings.tasks), settings.annotators)
    annotator = np.tile(np.arange(settings.annotators), settings.tasks)
    accuracy = rng.uniform(0.7, 0.9, settings.annotators)
    accuracy[: settings.copiers] = 0.55
    label = _answer(rng, true[task], accuracy[annotator], 3).reshape(settings.tasks, -1)
    copied = rng.random((settings.tasks, settings.copiers)) < 0.95
    label[:, : settings.copiers] = np.where(copied, label[:, :1], label[:, : settings.copiers])
    votes = task, annotator, label.ravel()
    data = _votes(folder, ("annotator", "task", "label"), tasks, names, votes, labels)
    copies = ((name, "yes" if at < settings.copiers else "no") for at, name in enumerate(names))
    beside = _annotators(folder, ("copies",), copies)
    return SimulatedFiles((data,), (_truth(folder, "task", tasks, true, labels),), (beside,))


def draw_grades(settings: GradesSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write grades from 1 to 5, from a latent severity and each annotator's thresholds and noise."""
    watch(0.0, "drawing grades")
    rng = np.random.default_rng(settings.seed)
    severity = rng.normal(0.0, 1.3, settings.tasks)
    edges = np.array([-1.5, -0.5, 0.5, 1.5])
    true = np.searchsorted(edges, severity)
    task, annotator = _assign(rng, settings.tasks, settings.annotators, settings.votes)
    shift, noise = rng.normal(0.0, 0.4, settings.annotators), rng.uniform(0.3, 0.9, settings.annotators)
    perceived = severity[task] + shift[annotator] + noise[annotator] * rng.normal(size=len(task))
    labels = [str(grade + 1) for grade in range(GRADES)]
    names, tasks = numbered_names("reader ", settings.annotators), numbered_names("scan ", settings.tasks)
    votes = task, annotator, np.searchsorted(edges, perceived)
    data = _votes(folder, ("annotator", "task", "grade"), tasks, names, votes, labels)
    shifts = zip(names, map("{:.3f}".format, shift), map("{:.3f}".format, noise), strict=True)
    beside = _annotators(folder, ("shift", "noise"), shifts)
    return SimulatedFiles((data,), (_truth(folder, "task", tasks, true, labels),), (beside,))


def draw_questions(settings: QuestionsSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write an export with several questions on each photograph, one answer per row."""
    watch(0.0, "drawing answers")
    rng = np.random.default_rng(settings.seed)
    names, tasks = numbered_names("annotator ", settings.annotators), numbered_names("photo ", settings.tasks)
    task, annotator = _assign(rng, settings.tasks, settings.annotators, settings.votes)
    accuracy = rng.uniform(0.7, 0.95, settings.annotators)
    rows, truths = [], []
    for question, labels in QUALITIES.items():
        true = rng.integers(0, len(labels), settings.tasks)
        label = _answer(rng, true[task], accuracy[annotator], len(labels))
        rows += [
            (names[voter], tasks[photo], question, labels[at])
            for voter, photo, at in zip(annotator.tolist(), task.tolist(), label.tolist(), strict=True)
        ]
        truths += [(name, question, labels[at]) for name, at in zip(tasks, true.tolist(), strict=True)]
    data, truth = folder / "answers.csv", folder / "truth.csv"
    write_rows(data, ("annotator", "photo", "question", "answer"), rows)
    write_rows(truth, ("photo", "question", "label"), truths)
    return SimulatedFiles(
        (data,), (truth,), (_annotators(folder, ("accuracy",), _accuracies(names, accuracy)),)
    )


def draw_judges(settings: JudgesSettings, folder: Path, watch: Watch) -> SimulatedFiles:
    """Write comparisons of models by judges in both orders; some judges always choose the first."""
    watch(0.0, "drawing judgments")
    rng = np.random.default_rng(settings.seed)
    quality = np.linspace(1.2, -1.2, len(MODELS))[rng.permutation(len(MODELS))]
    judges = numbered_names("judge ", settings.judges)
    fixed = np.arange(settings.judges) < settings.always_a
    lean = np.where(fixed, 0.0, rng.normal(0.0, 0.03, settings.judges))
    prompts = [
        f"{_PROMPTS[number % len(_PROMPTS)].format(_TOPICS[number % len(_TOPICS)])}"
        + (f" ({number // 60 + 1})" if number >= 60 else "")
        for number in range(settings.prompts)
    ]
    good = quality[None, :] + rng.normal(0.0, 0.6, (settings.prompts, len(MODELS)))
    level = np.clip(np.searchsorted((-0.8, 0.2, 1.0), good), 0, len(_ANSWERS) - 1)

    def rows() -> Iterator[Sequence[str]]:
        for judge in range(settings.judges):
            watch(judge / settings.judges, "writing judgments")
            for prompt in range(settings.prompts):
                first, second = rng.choice(len(MODELS), 2, replace=False).tolist()
                for a, b in ((first, second), (second, first)):
                    gap = good[prompt, a] - good[prompt, b] + lean[judge] + rng.logistic(0.0, 0.5)
                    tie = abs(gap) < 0.25 and not fixed[judge]
                    winner = "tie" if tie else "model_a" if fixed[judge] or gap > 0 else "model_b"
                    answers = [
                        f"On {_TOPICS[prompt % len(_TOPICS)]}, by {MODELS[at]}. {_ANSWERS[level[prompt, at]]}"
                        for at in (a, b)
                    ]
                    task = str(prompt + 1), prompts[prompt]
                    yield (judges[judge], *task, MODELS[a], MODELS[b], *answers, winner)

    data, truth = folder / "judgments.csv", folder / "true_ranking.csv"
    write_rows(
        data,
        ("judge", "question_id", "prompt", "model_a", "model_b", "response_a", "response_b", "winner"),
        rows(),
    )
    order = np.argsort(-quality)
    write_rows(truth, ("item", "rank"), ((MODELS[at], str(rank)) for rank, at in enumerate(order, 1)))
    beside = _annotators(
        folder, ("always_a",), (
            (name, "yes" if is_fixed else "no") for name, is_fixed in zip(judges, fixed.tolist(), strict=True)
        ),
    )  # fmt: skip
    return SimulatedFiles((data,), (truth,), (beside,))
