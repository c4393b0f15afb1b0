"""New names of structures and classes, and names of one annotator that the expert joined.

Stored annotations keep their original names. Annotations that are read from the study have the new names, and
names that became one name are one structure or class. Joined names are one annotator in tables over several
items, and in fusions from then on: two names of one person are not two independent annotators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from raterscope.app.review.decision import Decision
from raterscope.app.review.subjects import NameSubject

Names = Mapping[str, str]
"""The present name of each renamed structure or class, by its name in the files."""


def read_names(
    decisions: Iterable[Decision], dead: Collection[int] = ()
) -> tuple[dict[str, dict[str, str]], frozenset[int]]:
    """Return the present name of each renamed structure and class by kind, and the mergers in effect.

    `dead`: decisions that were undone.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
    >>> first = NameSubject(of="masks", name="GTVp", new="GTV")
    >>> second = NameSubject(of="masks", name="GTV", new="tumour")
    >>> journal = [Decision(verb="merge", id=1, subject=first), Decision(verb="rename", id=2, subject=second)]
    >>> read_names(journal)
    ({'masks': {'GTVp': 'tumour', 'GTV': 'tumour'}}, frozenset({1}))
    """
    names: dict[str, dict[str, str]] = {}
    merged = set()
    for decision in decisions:
        subject = decision.subject
        if not isinstance(subject, NameSubject) or decision.id in dead:
            continue
        of_kind = names.setdefault(subject.of, {})
        of_kind.setdefault(subject.name, subject.name)
        names[subject.of] = {
            original: subject.new if name == subject.name else name for original, name in of_kind.items()
        }
        if decision.verb == "merge":
            merged.add(decision.id)
    renamed = {of: {name: new for name, new in each.items() if name != new} for of, each in names.items()}
    return {of: each for of, each in renamed.items() if each}, frozenset(merged)


Aliases = Mapping[str, str]
"""The main name of each other name of an annotator."""


def read_aliases(decisions: Sequence[Decision], dead: Collection[int] = ()) -> dict[str, str]:
    """Return the main name of each joined name, in the order in which they were joined.

    `dead`: decisions that were undone.

    Examples
    --------
    >>> from raterscope.app.review.decision import Decision
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

    It is the first of the joined names that marked the item; the main name comes first.

    `present`: the names that marked the item.

    Examples
    --------
    >>> standing_names(["kim", "u42", "anna"], {"anna": "Anna K.", "u42": "Anna K."})
    {'u42': 'anna'}
    """
    if not aliases:
        return {}
    known = set(present)
    standing = {}
    for names in groups(aliases).values():
        marked = [name for name in names if name in known]
        standing.update(dict.fromkeys(marked[1:], marked[0] if marked else ""))
    return standing
