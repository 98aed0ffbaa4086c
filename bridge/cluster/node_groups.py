"""Nodes that were read one by one, put together to groups of equal nodes with short lists of names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from bridge.cluster.description import NodeGroup

_NUMBERED = re.compile(r"(.*?)(\d{1,12})", re.DOTALL)


def group_nodes(nodes: Mapping[str, Mapping[str, Any]]) -> tuple[NodeGroup, ...]:
    """Return groups of nodes that stand together and are equal.

    `nodes`: name -> fields of `NodeGroup`, in order. Groups of equal nodes with others between them stay
    apart, so that each node keeps its index.
    """
    taken: set[str] = set()
    groups = []
    for _, pairs in groupby(nodes.items(), key=lambda pair: dict(pair[1])):
        equal = dict(pairs)
        names = list(equal)
        groups.append(NodeGroup(name=_name(names, taken), nodes=format_nodes(names), **equal[names[0]]))
    return tuple(groups)


def _name(names: Sequence[str], taken: set[str]) -> str:
    """Return a new name for a group: what its nodes' names have in common, with a number if that is taken."""
    match = _NUMBERED.fullmatch(names[0])
    stem = (match[1] if match else names[0]).rstrip("-_.") or "nodes"
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name


def format_nodes(names: Iterable[str]) -> str:
    """Return names as a list of Slurm's, in this order: ``n[0-3,7],gpu1``."""
    words: list[str] = []
    for (prefix, _), several in groupby(map(_split, names), key=lambda parts: (parts[0], parts[1] == "")):
        numbers = [number for _, number in several]
        if not numbers[0]:
            words += [prefix] * len(numbers)
            continue
        spans = _spans(numbers)
        single = len(numbers) == 1
        words.append(prefix + numbers[0] if single else f"{prefix}[{','.join(spans)}]")
    return ",".join(words)


def _split(name: str) -> tuple[str, str]:
    match = _NUMBERED.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def _spans(numbers: Sequence[str]) -> list[str]:
    """Return numbers in brackets: those that follow each other as spans, if they are written alike."""
    spans: list[list[str]] = []
    for number in numbers:
        last = spans[-1] if spans else []
        # a span's numbers have as many digits as its first one at least
        if last and number == f"{int(last[-1]) + 1:0{len(last[0])}d}":
            last.append(number)
        else:
            spans.append([number])
    return [of[0] if len(of) == 1 else f"{of[0]}-{of[-1]}" for of in spans]
