"""Masks of several raters of one image or volume, fused into a consensus with its doubt.

One source is cited throughout, equations, sections and tables by their own numbers: the robust fusion paper,
B. Audelan, D. Hamzaoui, S. Montagne, R. Renard-Penna and H. Delingette, "Robust Bayesian fusion of continuous
segmentation maps", Medical Image Analysis 78 (2022) 102398. Where what is done departs from it, the docstring
says how and why.

Importing this package loads neither numba nor scikit-learn; running an algorithm does.
"""
