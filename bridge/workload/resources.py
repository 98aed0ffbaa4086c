"""What jobs demand beside time: the names of resources, their units, and how much of each there is.

A resource is a column of its name, whose capacity the log's header states, or its platform
(`bridge.platform.capacities`). A new one needs no code to be scheduled: its unit, and that its column is a
demand even where no capacity is stated, stand here. Those of nodes stand in `bridge.cluster.description`.
"""

import re
from collections.abc import Mapping

from bridge.base.errors import BridgeError

#: Unit of what there is of a resource, by its name; others have none.
UNITS: Mapping[str, str] = {"nodes": "nodes", "burst_buffer": "bytes", "power": "W"}
#: Columns that are demands by their names: where no capacity is stated, nobody schedules by them.
DEMAND = re.compile(r"gpus(_\w+)?|main_memory|burst_buffer(_\w+)?|license_\w+|gres_\w+")
#: Demands that are of single nodes, where capacities are of the whole machine.
OF_NODES = re.compile(r"gpus(_\w+)?|main_memory|gres_\w+")
#: A machine's size, with or without commas between thousands.
_SIZE = re.compile(r"-?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)")
#: No machine has more of anything than 19 digits say; longer texts are no numbers that Python would read.
_PAIR = re.compile(r"([A-Za-z_]\w*)=(\d{1,19})", re.ASCII)


def capacity_of(header: Mapping[str, str], where: str = "") -> dict[str, int]:
    """Return the machine's capacity per resource, ``nodes`` first; empty if the header does not state it.

    ``nodes`` is the first number of MaxProcs, else of MaxNodes: the unit in which jobs ask. Further resources
    come from our own field ``; Capacity: burst_buffer=1000 power=500``. Raises BridgeError: an amount is
    none; `where` is the log, for messages.
    """
    capacity: dict[str, int] = {}
    for label in ("MaxProcs", "MaxNodes"):
        match = _SIZE.search(header.get(label, ""))
        digits = match[0].replace(",", "") if match else "0"
        if len(digits) > 19:
            what = f"the header gives a machine size of {len(digits)} digits"
            raise BridgeError(what, where=where, remedy="Mend it.")
        if int(digits) > 0:
            capacity["nodes"] = int(digits)
            break
    return {**capacity, **parse_capacity(header.get("Capacity", ""), where)}


def parse_capacity(text: str, where: str = "") -> dict[str, int]:
    """Return resource -> amount of a text such as ``nodes=128 power=5000``; else BridgeError."""
    capacity = {}
    for word in text.split():
        if not (match := _PAIR.fullmatch(word)):
            what = f"{word[:40]!r} does not state a capacity"
            raise BridgeError(what, where=where, remedy="Write resource=amount, as in nodes=128.")
        capacity[match[1]] = int(match[2])
    return capacity


def with_capacity(header: Mapping[str, str], capacity: Mapping[str, int]) -> dict[str, str]:
    """Return the header, changed no more than needed for it to state this capacity."""
    stated = dict(header)
    extra = " ".join(f"{name}={amount}" for name, amount in capacity.items() if name != "nodes")
    if extra:
        stated["Capacity"] = extra
    else:
        stated.pop("Capacity", None)
    if "nodes" in capacity and capacity_of(stated).get("nodes") != capacity["nodes"]:
        stated["MaxProcs"] = str(capacity["nodes"])
    return stated


def idle_power_of(header: Mapping[str, str], where: str = "") -> int:
    """Return what a node always draws, W, of our field ``; IdlePower: 60``; 0 without."""
    text = header.get("IdlePower", "0").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        what = f"IdlePower is {text[:40]!r} in the header, which is no whole number of W"
        remedy = "Give what an idle node draws in one field of the header, as in IdlePower: 60."
        raise BridgeError(what, where=where, remedy=remedy)
    return int(text)
