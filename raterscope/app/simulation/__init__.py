"""Simulated data in files: the papers' set-ups and samples of curation, with the truth beside the data.

`setups` describes what can be simulated and with which parameters, `simulate` draws and writes it.
"""
