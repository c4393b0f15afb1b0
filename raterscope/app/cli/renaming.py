"""The command `rename`: other names for structures and classes of clicks."""

from __future__ import annotations

import argparse

from raterscope.app.command_line.output import one_line
from raterscope.app.errors import InputError
from raterscope.app.import_names import parse_changes
from raterscope.app.study import Study
from raterscope.app.study.renaming import make_renaming


def rename(options: argparse.Namespace) -> int:
    """Record new names, all or none; print each change."""
    changes = parse_changes(options.names)
    if changes.annotator:
        raise InputError("annotators keep their names; join several in the window (workspace Annotators, J)")
    pairs = [("masks", *pair) for pair in changes.structure.items()]
    pairs += [("clicks", *pair) for pair in changes.class_.items()]
    with Study.open(options.study) as study, study.change():
        for kind, name, new in pairs:
            try:
                decision = study.record(make_renaming(study, kind, name, new))
            except ValueError as refusal:
                raise InputError(str(refusal).rstrip("."), file=study.path) from refusal
            assert decision.subject is not None
            print(one_line(decision.subject.in_words(decision.verb)))
    return 0
