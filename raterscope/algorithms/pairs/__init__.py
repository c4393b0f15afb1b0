"""Pairs that annotators compared: who clicks one side, and the ranking without it.

One source is cited throughout, equations, sections and tables by their own numbers: the position bias paper,
Q. Xu, J. Xiong, X. Cao and Y. Yao, "False Discovery Rate Control and Statistical Quality Assessment of
Annotators in Crowdsourced Ranking", ICML 2016. Where what is done departs from it, the docstring says how and
why.
"""

from raterscope.algorithms.pairs.data import PairFusion, Pairs, PairsError

__all__ = ["PairFusion", "Pairs", "PairsError"]
