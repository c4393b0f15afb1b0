"""Import from the window: reading outside the GUI thread, a preview, dialogs for what files do not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from raterscope.app.document import Document, Unsaved
from raterscope.app.errors import plain
from raterscope.app.jobs import Jobs
from raterscope.app.window.bars import ask

if TYPE_CHECKING:
    from raterscope.app.ambiguous_files import UnknownAnnotators
    from raterscope.app.formats import UnknownColumns
    from raterscope.app.formats.volumes.resampling import OtherGrid
    from raterscope.app.kinds.masks.imports import StudyImages
    from raterscope.app.window.import_reading import Batch, Question, Understood
    from raterscope.widgets.dialogs.import_dialogs import AnnotatorNamesDialog, ColumnMappingDialog
    from raterscope.widgets.dialogs.import_preview import ImportDialog

STUDIES = "Raterscope studies (*.rscope)"


class Importer(QObject):
    """Import of files: reads them, shows a preview, and stores them once it is confirmed.

    Without an open study, a new one is created with all files or not at all.
    """

    # message, refused: imported annotations, and errors
    message = Signal(str)
    refused = Signal(str)

    def __init__(self, document: Document, jobs: Jobs, window: QWidget) -> None:
        super().__init__(window)
        self._document = document
        self._jobs = jobs
        self._window = window
        self._waiting: list[tuple[Batch, Understood]] = []
        self._created: tuple[Path, str] | None = None
        """A new study that is being opened, and what was imported into it."""
        document.replaced.connect(self._on_replaced)

    def start(self, paths: Sequence[Path]) -> None:
        """Read files, and ask whether to import them."""
        from raterscope.app.window.import_reading import Batch

        self._read(Batch(tuple(paths), self._study()))

    def _study(self) -> Path | None:
        contents = self._document.contents
        return None if contents is None or self._document.opening else contents.path

    def _on_replaced(self) -> None:
        contents = self._document.contents
        created, self._created = self._created, None
        if created is not None and contents is not None and contents.path == created[0]:
            self.message.emit(created[1])
        waiting, self._waiting = self._waiting, []
        for batch, understood in waiting:
            self._confirm(batch, understood)

    def _read(self, batch: Batch) -> None:
        from raterscope.app.study.kinds import question_kinds
        from raterscope.app.window.import_reading import images_at_hand, read_tasks

        contents = self._document.contents
        if contents is None or not any(contents.of(kind) for kind in question_kinds()):
            self._read_beside(images_at_hand(contents), batch)
        else:  # images may show tasks or items that only the study knows
            job = self._document.ask("Looking for tasks", read_tasks)
            job.finished.connect(partial(self._on_tasks, images_at_hand(contents), batch))

    def _on_tasks(self, at_hand: StudyImages, batch: Batch, tasks: tuple[str, ...]) -> None:
        self._read_beside(replace(at_hand, tasks=tasks), batch)

    def _read_beside(self, at_hand: StudyImages, batch: Batch) -> None:
        from raterscope.app.window.import_reading import read_or_ask

        work = partial(read_or_ask, batch, at_hand)
        job = self._jobs.start(f"Reading {_of(batch.paths)}", work, costly=True)
        job.finished.connect(partial(self._on_read, batch))
        job.failed.connect(partial(self._on_failed, batch))

    def _on_failed(self, batch: Batch, reason: str) -> None:
        batch.sources.close()
        self.refused.emit(reason)

    def _on_read(self, batch: Batch, answer: Understood | Question) -> None:
        from raterscope.app.ambiguous_files import UnknownAnnotators
        from raterscope.app.formats import UnknownColumns
        from raterscope.app.formats.volumes.resampling import OtherGrid

        if isinstance(answer, UnknownColumns):
            self._ask_columns(batch, answer)
        elif isinstance(answer, UnknownAnnotators):
            self._ask_annotators(batch, answer)
        elif isinstance(answer, OtherGrid):
            self._ask_resampling(batch, answer)
        elif batch.study is not None and batch.study != self._study():
            self._on_unanswered(f"{batch.study.name} was closed", batch)
        elif self._document.opening:
            self._waiting.append((batch, answer))
        else:
            self._confirm(batch, answer)

    def _confirm(self, batch: Batch, understood: Understood) -> None:
        """Show what was understood, and ask whether to import it."""
        from raterscope.app.window.import_reading import offer_import
        from raterscope.widgets.dialogs.import_preview import ImportDialog

        contents = self._document.contents
        study, target = (understood.study, "") if contents is None else (None, contents.path.name)
        offer = offer_import(understood.readings, understood.preview, study, target)
        dialog = ImportDialog(offer, self._window)
        dialog.accepted.connect(partial(self._on_confirmed, batch, understood, dialog))
        dialog.rejected.connect(partial(self._on_unanswered, "", batch))
        dialog.open()

    def _on_confirmed(self, batch: Batch, understood: Understood, dialog: ImportDialog) -> None:
        from raterscope.app.import_preview import NAME_KINDS, NameChanges
        from raterscope.app.window.import_reading import create_study, store_readings, structure_naming

        understood = replace(understood, study=dialog.study or understood.study)
        if dialog.needs_reading:
            files = [layout.path for layout in understood.preview.layouts]
            mappings = {files[at]: mapping for at, mapping in dialog.mappings.items()}
            naming = structure_naming(dialog.raters.isChecked()) if dialog.offers_raters else None
            reading = replace(batch.reading, structure_naming=naming)
            self._read(replace(batch, mappings={**batch.mappings, **mappings}, reading=reading))
            return
        changes = NameChanges(*map(dialog.new_names, NAME_KINDS))
        title = f"Importing {_of(batch.paths)}"
        readings = replace(understood.readings, programs=frozenset(dialog.programs))
        work = partial(
            store_readings, readings, changes, batch.may_resample, dialog.extent, dialog.class_order
        )
        contents = self._document.contents
        if contents is None:
            creating = partial(create_study, understood.study, work)
            job = self._jobs.start(title, creating, costly=True)
            job.finished.connect(partial(self._on_created, batch, understood.study))
            job.failed.connect(partial(self._on_not_created, batch, understood))
        else:
            batch.sources.close()
            words = f"the import of {_of(batch.paths)}"
            self._document.keep(
                Unsaved(contents.path, title, words, work, self._on_stored), quiet=False, costly=True
            )

    def _on_created(self, batch: Batch, study: Path, sentences: Sequence[str]) -> None:
        batch.sources.close()
        self._created = study.absolute(), " ".join(sentences)
        self._document.open(study)

    def _on_not_created(self, batch: Batch, understood: Understood, reason: str) -> None:
        """Show the dialog again, so that another file or other names can be chosen."""
        self.refused.emit(reason)
        QTimer.singleShot(0, self, partial(self._confirm, batch, understood))

    def _on_stored(self, sentences: Sequence[str]) -> None:
        self.message.emit(" ".join(sentences))

    def _ask_columns(self, batch: Batch, unknown: UnknownColumns) -> None:
        from raterscope.app.window.import_reading import table_kinds
        from raterscope.widgets.dialogs.import_dialogs import ColumnMappingDialog

        file = unknown.file
        assert file is not None
        kinds, chosen = table_kinds(unknown)
        dialog = ColumnMappingDialog(
            unknown.header, unknown.rows, kinds, chosen, file.name, parent=self._window
        )
        dialog.accepted.connect(partial(self._on_mapped, batch, file, dialog))
        dialog.rejected.connect(
            partial(self._on_unanswered, f"the columns of {file.name} were not assigned", batch)
        )
        dialog.open()

    def _on_mapped(self, batch: Batch, file: Path, dialog: ColumnMappingDialog) -> None:
        mapping = dict.fromkeys(dialog.header, "ignore") | dialog.mapping
        self._read(replace(batch, mappings={**batch.mappings, file: mapping}))

    def _ask_annotators(self, batch: Batch, unknown: UnknownAnnotators) -> None:
        from raterscope.app.window.import_reading import annotator_by_pattern
        from raterscope.widgets.dialogs.import_dialogs import AnnotatorNamesDialog

        names = [plain(file.name, 200) for file in unknown.files]
        guess = [unknown.guess[file] for file in unknown.files]
        left_here = [file in unknown.detections for file in unknown.files]
        dialog = AnnotatorNamesDialog(
            names,
            guess,
            partial(annotator_by_pattern, unknown.files),
            detections=left_here,
            parent=self._window,
        )
        dialog.accepted.connect(partial(self._on_named, batch, unknown, dialog))
        problem = f"no annotator was named for {plain(unknown.files[0].name)}"
        dialog.rejected.connect(partial(self._on_unanswered, problem, batch))
        dialog.open()

    def _on_named(self, batch: Batch, unknown: UnknownAnnotators, dialog: AnnotatorNamesDialog) -> None:
        from raterscope.app.ambiguous_files import TRUTH_WORD

        pairs = zip(unknown.files, dialog.names, strict=True)
        names = {file: TRUTH_WORD if name is None else name for file, name in pairs}
        by_hand = {**batch.reading.by_hand, **names}
        reading = replace(batch.reading, naming=dialog.pattern or batch.reading.naming, by_hand=by_hand)
        self._read(replace(batch, reading=reading))

    def _ask_resampling(self, batch: Batch, other: OtherGrid) -> None:
        if not other.resamplable:
            batch.sources.close()
            self.refused.emit(str(other))
            return
        ask(
            self._window,
            "Masks on another grid",
            str(other),
            "Masks can be resampled to the grid of their image. Edges may shift slightly.",
            "Resample",
            "Cancel",
            partial(self._read, replace(batch, may_resample=True)),
            partial(self._on_unanswered, "the masks were drawn on another grid", batch),
        )

    def _on_unanswered(self, problem: str, batch: Batch | None = None) -> None:
        if batch is not None:
            batch.sources.close()
        self.message.emit(f"Nothing was imported: {problem}." if problem else "Nothing was imported.")


def _of(paths: Sequence[Path]) -> str:
    return plain(paths[0].name) if len(paths) == 1 else f"{len(paths):,} files"
