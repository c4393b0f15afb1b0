"""Small reader studies for tests, and readers who read them."""

import csv

import numpy as np
from PIL import Image

from raterscope.app.reader_studies.collecting import pack_stroke
from raterscope.app.reader_studies.protocol import check_protocol
from raterscope.app.reader_studies.reading_file import ReadingFile
from raterscope.app.reader_studies.set_up import set_up

QUESTIONS = {
    "labels": [
        {"name": "infected", "classes": ["yes", "no", "unsure"]},
        {"name": "sharp", "classes": ["1", "2"]},
    ],
    "pairs": [{"name": "sharper"}],
}


def images(folder, count=4):
    """Write small grey pictures, each of another size."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        pixels = np.random.default_rng(number).integers(0, 255, (40 + number, 60), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"smear{number}.png")
    return folder


def fields(kind, folder, **others):
    """Fields of a protocol."""
    values = {"name": f"Study of {kind}", "kind": kind, "readers": ["Anna", "Ben"], "cases": ["smears/*.png"]}
    values |= {"structures": ["nucleus", "cell"]} if kind == "masks" else {}
    values |= {"questions": QUESTIONS[kind]} if kind in QUESTIONS else {}
    images(folder / "smears")
    return values | others


def texts(folder, count=4):
    """Write a table of tasks: texts, Markdown and two answers, and a column that is no content."""
    rows = [["task", "text", "markdown", "response_a", "response_b", "diagnosis"]]
    for number in range(count):
        row = [f"answer {number}", "", "", "", "", "malaria"]
        if number == 1:
            row[2] = "A **bold** answer"
        elif number == 2:
            row[3:5] = ["First answer", "Second answer"]
        else:
            row[1] = f"Text {number}, on\ntwo lines"
        rows.append(row)
    with (folder / "tasks.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return folder / "tasks.csv"


def comparisons(folder):
    """Write a table of answers of models to two prompts, one comparison twice with exchanged sides."""
    rows = [["annotator", "prompt", "model_a", "model_b", "response_a", "response_b", "winner"]]
    for word, sides in (
        ("fever", "gpt llama"),
        ("fever", "llama gpt"),
        ("fever", "claude gpt"),
        ("cough", "gpt llama"),
    ):
        first, second = sides.split()
        answers = f"{first} on {word}", f"{second} on {word}"
        rows.append(["judge", f"{word.capitalize()}?", first, second, *answers, "model_a"])
    with (folder / "answers.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return folder / "answers.csv"


def make(kind, folder, **others):
    """Set up a reader study and return its folder."""
    file = folder / "protocol.toml"
    protocol = check_protocol(fields(kind, folder, **others), folder, file)
    set_up(protocol, file, folder / "out")
    return folder / "out"


def read(path, *, session=1, cases=None, finish=True, clicks=2, answer=0, seconds=5.0):
    """Read the cases of a session as a reader would."""
    with ReadingFile.open(path) as file:
        assignment = file.assignment
        for number, position in enumerate(assignment.positions(session)):
            if cases is not None and number >= cases:
                break
            case = assignment.case(assignment.places[position].case)
            if assignment.kind == "clicks":
                for index in range(clicks):
                    file.record(position, "click", {"x": 5.0 + index, "y": 7.5})
                file.record(position, "done", {})
            elif assignment.kind == "masks":
                height = case.pictures[0].height
                stroke = np.ones((1, height - 30, 10), dtype=np.int8)
                file.record(position, "stroke", pack_stroke("nucleus", (0, 3, 4), stroke))
                file.record(position, "done", {})
            else:
                for question in assignment.questions:
                    detail = {"question": question.name, "answer": question.classes[answer]}
                    file.record(position, "answer", detail)
            file.add_time(position, seconds + number)
        if finish:
            file.finish(session)
