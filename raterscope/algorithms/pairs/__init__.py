"""Pairs that annotators compared: who clicks one side, and the ranking without it.

One source is cited throughout, equations, sections and tables by their own numbers: the position bias paper
[xu2016]_. Where what is done departs from it, the docstring says how and
why.

References
----------
.. [xu2016] Q. Xu, J. Xiong, X. Cao and Y. Yao, "False discovery rate control and statistical quality
   assessment of annotators in crowdsourced ranking", Proceedings of the 33rd International Conference on
   Machine Learning, PMLR 48 (2016), doi:10.48550/arXiv.1605.05860.
"""

from raterscope.algorithms.pairs.data import PairFusion, Pairs, PairsError

__all__ = ["PairFusion", "Pairs", "PairsError"]
