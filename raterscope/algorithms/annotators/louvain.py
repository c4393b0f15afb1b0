"""How well a partition of a network holds together (modularity), and the one that Louvain's method finds.

References
----------
.. [girvan2002] M. Girvan and M. E. J. Newman, "Community structure in social and biological networks",
   Proceedings of the National Academy of Sciences 99 (2002) 7821-7826, doi:10.1073/pnas.122653799.
.. [blondel2008] V. D. Blondel, J.-L. Guillaume, R. Lambiotte and E. Lefebvre, "Fast unfolding of
   communities in large networks", Journal of Statistical Mechanics 2008 (2008) P10008,
   doi:10.1088/1742-5468/2008/10/P10008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["between_communities", "louvain", "modularity"]


def modularity(links: NDArray[np.float64]) -> float:
    """Give the share of links within communities, less what chance gives to annotators of so many links.

    Parameters
    ----------
    links : (C, C) float64
        The sum of the links from each community to each, both directions counted: `between_communities`.

    Returns
    -------
    float
        -1 to 1; 0 for a single community and for a network without links.

    Examples
    --------
    >>> import numpy as np
    >>> modularity(np.array([[6.0, 0.0], [0.0, 6.0]]))
    0.5
    """
    total = float(links.sum())
    if total <= 0:
        return 0.0
    ends = links.sum(axis=1) / total
    return float(np.trace(links) / total - ends @ ends)


def between_communities(network: Any, community: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Add up the links between communities, (C, C); an annotator's link to itself is none.

    Parameters
    ----------
    network : (M, M), dense or a SciPy sparse array
        Symmetric and not negative.
    community : (M,) int
    count : int
        C.
    """
    member = np.zeros((len(community), count), dtype=np.float32)
    member[np.arange(len(community)), community] = 1.0
    links = member.T.astype(np.float64) @ np.asarray(network @ member, dtype=np.float64)
    itself = np.bincount(community, np.asarray(network.diagonal(), dtype=np.float64), minlength=count)
    return np.asarray(links - np.diag(itself))


def louvain(network: Any, seed: int = 0) -> NDArray[np.int64]:
    """Give the community of every annotator, (M,), numbered from 0, by scikit-network's Louvain.

    Parameters
    ----------
    network : (M, M) float, dense or a SciPy sparse array
        Symmetric and not negative; an entry of the diagonal is a link of an annotator to itself.
    seed : int
        Of the order in which annotators are moved; the same network and seed give the same communities.

    Examples
    --------
    >>> import numpy as np
    >>> network = np.kron(np.eye(2), np.ones((3, 3)))
    >>> louvain(network)
    array([0, 0, 0, 1, 1, 1])
    """
    from scipy.sparse import csr_matrix

    if not network.shape[0]:
        return np.empty(0, dtype=np.int64)
    links = csr_matrix(network, dtype=np.float64)
    if links.nnz == 0:
        return np.arange(network.shape[0])
    from sknetwork.clustering import Louvain

    found = Louvain(random_state=seed, shuffle_nodes=True).fit_predict(links)
    return np.asarray(found, dtype=np.int64)
