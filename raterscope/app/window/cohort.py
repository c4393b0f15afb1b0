"""Cases of a gathered cohort that have no results: a bar when the study opens, and their list."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from raterscope.app.document import Document
from raterscope.app.errors import counted
from raterscope.app.study.records import CohortCase
from raterscope.app.window.bars import ActionBar


class CohortBar(ActionBar):
    """Bar under the top bar that counts the cases without results, with buttons to list and dismiss them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", ("List cases\u2026", "Dismiss"), parent)
        self.list_cases, self.dismiss = self.buttons
        self.dismiss.clicked.connect(self.hide)


class CohortCases(QObject):
    """Shows which cases of the open study's cohort have no results."""

    def __init__(self, document: Document, bar: CohortBar, window: QWidget) -> None:
        super().__init__(window)
        self._document, self._bar, self._window = document, bar, window
        bar.list_cases.clicked.connect(self.show_list)
        document.replaced.connect(self._on_replaced)

    @property
    def failed(self) -> list[CohortCase]:
        """Cases without results."""
        contents = self._document.contents
        return [case for case in contents.cohort if not case.is_done] if contents is not None else []

    def show_list(self) -> None:
        """Open the list of the cases without results."""
        from raterscope.widgets.dialogs.output_dialogs import FailedCase, FailedCasesDialog

        cases = [FailedCase(case.case, case.kind, case.status, case.reason) for case in self.failed]
        FailedCasesDialog(self._in_words(), cases, self._window).open()

    def _on_replaced(self) -> None:
        self._bar.setVisible(bool(self.failed))
        self._bar.words.setText(self._in_words())

    def _in_words(self) -> str:
        contents, failed = self._document.contents, len(self.failed)
        if contents is None or not failed:
            return ""
        return (
            f"{failed:,} of {counted(len(contents.cohort), 'case')} {'has' if failed == 1 else 'have'} no "
            "results. To add them, correct their files, then run `raterscope batch` and `raterscope gather` "
            "again."
        )
