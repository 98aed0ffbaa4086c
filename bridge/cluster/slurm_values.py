"""What Slurm writes in one cell: times, limits, amounts of memory, trackable resources, lists of nodes."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import TypeVar

#: What stands for a time that there is none of (yet).
NO_TIME = frozenset({"", "unknown", "none", "n/a", "0"})
#: A list of nodes names at most so many.
MOST_NODES = 1_000_000
#: Amounts are whole numbers of 64 bits.
MOST = 2**63 - 1
#: The beginning of the year 3000, s since 1970: what is later is counted in smaller units.
LAST_INSTANT = 32_503_680_000
#: No duration that Slurm writes is longer, s: its numbers of seconds and minutes are of 32 bits, too.
LONGEST_DURATION = 60 * 2**32

Seconds = TypeVar("Seconds", int, float)

_CLOCK = re.compile(r"(?:(?P<hours>\d{1,9}):)?(?P<minutes>\d{1,9}):(?P<seconds>\d{1,2})(?:\.\d+)?")
#: With days the first number after them is hours, however many follow.
_DAYS = re.compile(
    r"(?P<days>\d{1,9})-(?P<hours>\d{1,9})(?::(?P<minutes>\d{1,9}))?(?::(?P<seconds>\d{1,2})(?:\.\d+)?)?"
)
_AMOUNT = re.compile(r"(?P<number>\d{1,18}(?:\.\d{1,18})?)(?P<unit>[KMGTPE]?)(?P<per>[nc]?)", re.IGNORECASE)
_UNITS = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}
#: Resources in bytes, and resources that are no demand of a job.
_BYTES = re.compile(r"mem|bb/.*")
_NOT_DEMANDED = re.compile(r"billing|energy|vmem|pages|fs/.*|ic/.*|usage/.*")
_WORDS = {"cpu": "cores", "mem": "main_memory", "node": "nodes", "gres/gpu": "gpus"}
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def instant(text: str, zone: tzinfo) -> float | None:
    """Return ``2026-01-31T10:00:00`` or seconds as seconds since 1970 (else ValueError), None if none.

    `zone`: of dates. Where a clock is set back and a time stands for two instants, the first is taken.
    """
    if text.lower() in NO_TIME:
        return None
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return in_calendar(float(text))
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text, re.ASCII):
        raise ValueError(f"{text[:40]!r} is no time")
    return in_calendar(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


def in_calendar(seconds: float) -> float:
    """Return seconds since 1970 that lie before the year 3000, else ValueError."""
    if not 0 <= seconds <= LAST_INSTANT:
        raise ValueError("a time is not in the years 1970 to 2999: are its seconds milli- or microseconds?")
    return seconds


def is_ambiguous(seconds: float, zone: tzinfo) -> bool:
    """Tell whether the local time of an instant comes twice, because the clock is set back there."""
    local = datetime.fromtimestamp(seconds, UTC).astimezone(zone).replace(tzinfo=None)
    return local.replace(tzinfo=zone, fold=0).utcoffset() != local.replace(tzinfo=zone, fold=1).utcoffset()


def duration(text: str) -> int:
    """Return ``D-HH[:MM[:SS]]``, ``[HH:]MM:SS`` or plain seconds, in seconds; ValueError: none of these."""
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return bounded(int(text))
    match = _DAYS.fullmatch(text) or _CLOCK.fullmatch(text)
    if not match:
        raise ValueError(f"{text[:40]!r} is no duration")
    part = {"days": 0, "hours": 0} | {name: int(value or 0) for name, value in match.groupdict().items()}
    hours = 24 * part["days"] + part["hours"]
    return bounded(3600 * hours + 60 * (part["minutes"] or 0) + (part["seconds"] or 0))


def bounded(seconds: Seconds) -> Seconds:
    """Return a duration that Slurm can write, else ValueError."""
    if not 0 <= seconds <= LONGEST_DURATION:
        raise ValueError(f"a duration is not within {LONGEST_DURATION:,} s")
    return seconds


def limit(text: str, *, minutes: bool) -> float | None:
    """Return a time limit in seconds (else ValueError): infinite for UNLIMITED, None: the partition's counts.

    A whole number is minutes in ``TimelimitRaw`` (`minutes`), else seconds.
    """
    word = text.upper()
    if word in ("UNLIMITED", "INFINITE", "-1"):
        return math.inf
    if word in ("", "PARTITION_LIMIT", "NONE", "N/A", "INVALID"):
        return None
    whole = re.fullmatch(r"\d{1,18}", text, re.ASCII)
    return bounded(int(text) * 60) if whole and minutes else duration(text)


def amount(text: str, nodes: int, cores: int) -> int:
    """Return an amount of memory in bytes: ``4G`` for the job, ``4Gn`` a node, ``4000Mc`` a core.

    Without a unit it is megabytes, as Slurm counts. Raises ValueError: it is no amount, or beyond 64 bits.
    """
    match = _AMOUNT.fullmatch(text)
    if not match:
        raise ValueError(f"{text[:40]!r} is no amount of memory")
    times = {"n": nodes, "c": cores}.get(match["per"].lower(), 1)
    return _fitting(_scaled(match["number"], _UNITS[match["unit"].upper()]) * max(times, 1), "memory")


def _scaled(number: str, scale: int) -> int:
    return int(number) * scale if number.isdecimal() else round(float(number) * scale)


def _fitting(number: int, name: str) -> int:
    """Return an amount of a resource that fits 64 bits, else ValueError."""
    if number > MOST:
        raise ValueError(f"an amount of {name} does not fit 64 bits")
    return number


def resource(name: str) -> str:
    """Return a trackable resource's name in workloads; empty if no job demands it.

    ``cpu`` → ``cores``, ``mem`` → ``main_memory`` (bytes), ``gres/gpu:a100`` → ``gpus_a100``, ``bb/cray`` →
    ``burst_buffer_cray`` (bytes), ``license/x`` → ``license_x``.
    """
    if _NOT_DEMANDED.fullmatch(name):
        return ""
    plain, _, kind = name.partition(":")
    word = _WORDS.get(plain, plain.replace("bb/", "burst_buffer/"))
    return re.sub(r"\W", "_", f"{word}_{kind}" if kind else word)


def resources(text: str) -> dict[str, int]:
    """Return the demands of ``cpu=8,mem=100M,gres/gpu=2`` by the workload's names; else ValueError."""
    amounts: dict[str, int] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"{pair[:40]!r} is no resource with its amount")
        called = resource(name)
        if called and _BYTES.fullmatch(name):
            amounts[called] = amount(value, 1, 1)
        elif called:
            number = _AMOUNT.fullmatch(value)
            if not number or number["per"]:
                raise ValueError(f"{value[:40]!r} is no amount of {name}")
            scale = _UNITS[number["unit"].upper()] if number["unit"] else 1
            amounts[called] = _fitting(_scaled(number["number"], scale), name)
    if "gpus" not in amounts and (kinds := [n for k, n in amounts.items() if k.startswith("gpus_")]):
        amounts["gpus"] = _fitting(sum(kinds), "gpus")
    return amounts


