"""Hierarchy of classes whose names are paths, such as "bird/owl/tawny", and their order by confusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from raterscope.algorithms.labels.data import ClassArray, FloatArray

SEPARATOR = "/"


@dataclass(frozen=True, eq=False)
class ClassTree:
    """Classes as leaves of a tree."""

    paths: tuple[tuple[str, ...], ...]  # tuple of J tuples of str: the parts of each class's name
    parents: tuple[str, ...]  # (P,): the first parts, in the order of the classes
    parent: NDArray[np.int64]  # (J,): parent of each class

    def nodes_above(self, index: int) -> tuple[str, ...]:
        """Return the names of the nodes with several classes above a class, the nearest first.

        Examples
        --------
        >>> class_tree(("bird/owl/tawny", "bird/owl/barn", "bird/crow", "fish")).nodes_above(0)
        ('bird/owl', 'bird')
        """
        path = self.paths[index]
        starts = (path[:end] for end in range(len(path) - 1, 0, -1))
        return tuple(SEPARATOR.join(start) for start in starts if self._sizes[start] > 1)

    def below(self, node: str) -> list[int]:
        """List the classes below a node.

        Examples
        --------
        >>> class_tree(("bird/owl/tawny", "bird/owl/barn", "bird/crow", "fish")).below("bird/owl")
        [0, 1]
        """
        start = tuple(node.split(SEPARATOR))
        return [index for index, path in enumerate(self.paths) if path[: len(start)] == start]

    @cached_property
    def _sizes(self) -> Counter[tuple[str, ...]]:
        return Counter(path[:end] for path in self.paths for end in range(1, len(path) + 1))

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes with several classes: the parents for which a task can be decided."""
        names = (name for index in range(len(self.paths)) for name in self.nodes_above(index))
        classes = {SEPARATOR.join(path) for path in self.paths}
        return tuple(name for name in dict.fromkeys(names) if name not in classes)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum values of classes, (..., J), over the children of each parent, (..., P)."""
        children = (self.parent[:, None] == np.arange(len(self.parents))).astype(np.float64)
        return np.asarray(values @ children)


@lru_cache(maxsize=8)
def class_tree(classes: tuple[str, ...]) -> ClassTree | None:
    """Read the hierarchy from the names of classes; None if few are paths, or none share a parent.

    Examples
    --------
    >>> tree = class_tree(("bird/owl", "bird/crow", "fish/cod"))
    >>> tree.parents, tree.sums(np.array([0.5, 0.25, 0.25])).tolist()
    (('bird', 'fish'), [0.75, 0.25])
    """
    paths = tuple(tuple(part.strip() for part in name.split(SEPARATOR)) for name in classes)
    if 2 * sum(len(path) > 1 and all(path) for path in paths) < len(paths):
        return None
    index: dict[str, int] = {}
    parent = np.array([index.setdefault(path[0], len(index)) for path in paths])
    return ClassTree(paths, tuple(index), parent) if 1 < len(index) < len(paths) else None


@dataclass(frozen=True)
class TreeLine:
    """A line of an unfolded tree."""

    path: tuple[str, ...]  # of the node; the whole name of a class
    index: int  # class, -1 for a node with several
    children: tuple[int, ...] = ()  # classes below a node


def unfolded_lines(
    tree: ClassTree, order: Sequence[int], shares: FloatArray, unfolded: frozenset[tuple[str, ...]]
) -> list[TreeLine]:
    """List nodes and classes, largest sums first, and the content of unfolded nodes.

    `order`: (J,), order of the classes within a node. `shares`: (J,). `unfolded`: paths of unfolded nodes.
    """

    def visit(classes: list[int], depth: int) -> list[TreeLine]:
        nodes: dict[tuple[str, ...], list[int]] = {}
        for index in classes:
            nodes.setdefault(tree.paths[index][: depth + 1], []).append(index)
        lines = []
        for path, children in sorted(nodes.items(), key=lambda node: -float(shares[node[1]].sum())):
            if len(children) == 1:
                lines.append(TreeLine(tree.paths[children[0]], children[0]))
                continue
            lines.append(TreeLine(path, -1, tuple(children)))
            if path in unfolded:
                same = [index for index in children if tree.paths[index] == path]
                lines += [TreeLine(path, index) for index in same]
                lines += visit([index for index in children if index not in same], depth + 1)
        return lines

    return visit(list(order), 0)


_OPTIMAL = 300
"""Maximum number of classes for optimal leaf ordering, which takes cubic time."""


def similar_order(rates: FloatArray, meaning: ClassArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order classes and answers so that classes often confused are neighbours (average linkage).

    `rates`: (J, L), probability of each answer, given the class. `meaning`: (L,), class that each answer
    represents, negative for none. The results are the order of the classes, (J,), and of the answers, (L,),
    in the order of their classes; answers without a class are last.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    many = len(rates)
    between = np.zeros((many, many))
    for output in np.flatnonzero(meaning >= 0).tolist():
        between[:, meaning[output]] += rates[:, output]
    between = between + between.T
    np.fill_diagonal(between, 0.0)
    order = np.arange(many)
    if many > 2:
        distance = 1.0 - between / max(float(between.max()), 1e-300)
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=many <= _OPTIMAL)
        order = leaves_list(tree).astype(np.int64)
    rank = np.empty(many + 1, dtype=np.int64)
    rank[order], rank[-1] = np.arange(many), many
    return order, np.argsort(rank[np.where(meaning < 0, many, meaning)], kind="stable")
