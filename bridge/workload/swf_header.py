"""The header of a Standard Workload Format file: comment lines of the form ``; Field: text``."""

import re
from collections.abc import Iterable, Mapping

from bridge.errors import BridgeError

#: Labels of the standard (Feitelson, "The Standard Workload Format") and ours for further resources.
LABELS: frozenset[str] = frozenset(
    (
        *("Version", "Computer", "Installation", "Acknowledge", "Information", "Conversion", "Preemption"),
        *("UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime", "MaxJobs", "MaxRecords"),
        *("MaxNodes", "MaxProcs", "MaxRuntime", "MaxMemory", "AllowOveruse", "MaxQueues", "Queues", "Queue"),
        *("MaxPartitions", "Partitions", "Partition", "Note", "Copyright"),
        *("ExtensionFields", "Capacity", "IdlePower"),
    )
)
#: The label under which header text that belongs to no field is kept.
FREE_TEXT = "Comment"

_FIELD = re.compile(r"^;(?P<indent>\s*)(?P<label>[A-Za-z][A-Za-z0-9_]*):(?P<text>.*)$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
#: No machine has more of anything than 19 digits say; longer texts are no numbers that Python would read.
_PAIR = re.compile(r"([A-Za-z_]\w*)=(\d{1,19})", re.ASCII)


def parse_header(lines: Iterable[str]) -> dict[str, str]:
    """Return label -> text of header lines; repeated labels and continued text are joined by newlines.

    Logs continue a field's text on deeper-indented lines, which may look like fields themselves
    (``;   see: http://…``): such a line is a field only if its label is a known one.
    """
    header: dict[str, list[str]] = {}
    label = ""
    for line in lines:
        found = _FIELD.match(line)
        if found and (found["label"] in LABELS or len(found["indent"].expandtabs()) <= 1):
            label = found["label"]
            header.setdefault(label, []).append(found["text"].strip())
        elif text := line.lstrip(";").strip():
            label = label or FREE_TEXT
            header.setdefault(label, []).append(text)
    return {label: "\n".join(texts) for label, texts in header.items()}


def format_header(header: Mapping[str, str]) -> str:
    """Return the header as comment lines, one per line of text, so that `parse_header` gives it back."""
    lines = [
        f"; {label}: {_CONTROL.sub(' ', text)}".rstrip()
        for label, texts in header.items()
        for text in texts.split("\n")
    ]
    return "".join(f"{line}\n" for line in lines)


def first_integer(text: str, where: str = "") -> int | None:
    """Return the first whole number of a header text such as ``1664 (72, 1368, 224)``, if it is positive.

    Raises:
        BridgeError: it is longer than any machine's size.
    """
    found = re.search(r"-?[0-9]+", text)
    if found and len(found[0]) > 19:
        raise BridgeError(
            f"the header gives a machine size of {len(found[0])} digits", where=where, remedy="Mend it."
        )
    return int(found[0]) if found and int(found[0]) > 0 else None


def capacity_of(header: Mapping[str, str], where: str = "") -> dict[str, int]:
    """Return the machine's capacity per resource, ``nodes`` first; empty if the header does not state it.

    ``nodes`` is the first number of MaxProcs, else of MaxNodes: the unit in which jobs ask. Further
    resources come from our own field ``; Capacity: burst_buffer=1000 power=500``.

    Raises:
        BridgeError: an amount is none; `where` is the log, for messages.
    """
    capacity: dict[str, int] = {}
    texts = (header.get(label, "") for label in ("MaxProcs", "MaxNodes"))
    nodes = next(filter(None, (first_integer(text, where) for text in texts)), None)
    if nodes is not None:
        capacity["nodes"] = nodes
    return {**capacity, **parse_capacity(header.get("Capacity", ""), where)}


def idle_power_of(header: Mapping[str, str], where: str = "") -> int:
    """Return what each node draws with or without a job, W, of our field ``; IdlePower: 60``; 0 without it.

    Args:
        header: label -> text.
        where: the log, for messages.

    Raises:
        BridgeError: the field is no whole number.
    """
    text = header.get("IdlePower", "0").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BridgeError(
            f"IdlePower is {text[:40]!r} in the header, which is no whole number of W",
            where=where,
            remedy="Give what an idle node draws in one field of the header, as in IdlePower: 60.",
        )
    return int(text)


def parse_capacity(text: str, where: str = "") -> dict[str, int]:
    """Return resource -> amount of a text such as ``nodes=128 power=5000``.

    Raises:
        BridgeError: a word of the text is no ``resource=amount`` with a whole amount.
    """
    pairs = [(word, _PAIR.fullmatch(word)) for word in text.split()]
    for word, found in pairs:
        if not found:
            raise BridgeError(
                f"{word[:40]!r} does not state a capacity",
                where=where,
                remedy="Write resource=amount, as in nodes=128.",
            )
    return {found[1]: int(found[2]) for _, found in pairs if found}


def with_capacity(header: Mapping[str, str], capacity: Mapping[str, int]) -> dict[str, str]:
    """Return the header, changed no more than needed for it to state this capacity."""
    stated = dict(header)
    extra = {name: amount for name, amount in capacity.items() if name != "nodes"}
    if extra:
        stated["Capacity"] = " ".join(f"{name}={amount}" for name, amount in extra.items())
    else:
        stated.pop("Capacity", None)
    if "nodes" in capacity and capacity_of(stated).get("nodes") != capacity["nodes"]:
        stated["MaxProcs"] = str(capacity["nodes"])
    return stated
