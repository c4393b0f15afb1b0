"""Simulated data in files: the papers' set-ups and samples of curation, with the truth beside the data.

`setups` describes the set-ups and their parameters, `simulate` draws and writes them.
"""
