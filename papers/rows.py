"""What is repeated: a row per agent and workload, with the published numbers and all who stand beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Names in the tables -> the logs' files; MRSch's workloads are made of theta_2022, see `logs`.
TRACES: Mapping[str, str] = {
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "Lublin-1": "lublin_256.swf.gz",
    "Lublin-2": "lublin_256_new2.swf.gz",
    "Theta": "theta_2022.swf.gz",
    "DataStar": "SDSC-DS-2004-2.1-cln.swf.gz",
} | {f"S{n}": f"runs/papers/workloads/S{n}.parquet" for n in range(1, 11)}


@dataclass(frozen=True)
class Test:
    """Which sequences policies are compared on.

    Attributes:
        name: ``held-out`` or ``paper``.
        sampler, sequences, length, seed: see `bridge.judge.sampling`; the sampler ``whole`` takes all jobs
            as one sequence.
        held_out: only behind the part of the log that agents learn from.
    """

    name: str
    sampler: str
    sequences: int
    length: int
    seed: int
    held_out: bool


#: As MRSch and SEM are judged: everything behind the training part, in one go.
WHOLE = Test("whole", "whole", 1, 0, 0, held_out=True)
HELD_OUT = Test("held-out", "standard", 200, 256, 1, held_out=True)


@dataclass(frozen=True)
class Baseline:
    """One who does not learn: other rules under which the same sequences are scheduled, or a fixed rule."""

    label: str
    setup: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""


@dataclass(frozen=True)
class Row:
    """One agent on one workload.

    Attributes:
        table: file name of its table.
        name: the row's name, unique in its table.
        trace: key of `TRACES`: what it is judged on.
        policy, setting, changes: the agent's recipe; empty policy = nothing is learnt.
        learnt_on: key of `TRACES`, if not `trace`.
        tests: sequences to judge it on.
        paper: published numbers by label (``base``, ``agent``, others).
        baselines: who stands beside it.
        headline: three seeds are asked for; else one.
        shipped: the zoo has the best of a headline row's agents.
    """

    table: str
    name: str
    trace: str
    policy: str
    setting: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    learnt_on: str = ""
    tests: tuple[Test, ...] = (HELD_OUT,)
    paper: Mapping[str, float] = field(default_factory=dict)
    baselines: tuple[Baseline, ...] = ()
    headline: bool = False
    shipped: bool = True

    @property
    def seeds(self) -> int:
        """Seeds that we ask for."""
        return 3 if self.headline else 1


@dataclass(frozen=True)
class Table:
    """A table or figure of a paper.

    Attributes:
        name, title, says, rows: see there.
        metric: what the agents are judged by.
        more: further metrics of everybody.
        rivals: (agent's row, rival's row) by the beginning of their names: agents that are compared directly.
    """

    name: str
    title: str
    says: str
    rows: tuple[Row, ...]
    metric: str = "bsld"
    more: tuple[str, ...] = ()
    rivals: tuple[tuple[str, str], ...] = ()


# RLBackfilling.

_RLBF_SEED = {"SDSC-SP2": 29, "HPC2N": 15, "Lublin-1": 40, "Lublin-2": 17}
_RLBF_4 = {  # order -> trace -> EASY, EASY-AR, RLBF
    "fcfs": {
        "SDSC-SP2": (292.82, 169.24, 142.93),
        "HPC2N": (28.16, 18.87, 13.16),
        "Lublin-1": (192.89, None, 83.43),
        "Lublin-2": (163.06, None, 120.46),
    },
    "sjf": {
        "SDSC-SP2": (187.61, 103.43, 120.72),
        "HPC2N": (11.67, 3.73, 9.75),
        "Lublin-1": (55.62, None, 30.57),
        "Lublin-2": (85.63, None, 105.59),
    },
}


def _published(order: str, trace: str) -> dict[str, float]:
    names = ("base", "EASY-AR", "agent")
    return {n: v for n, v in zip(names, _RLBF_4[order][trace], strict=True) if v is not None}


def _beside_rlbf(order: str, *, paper: bool) -> tuple[Baseline, ...]:
    rules = {"protocol": "standard"} if paper else {}
    found = [Baseline("EASY-AR (actual run times)", {"estimator": "actual"})]
    if paper:
        found.append(Baseline("textbook EASY", rules))
    found.append(Baseline("textbook EASY, SJF-ordered backfill", {**rules, "candidate_order": "sjf"}))
    if order != "sjf":
        found.append(Baseline("textbook SJF + EASY", {**rules, "order": "sjf"}))
    found.append(Baseline("textbook F1 + EASY", {**rules, "order": "f1"}))
    return tuple(found)


def _rlbf(order: str) -> tuple[Row, ...]:
    rows = []
    for trace in _RLBF_4[order]:
        changes = {"setup": {"order": order}} if order != "fcfs" else {}
        rows.append(
            Row(
                f"rlbackfilling-4-{order}",
                f"{trace}, ours",
                trace,
                "rlbackfilling",
                "recommended",
                changes,
                baselines=_beside_rlbf(order, paper=False),
                headline=order == "fcfs",
            )
        )
        test = Test("paper", "rlbackfilling", 10, 1024, _RLBF_SEED[trace], held_out=False)
        rows.append(
            Row(
                f"rlbackfilling-4-{order}",
                f"{trace}, as the paper",
                trace,
                "rlbackfilling",
                "paper",
                changes,
                tests=(HELD_OUT, test),
                paper=_published(order, trace),
                baselines=_beside_rlbf(order, paper=True),
                headline=order == "fcfs",
            )
        )
    return tuple(rows)


def _cross() -> tuple[Row, ...]:
    traces = tuple(_RLBF_4["fcfs"])
    return tuple(
        Row(
            "rlbackfilling-5",
            f"learnt on {source}, judged on {target}",
            target,
            "rlbackfilling",
            "recommended",
            learnt_on=source,
            baselines=_beside_rlbf("fcfs", paper=False),
        )
        for source in traces
        for target in traces
        if source != target
    )


def _noise() -> tuple[Row, ...]:
    levels = (0, 5, 10, 20, 40, 100)
    return tuple(
        Row(
            "rlbackfilling-figure-1",
            f"{order}, requested times",
            "SDSC-SP2",
            "",
            "",
            {"setup": {"order": order, "backfill": "easy"}},
            baselines=tuple(
                Baseline(f"run time + up to {level} %", {"estimator": f"noisy({level / 100:g}, 1)"})
                if level
                else Baseline("actual run time", {"estimator": "actual"})
                for level in levels
            ),
        )
        for order in ("fcfs", "sjf", "wfp3", "f1")
    )


# SchedInspector.

_INSPECT = Test("paper", "schedinspector", 50, 256, 1, held_out=False)
_INSPECTOR_4 = {
    "SDSC-SP2": (149.5, 130.75),
    "CTC-SP2": (13.36, 10.1),
    "Lublin-1": (333.19, 27.97),
    "HPC2N": (8.26, 3.27),
}
_FIXED = (
    Baseline("reject iff blocked", rule="reject-blocked"),
    Baseline("reject iff blocked or large", rule="reject-blocked-or-large"),
)
_BESIDE = (
    *_FIXED,
    Baseline("textbook, head re-picked", {"protocol": "standard"}),
    Baseline("textbook + EASY", {"protocol": "standard", "backfill": "easy"}),
)
#: Textbook F1 has no score for the jobs of 0 s that this loader keeps.
_BESIDE_F1 = (
    *_FIXED,
    Baseline("textbook SJF + EASY", {"protocol": "standard", "backfill": "easy", "order": "sjf"}),
)
#: Our features and reward under the paper's rules.
_OURS = {"setup": {"protocol": "schedgym", "preset": "schedinspector"}}


def _inspector(
    table: str,
    traces: tuple[str, ...],
    setting: str,
    label: str,
    changes: Mapping[str, Any] | None = None,
    *,
    headline: bool = False,
    published: bool = False,
    baselines: tuple[Baseline, ...] = _BESIDE,
) -> tuple[Row, ...]:
    return tuple(
        Row(
            table,
            f"{trace}, {label}",
            trace,
            "schedinspector",
            setting,
            changes or {},
            tests=(HELD_OUT, _INSPECT) if setting != "recommended" or changes else (HELD_OUT,),
            paper=dict(zip(("base", "agent"), _INSPECTOR_4[trace], strict=True)) if published else {},
            baselines=baselines,
            headline=headline,
        )
        for trace in traces
    )


def _order(name: str, backfill: str = "none") -> dict[str, Any]:
    return {"setup": {"order": name, "backfill": backfill}}


_FOUR = tuple(_INSPECTOR_4)
_STANDARD_BESIDE = (
    Baseline("EASY", {"backfill": "easy"}),
    Baseline("EASY-AR (actual run times)", {"backfill": "easy", "estimator": "actual"}),
    Baseline("reject iff blocked", rule="reject-blocked"),
    Baseline("reject iff blocked or large", rule="reject-blocked-or-large"),
)

# MRSch.

_THETA = (
    Baseline("optimisation (BBSched)", rule="optimise"),
    Baseline("SJF + EASY", {"order": "sjf", "blocked": ""}),
    Baseline("WFP3 + EASY", {"order": "wfp3", "blocked": ""}),
)
_TWO = ("utilisation", "utilisation.burst_buffer", "wait", "slowdown", "bsld")
_THREE = ("utilisation", "utilisation.burst_buffer", "utilisation.power", "wait", "slowdown", "bsld")


def _mrsch(
    table: str,
    workloads: tuple[str, ...],
    who: Mapping[str, tuple[str, Mapping[str, Any]]],
    *,
    headline: bool = False,
) -> tuple[Row, ...]:
    """Return a row per workload and agent; who: label -> setting and changes."""
    return tuple(
        Row(
            table,
            f"{label}, {workload}",
            workload,
            "mrsch",
            setting,
            changes,
            tests=(HELD_OUT, WHOLE),
            baselines=_THETA,
            headline=headline,
            shipped=workload == "S4" and label != "scalar RL",
        )
        for workload in workloads
        for label, (setting, changes) in who.items()
    )


def _order_of(*phases: str) -> dict[str, Any]:
    return {"training": {"curriculum": list(phases)}}


_S1_S5 = tuple(f"S{n}" for n in range(1, 6))
_S6_S10 = tuple(f"S{n}" for n in range(6, 11))
_MRSCH = (
    Table(
        "mrsch-s1-s5",
        "MRSch on S1–S5: nodes and burst buffer",
        "Mean wait in seconds on the workloads of MRSch's Table III, made of theta_2022 with uniform burst "
        "buffer requests (the paper's Darshan sizes are private) and arrivals compressed by 0.8; base: FCFS "
        "+ EASY over both resources. *Oldest job reserved* is MRSch as its public code reserves: a pick that "
        "does not fit makes way for the oldest job (one seed). The paper prints figures, no numbers.",
        _mrsch(
            "mrsch-s1-s5",
            _S1_S5,
            {"MRSch": ("default", {}), "scalar RL": ("scalar", {}), "ours (PPO)": ("ours", {})},
            headline=True,
        )
        + _mrsch("mrsch-s1-s5", _S1_S5, {"oldest job reserved": ("head", {})}),
        metric="wait",
        more=_TWO,
        rivals=(("MRSch", "scalar RL"), ("oldest", "scalar RL"), ("ours", "MRSch")),
    ),
    Table(
        "mrsch-s6-s10",
        "MRSch on S6–S10: nodes, burst buffer and power",
        "As S1–S5, with 100–215 W per node and a budget of 500 kW; arrivals are stretched by 1.5 where the "
        "mean demand for power would exceed it.",
        _mrsch(
            "mrsch-s6-s10",
            _S6_S10,
            {"MRSch": ("default", {}), "scalar RL": ("scalar-power", {}), "ours (PPO)": ("ours", {})},
        ),
        metric="wait",
        more=_THREE,
        rivals=(("MRSch", "scalar RL"), ("ours", "MRSch")),
    ),
    Table(
        "mrsch-curriculum",
        "MRSch, Figure 4: orders of the training sets",
        "The same 40 epochs of training sets in other orders, S4.",
        _mrsch(
            "mrsch-curriculum",
            ("S4",),
            {
                "sampled, real, synthetic": ("default", {}),
                "real, sampled, synthetic": ("default", _order_of("real:10", "sampled:10", "synthetic:20")),
                "synthetic, real, sampled": ("default", _order_of("synthetic:20", "real:10", "sampled:10")),
                "real only": ("default", _order_of("real:40")),
            },
        ),
        metric="wait",
        more=_TWO,
    ),
    Table(
        "mrsch-state",
        "MRSch, Figure 3: dense and convolutional state modules",
        "The state module as dense layers and with convolutions over the jobs' rows, S4; and the reservation "
        "of the public code.",
        _mrsch(
            "mrsch-state",
            ("S4",),
            {"dense": ("default", {}), "convolutions": ("cnn", {}), "oldest job reserved": ("head", {})},
        ),
        metric="wait",
        more=_TWO,
    ),
)

# SEM and DRAS.

_BESIDE_SEM = (
    Baseline("SJF + EASY", {"order": "sjf", "blocked": ""}),
    Baseline("WFP3 + EASY", {"order": "wfp3", "blocked": ""}),
    Baseline("conservative", {"backfill": "conservative", "blocked": ""}),
)


def _sem(machine: str, *, headline: bool) -> Table:
    name = f"sem-{machine.lower()}"
    return Table(
        name,
        f"SEM and DRAS on {machine}",
        "Mean wait in seconds; base: FCFS + EASY. Both agents learn by the same algorithm from the same "
        "episodes (100 of 600 jobs); they differ in their state, and DRAS in its learning rate: at SEM's its "
        "policy is deterministic within the first episode and learns no more. What both cost: "
        "[SEM's encoding](sem-encoding.md).",
        tuple(
            Row(
                name,
                f"{policy.upper()}, {machine}",
                machine,
                policy,
                machine.lower(),
                tests=(HELD_OUT, WHOLE),
                baselines=_BESIDE_SEM,
                headline=headline,
                shipped=policy == "sem",
            )
            for policy in ("sem", "dras")
        ),
        metric="wait",
        more=("utilisation", "wait", "slowdown", "bsld"),
        rivals=(("SEM", "DRAS"),),
    )


_SEM = (_sem("Theta", headline=True), _sem("DataStar", headline=True))

TABLES: tuple[Table, ...] = (
    Table(
        "rlbackfilling-4-fcfs",
        "RLBackfilling, Table 4: FCFS",
        "Mean bounded slowdown with FCFS as the order; the agent takes EASY's place. Rows as the paper keep "
        "cancelled jobs, as its loader does; ours drop them. Compare within a row.",
        _rlbf("fcfs"),
    ),
    Table(
        "rlbackfilling-4-sjf",
        "RLBackfilling, Table 4: SJF",
        "Mean bounded slowdown with SJF as the order; the agent takes EASY's place.",
        _rlbf("sjf"),
    ),
    Table(
        "rlbackfilling-5",
        "RLBackfilling, Table 5: other traces",
        "An agent that learnt on one trace decides on another (FCFS).",
        _cross(),
    ),
    Table(
        "rlbackfilling-figure-1",
        "RLBackfilling, Figure 1: how much estimates matter",
        "EASY backfilling with run times overestimated by up to so much; nothing is learnt.",
        _noise(),
    ),
    Table(
        "schedinspector-4",
        "SchedInspector, Table 4: SJF",
        "Mean bounded slowdown of SJF without backfilling, with and without the inspector. Under the "
        "paper's rules requested times are the true run times, for everybody, as in its public code, and "
        "cancelled jobs are kept; under textbook rules neither. Rows as the paper learn on the first 20 % of "
        "the log and are judged behind it, ours on 60 %. Compare within a row.",
        (
            *_inspector(
                "schedinspector-4", _FOUR, "recommended", "ours, the paper's rules", _OURS, headline=True
            ),
            *_inspector("schedinspector-4", _FOUR, "paper", "as the paper", headline=True, published=True),
            *_inspector(
                "schedinspector-4", _FOUR, "recommended", "ours, textbook rules", baselines=_STANDARD_BESIDE
            ),
        ),
    ),
    Table(
        "schedinspector-orders",
        "SchedInspector, Table 5 and Figures 7, 9: other base orders",
        "The inspector on top of other orders, no backfilling, SDSC-SP2 (and F1 on all four).",
        (
            *_inspector(
                "schedinspector-orders",
                _FOUR,
                "recommended",
                "F1",
                {"setup": {**_OURS["setup"], "order": "f1"}},
                baselines=_BESIDE_F1,
            ),
            *(
                row
                for order in ("fcfs", "lcfs", "srf", "saf")
                for row in _inspector(
                    "schedinspector-orders", ("SDSC-SP2",), "paper", order.upper(), _order(order)
                )
            ),
        ),
    ),
    Table(
        "schedinspector-features",
        "SchedInspector, Figure 5: features",
        "Native, compacted and manual features, SDSC-SP2, SJF.",
        tuple(
            row
            for setting in ("native", "compacted", "paper")
            for row in _inspector("schedinspector-features", ("SDSC-SP2",), setting, setting)
        ),
    ),
    Table(
        "schedinspector-rewards",
        "SchedInspector, Figure 6: rewards",
        "The difference, win or loss, and the percentage as reward, SDSC-SP2, SJF.",
        tuple(
            row
            for setting in ("nativereward", "winloss", "paper", "code")
            for row in _inspector("schedinspector-rewards", ("SDSC-SP2",), setting, setting)
        ),
    ),
    Table(
        "schedinspector-wait",
        "SchedInspector, Figure 10: mean wait as target",
        "Mean wait in seconds, SDSC-SP2, SJF.",
        _inspector("schedinspector-wait", ("SDSC-SP2",), "wait", "wait"),
        metric="wait",
    ),
    Table(
        "schedinspector-maxbsld",
        "SchedInspector, Figure 10: largest bounded slowdown as target",
        "Largest bounded slowdown, SDSC-SP2, SJF.",
        _inspector("schedinspector-maxbsld", ("SDSC-SP2",), "maxbsld", "maxbsld"),
        metric="bsld.max",
    ),
    Table(
        "schedinspector-backfilling",
        "SchedInspector, Figure 11: on top of EASY",
        "SJF with the paper's EASY backfilling, with and without the inspector.",
        _inspector("schedinspector-backfilling", ("SDSC-SP2", "Lublin-1"), "backfilling", "SJF + EASY"),
    ),
    Table(
        "schedinspector-slurm",
        "SchedInspector, Figure 12: Slurm's multifactor priority",
        "Multifactor priority with backfilling, with and without the inspector.",
        _inspector("schedinspector-slurm", ("SDSC-SP2",), "slurm", "slurm + EASY"),
    ),
    *_MRSCH,
    *_SEM,
)
