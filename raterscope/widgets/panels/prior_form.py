"""What is taken for granted of every annotator: fields, and the confusion matrix that they mean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from raterscope.algorithms.settings import Settings, SettingsError
from raterscope.widgets import theme
from raterscope.widgets.panels.prior_matrix import PriorMatrix
from raterscope.widgets.panels.settings_form import SettingsForm
from raterscope.widgets.parts import Header, plain_label

__all__ = ["MatrixOf", "PriorForm"]

MatrixOf = Callable[[Settings], NDArray[np.floating]]
"""Gives the pseudo-counts (J, L) that settings mean."""


class PriorForm(QWidget):
    """Fields set the matrix; a cell that is edited sets it by hand, until Reset.

    Parameters
    ----------
    settings_class : type of Settings
        Of the fields.

    Signals
    -------
    changed : object
        The matrix (J, L) edited; None where it is what the settings mean (see `settings`).
    """

    changed = Signal(object)

    def __init__(self, settings_class: type[Settings], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Prior")
        self._matrix_of: MatrixOf | None = None
        self._labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self._by_hand = False
        self.form = SettingsForm(settings_class)
        self.matrix = PriorMatrix()
        self._header = Header("Prior confusion matrix")
        self.reset = QPushButton("Reset")
        theme.set_role(self.reset, "link")
        self.reset.setToolTip("Reset to the matrix given by the fields")
        self._header.row.addWidget(self.reset)
        self._help = plain_label(
            "What every annotator is taken to say before the first vote: the rate, its 95 % interval, and "
            "the votes it counts for. Type in a cell to set its votes.", "hint", wrap=True,
        )  # fmt: skip
        self._nothing = plain_label("Import labels to set the prior for their classes.", "second", wrap=True)
        self._error = plain_label("", "error", wrap=True)
        self._error.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.form)
        column.addWidget(self._header)
        for part in (self._help, self._nothing, self._error):
            column.addWidget(part)
        column.addWidget(self.matrix, 1)
        self.form.changed.connect(self._on_form)
        self.matrix.edited.connect(self._on_edited)
        self.matrix.refused.connect(self._on_refused)
        self.reset.clicked.connect(self._on_reset)
        self._settle()

    def set_labels(
        self,
        classes: tuple[str, ...],
        outputs: tuple[str, ...],
        matrix_of: MatrixOf,
        by_hand: NDArray[np.floating] | None = None,
    ) -> None:
        """Set the prior of other labels, without a signal.

        Parameters
        ----------
        classes, outputs : tuple of J and L str
        matrix_of : callable
        by_hand : (J, L) float, optional
            The matrix that was edited.
        """
        self._labels, self._matrix_of, self._by_hand = (classes, outputs), matrix_of, by_hand is not None
        if by_hand is not None:
            self.matrix.show_counts(classes, outputs, by_hand)
        else:
            self._show_meant()
        self._settle()

    def set_settings(self, settings: Settings) -> None:
        """Fill the fields, without a signal; a matrix edited stays."""
        self.form.set_settings(settings)
        if not self._by_hand:
            self._show_meant()

    def settings(self) -> Settings:
        """Give what the fields say.

        Raises
        ------
        SettingsError
            In the sentence that the form shows too.
        """
        return self.form.settings()

    def by_hand(self) -> NDArray[np.float64] | None:
        """Give the matrix edited, None where it is what the settings mean."""
        return self.matrix.counts() if self._by_hand else None

    def _show_meant(self) -> None:
        if self._matrix_of is None:
            return
        try:
            meant = self._matrix_of(self.form.settings())
        except SettingsError:
            return  # the form says what will not do; the matrix of before stays
        self.matrix.show_counts(*self._labels, meant)

    def _settle(self) -> None:
        known = self._matrix_of is not None
        self._nothing.setVisible(not known)
        self._help.setVisible(known)
        self.matrix.setVisible(known)
        self.form.setEnabled(not self._by_hand)
        self.reset.setVisible(self._by_hand)
        self._header.set_aside("edited" if self._by_hand else "", "accent" if self._by_hand else "small")

    def _on_form(self) -> None:
        self._show_meant()
        if not self.form.error():
            self.changed.emit(None)

    def _on_edited(self) -> None:
        self._by_hand = True
        self._settle()
        self.changed.emit(self.matrix.counts())

    def _on_reset(self) -> None:
        self._by_hand = False
        self._on_refused("")
        self._show_meant()
        self._settle()
        self.changed.emit(None)

    def _on_refused(self, sentence: str) -> None:
        self._error.setText(sentence)
        self._error.setVisible(bool(sentence))
