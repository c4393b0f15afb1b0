"""Kinds of annotation: a package for each, with one record that tells the program all about it."""
