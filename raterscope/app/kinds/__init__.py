"""Kinds of annotation: one package each, with one record that the program uses."""