#: What accounting of Slurm 19 and older calls the plugin of GPUs, where the name is not known to it.
_GPU_PLUGIN = "7696487"


def generic(text: str, times: int = 1) -> dict[str, int]:
    """Return generic resources: ``gpu:a100:4(S:0-1),fake:2`` → gpus, gpus_a100, gres_fake; else ValueError.

    `times`: nodes, where the text tells of one node.
    """
    counts: dict[str, int] = {}
    plain = "" if text.upper() in ("N/A", "NONE") else re.sub(r"\([^()]*\)", "", text)
    for word in filter(None, plain.split(",")):
        name, *kind = re.sub(r"^(?:PER_NODE:)?(?:gres[:/])?", "", word).split(":")
        count = kind.pop() if kind and re.fullmatch(r"\d+[KMGTP]?", kind[-1], re.ASCII) else "1"
        if not name or (name == "0" and not kind):
            continue
        tres = f"gres/{'gpu' if name == _GPU_PLUGIN else name}" + (f":{kind[0]}" if kind else "")
        for called, number in resources(f"{tres}={count}").items():
            counts[called] = _fitting(counts.get(called, 0) + number * times, tres)
    return counts


def demands(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the demands of Slurm's own counts by resource (memory in megabytes), by the workload's names."""
    return resources(
        ",".join(f"{name}={count}{'M' * bool(_BYTES.fullmatch(name))}" for name, count in counts.items())
    )


def node_names(text: str) -> Iterator[str]:
    """Yield the nodes of ``n[1-3,7],r1i[0-3]n[0-7]``, at most `MOST_NODES`; leading zeros are kept."""
    left = MOST_NODES
    for word in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+|[\[\]]", text):
        if word in "[]" or not _BRACKETS.sub("", word).isprintable():
            raise ValueError(f"{text[:40]!r} is no list of nodes")
        pieces = [_spans(piece) if odd % 2 else [piece] for odd, piece in enumerate(_BRACKETS.split(word))]
        left -= math.prod(sum(1 if isinstance(span, str) else len(span[0]) for span in of) for of in pieces)
        if left < 0:
            raise ValueError(f"{text[:40]!r} names more than {MOST_NODES:,} nodes")
        yield from ("".join(name) for name in itertools.product(*map(_spelt, pieces)))


#: Numbers, and how many digits they have at least.
_Span = tuple[range, int]


def _spans(text: str) -> list[_Span]:
    """Return the numbers of a pair of brackets, ``08-10,12``; ValueError: there are none."""
    spans = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        high = high if dash else low
        digits = low.isdecimal() and high.isdecimal() and max(len(low), len(high)) <= 12
        if not digits or int(low) > int(high):
            raise ValueError(f"{text[:40]!r} is no range of nodes")
        spans.append((range(int(low), int(high) + 1), len(low)))
    return spans


def _spelt(spans: Iterable[_Span | str]) -> Iterator[str]:
    for span in spans:
        if isinstance(span, str):
            yield span
        else:
            yield from (f"{number:0{span[1]}d}" for number in span[0])
