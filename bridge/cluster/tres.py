"""Trackable resources as Slurm's accounting writes them, by the names that limits have here."""

import re

from bridge.cluster import slurm_values as values
from bridge.cluster.imported import ImportNotes

_PLAIN = {"cpu": "cores", "node": "nodes", "gres/gpu": "gpus"}


def amounts_of(text: str, notes: ImportNotes) -> dict[str, int]:
    """Return the amounts of ``cpu=100,mem=1000G,gres/gpu:a100=4``; memory in MiB.

    What no limit here counts is noted. ValueError: it is no list of amounts.
    """
    amounts: dict[str, int] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"{pair[:40]!r} is no resource with its amount")
        if value in ("-1", ""):
            continue
        called = name_of(name)
        if called is None:
            notes.leave(f"limits of {name}")
        elif called == "memory":
            amounts[called] = values.amount(value, 1, 1) >> 20
        elif re.fullmatch(r"\d{1,18}", value, re.ASCII):
            amounts[called] = int(value)
        else:
            raise ValueError(f"{value[:40]!r} is no amount of {name}")
    return amounts


def weights_of(text: str, notes: ImportNotes) -> dict[str, float]:
    """Return the weights of ``CPU=1000,Mem=2000,GRES/gpu=3000``; ValueError: it is no list of them."""
    weights: dict[str, float] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = pair.partition("=")
        if not equals or not re.fullmatch(r"\d{1,12}(\.\d{1,12})?", value, re.ASCII):
            raise ValueError(f"{pair[:40]!r} is no resource with its weight")
        called = name_of(name.lower())
        if called is None:
            notes.leave(f"PriorityWeightTRES of {name}")
        else:
            weights[called] = float(value)
    return weights


def name_of(name: str) -> str | None:
    """Return a trackable resource's name in limits; None: it is not counted."""
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "mem":
        return "memory"
    if match := re.fullmatch(r"gres/gpu:(\w+)", name, re.ASCII):
        return f"gpus_{match[1]}"
    if match := re.fullmatch(r"license/(\S+)", name):
        return f"license_{match[1]}"
    return None
