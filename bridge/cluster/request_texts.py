"""What jobs ask for in Slurm's words: features, licences and dependencies, parsed to plain data.

Each function raises ValueError for a text that is none.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, cast

#: One of these sets of features must be a subset of a node's.
FeatureChoice = tuple[frozenset[str], ...]
DependencyKind = Literal["after", "afterok", "afterany", "afternotok", "singleton"]

_FEATURE = re.compile(r"[\w.:+/-]+")
_LICENSE = re.compile(r"(?P<name>[^\s:=,]+)(?:[:=](?P<count>\d{1,9}))?", re.ASCII)
_DEPENDENCY = re.compile(r"(?P<kind>after(?:ok|any|notok)?):(?P<ids>[^,?\s]+)")
_PARENT = re.compile(r"(?P<id>[^:+\s]+)(?:\+(?P<minutes>\d{1,9}))?", re.ASCII)
#: A choice of features has at most so many alternatives.
_MOST = 1_000


def parse_constraints(text: str) -> FeatureChoice:
    """Return the alternatives of ``a&b|c``, ``[a|b]``, ``(a|b)&c``; a count ``a*2`` is left out.

    An empty text has one alternative, which asks for nothing. In ``[a|b]`` all nodes of a job have the same
    feature in Slurm; here each has one of them. ValueError: it is none of these.
    """
    words = re.findall(r"[\[\]()&|,]|[^\[\]()&|,\s]+", text)
    if not words:
        return (frozenset(),)
    choice, rest = _alternatives(words)
    if rest:
        raise ValueError(f"{text[:40]!r} is no choice of features")
    return tuple(dict.fromkeys(choice))


def _alternatives(words: list[str]) -> tuple[list[frozenset[str]], list[str]]:
    """Return what a list of words that is joined by ``|`` asks for, and the words behind it."""
    choice, rest = _both(words)
    while rest and rest[0] == "|":
        more, rest = _both(rest[1:])
        choice += more
    return choice, rest


def _both(words: list[str]) -> tuple[list[frozenset[str]], list[str]]:
    choice, rest = _one(words)
    while rest and rest[0] in "&,":
        more, rest = _one(rest[1:])
        choice = [a | b for a in choice for b in more]
        if len(choice) > _MOST:
            raise ValueError(f"a choice of features has more than {_MOST} alternatives")
    return choice, rest


def _one(words: list[str]) -> tuple[list[frozenset[str]], list[str]]:
    if not words:
        raise ValueError("a choice of features ends too early")
    head, rest = words[0], words[1:]
    if head in "[(":
        choice, rest = _alternatives(rest)
        if not rest or rest[0] != {"[": "]", "(": ")"}[head]:
            raise ValueError("a bracket of a choice of features is not closed")
        rest = rest[1:]
        if rest and re.fullmatch(r"\*\d+", rest[0]):
            rest = rest[1:]
        return choice, rest
    name = re.sub(r"\*\d+$", "", head)
    if not _FEATURE.fullmatch(name):
        raise ValueError(f"{head[:40]!r} is no feature")
    return [frozenset((name,))], rest


def admits(choice: FeatureChoice, features: Collection[str]) -> bool:
    """Tell whether a node with these features is one of those asked for."""
    return any(needed.issubset(features) for needed in choice)


def parse_licenses(text: str) -> dict[str, int]:
    """Return name -> number of ``matlab:2,ansys``; ``|`` between them (any of them) is a ValueError."""
    counts: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        match = _LICENSE.fullmatch(word.removeprefix("license/"))
        if not match or "|" in word:
            raise ValueError(f"{word[:40]!r} is no licence with its number")
        name = match["name"].partition("@")[0]
        counts[name] = counts.get(name, 0) + int(match["count"] or 1)
    return {name: count for name, count in counts.items() if count}


@dataclass(frozen=True)
class Dependency:
    """One condition on another job.

    Attributes:
        kind: after (started or cancelled), afterok, afternotok, afterany (ended), or singleton.
        job: the other job's id, as in the log; empty for singleton.
        delay: s after its start, of `after`.
        array: `job` is the number of an array (`array_id`), written ``12_*``: all of its tasks.
    """

    kind: DependencyKind
    job: str = ""
    delay: int = 0
    array: bool = False


def parse_dependency(text: str) -> tuple[tuple[Dependency, ...], bool]:
    """Return the conditions of ``afterok:12:13,singleton``, and whether one is enough (``?`` for ``,``).

    ``afterok:12_*`` stands for all tasks of the array 12. ValueError: it is none, or has both separators.
    """
    if "," in text and "?" in text:
        raise ValueError("a dependency has either ',' or '?'")
    conditions: list[Dependency] = []
    for word in filter(None, (part.strip() for part in re.split("[,?]", text))):
        word = re.sub(r"\(\w+\)$", "", word)  # noqa: PLW2901 - squeue's (unfulfilled)
        if word == "singleton":
            conditions.append(Dependency("singleton"))
            continue
        match = _DEPENDENCY.fullmatch(word)
        if not match:
            raise ValueError(
                f"{word[:40]!r} is no dependency (after, afterok, afterany, afternotok, singleton)"
            )
        kind = cast("DependencyKind", match["kind"])
        for parent in match["ids"].split(":"):
            one = _PARENT.fullmatch(parent)
            if not one or (one["minutes"] and kind != "after"):
                raise ValueError(f"{parent[:40]!r} is no job to wait for")
            whole = one["id"].endswith("_*")
            delay = 60 * int(one["minutes"] or 0)
            conditions.append(Dependency(kind, one["id"].removesuffix("_*"), delay, whole))
    return tuple(conditions), "?" in text
