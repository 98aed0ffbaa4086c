"""What an environment decides behind, and shows, when nothing else is said. Every feature lies in −1 … 1."""

from collections.abc import Mapping

from bridge.encode.encoder import Decision, Encoder
from bridge.fast.setup import Setup

#: Of the row's job: wait, believed length, nodes, its slowdown so far, whether it can start now.
_JOB = {
    "wait": "min(log10(1 + w)/7, 1)",
    "length": "min(log10(1 + t)/7, 1)",
    "nodes": "n/n_max",
    "slowdown": "min(log10(1 + w/max(t, 10))/4, 1)",
    "fits": "fits",
}
#: Of the machine and the queue; `pressure` is how fast the bounded slowdowns of all waiting jobs grow.
_MACHINE = {
    "free": "free/n_max",
    "waiting": "min(log2(1 + waiting)/16, 1)",
    "running": "min(log2(1 + running)/16, 1)",
    "pressure": "min(log10(1 + 10*cost)/4, 1)",
}
#: Of the reservation of the blocked head, and of the head; without one `head nodes` is 0.
_RESERVATION = {
    "safe": "safe",
    "gap": "min(log10(1 + max(gap, 0))/7, 1)",
    "past gap": "max(-1, min(1, (t - gap)/max(t, 1)))",
    "extra": "min(extra/n_max, 1)",
    "head wait": "min(log10(1 + head_w)/7, 1)",
    "head length": "min(log10(1 + head_t)/7, 1)",
    "head nodes": "head_n/n_max",
}
#: Of the inspected pick: how often it was rejected, and how many others fit (0 without backfilling).
_INSPECTED = {
    "rejects": "min(rejects/72, 1)",
    "backfillable": "min(log2(1 + backfillable)/16, 1)",
}

ENCODERS: Mapping[Decision, Encoder] = {
    "pick": Encoder("pick", {**_JOB, **_MACHINE}, window=64),
    "backfill": Encoder(
        "backfill", {**_JOB, "stop": "blocked", **_RESERVATION, **_MACHINE}, window=64, stop=True
    ),
    "pick+backfill": Encoder("pick+backfill", {**_JOB, **_RESERVATION, **_MACHINE}, window=64),
    "inspect": Encoder("inspect", {**_JOB, **_INSPECTED, **_MACHINE}),
}
SETUPS: Mapping[Decision, Setup] = {
    "pick": Setup(order="fcfs", backfill="easy"),
    "backfill": Setup(order="fcfs", backfill="easy"),
    "pick+backfill": Setup(order="fcfs", backfill="easy", blocked="held"),
    "inspect": Setup(order="sjf", backfill="none"),
}
#: The workload that comes with bridge.
WORKLOAD = "bundled-128"
