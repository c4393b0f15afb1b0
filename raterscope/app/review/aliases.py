"""Names of one annotator that the expert joined, and the name that stands for them on an item.

Joined names are one annotator in tables over several items, and in fusions from then on: two names of one
person are not two independent annotators. The stored annotations keep the names under which they came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from raterscope.app.review.decision import Decision

Aliases = Mapping[str, str]
"""The main name of each other name of an annotator."""


def read_aliases(decisions: Sequence[Decision], dead: Collection[int] = ()) -> dict[str, str]:
    """Return the main name of each joined name, in the order in which they were joined.

    `dead`: collection of int, decisions that were undone.

    Examples
    --------
    >>> join = Decision(verb="join", id=1, annotators=("Anna K.", "anna", "u42"))
    >>> read_aliases([join])
    {'anna': 'Anna K.', 'u42': 'Anna K.'}
    >>> read_aliases([join, Decision(verb="separate", id=2, annotators=("u42",))])
    {'anna': 'Anna K.'}
    """
    groups: list[list[str]] = []
    for decision in decisions:
        if decision.verb not in ("join", "separate") or decision.id in dead:
            continue
        names = list(dict.fromkeys(decision.annotators))
        touched = [group for group in groups if not set(names).isdisjoint(group)]
        groups = [group for group in groups if group not in touched]
        if decision.verb == "join":
            groups.append(list(dict.fromkeys([*names, *(name for group in touched for name in group)])))
        else:
            left = [[name for name in group if name not in names] for group in touched]
            groups += [group for group in left if len(group) > 1]
    return {name: group[0] for group in groups for name in group[1:]}


def group_of(name: str, aliases: Aliases) -> tuple[str, ...]:
    """Return all names of an annotator, the main name first.

    Examples
    --------
    >>> group_of("u42", {"anna": "Anna K.", "u42": "Anna K."})
    ('Anna K.', 'anna', 'u42')
    """
    main = aliases.get(name, name)
    return (main, *(alias for alias, of in aliases.items() if of == main))


def groups(aliases: Aliases) -> dict[str, tuple[str, ...]]:
    """Return all names of each joined annotator, by the main name."""
    names_of: dict[str, list[str]] = {}
    for alias, main in aliases.items():
        names_of.setdefault(main, [main]).append(alias)
    return {main: tuple(names) for main, names in names_of.items()}


def all_names(names: Iterable[str], aliases: Aliases) -> tuple[str, ...]:
    """Return names with all other names of the same annotators."""
    if not aliases:
        return tuple(dict.fromkeys(names))
    by_main = groups(aliases)
    mains = (aliases.get(name, name) for name in names)
    return tuple(dict.fromkeys(name for main in mains for name in by_main.get(main, (main,))))


def standing_names(present: Iterable[str], aliases: Aliases) -> dict[str, str]:
    """Return which name stands for each other name of an annotator on an item.

    It is the first of the joined names that marked the item: the main name if it did.

    `present`: the names that marked the item.

    Examples
    --------
    >>> standing_names(["kim", "u42", "anna"], {"anna": "Anna K.", "u42": "Anna K."})
    {'u42': 'anna'}
    """
    if not aliases:
        return {}
    there = set(present)
    standing = {}
    for names in groups(aliases).values():
        marked = [name for name in names if name in there]
        standing.update(dict.fromkeys(marked[1:], marked[0] if marked else ""))
    return standing
