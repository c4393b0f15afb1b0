"""Paired comparisons by annotators: their position biases, and the ranking corrected for these.

One source is cited throughout, equations, sections and tables by their own numbers: the position bias paper
[xu2016]_. Docstrings state differences from it, with the reasons.

References
----------
.. [xu2016] Q. Xu, J. Xiong, X. Cao and Y. Yao, "False discovery rate control and statistical quality
   assessment of annotators in crowdsourced ranking", Proceedings of the 33rd International Conference on
   Machine Learning, PMLR 48 (2016), doi:10.48550/arXiv.1605.05860.
"""

from raterscope.algorithms.pairs.data import PairFusion, Pairs, PairsError

__all__ = ["PairFusion", "Pairs", "PairsError"]
