"""The workloads S1–S10 of MRSch: burst buffer requests and power profiles added to the jobs of a log.

B. Li et al.: "MRSch: Multi-Resource Scheduling for HPC", IEEE Cluster 2022, Table III (S1–S5) and
Section V-E (S6–S10, with power). The burst buffer sizes that the paper drew from are Darshan
records that are not public: here they are drawn, uniform or log-uniform, from the paper's ranges.

On theta_2022 nodes are scarcest in all of these but S5, whatever the distribution: too few jobs run at once.
C1–C5 are S1–S5 with a stand-in whose offered loads cross as the paper says (`CROSSING`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.wire.wattages import Accounting
from bridge.workload.derive import add_note, scale_arrivals
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import MICRO, Jobs, machine_capacity, select
from bridge.workload.statistics import demand
from bridge.workload.table import Workload

#: How burst buffer sizes are distributed over their range; ``heavy-tailed`` with a density of x^-3/2, and
#: larger ones rather for jobs that run longer (`_heavy_tailed`).
Sizes = Literal["uniform", "log-uniform", "heavy-tailed"]

GB = 10**9
TB = 10**12
#: W that each node of a job draws: travels along, the demand is in the column ``power``.
NODE_POWER = "node_power"
#: Of the paper's Theta.
_BURST_BUFFER = 1260 * TB


@dataclass(frozen=True)
class Setting:
    """One of the paper's workloads.

    Attributes:
        share: of the jobs that request burst buffer.
        least, most: range of the requests (TB).
        halved: jobs request half of their nodes, rounded up.
        power: jobs have a power profile.
        arrivals: default factor on the time between arrivals, chosen for theta_2022: 0.8 makes nodes (or
            burst buffer) scarce, 1.5 keeps the mean demand for power within the budget.
        sizes: default distribution of the requests.
        burst_buffer: default capacity (bytes), 0 = the machine's.
    """

    name: str
    share: float
    least: int
    most: int = 285
    halved: bool = False
    power: bool = False
    arrivals: float = 0.8
    sizes: Sizes = "uniform"
    burst_buffer: int = 0


_S1_TO_S5 = (
    Setting("S1", 0.50, 5),
    Setting("S2", 0.75, 5),
    Setting("S3", 0.50, 20),
    Setting("S4", 0.75, 20),
    Setting("S5", 0.75, 20, halved=True),
)
#: S1–S5 with loads that cross. Shares and ranges are the paper's. Sizes have a heavy tail, without which S3
#: does not ask for more than S2, with half of the jobs for three quarters. The burst buffer is as large as
#: makes S3 balanced on theta_2022 (510 TB for 1,260); arrivals are such that S4 and S5 do not overflow it.
CROSSING = tuple(
    replace(
        s,
        name=f"C{n}",
        arrivals=1.3 if s.halved else 1.4,
        sizes="heavy-tailed",
        burst_buffer=510 * TB,
    )
    for n, s in enumerate(_S1_TO_S5, start=1)
)
SETTINGS: Mapping[str, Setting] = (
    {s.name: s for s in _S1_TO_S5}
    | {
        # Half the nodes draw half the power, which fits the budget without stretching.
        f"S{n + 5}": replace(s, name=f"S{n + 5}", power=True, arrivals=s.arrivals if s.halved else 1.5)
        for n, s in enumerate(_S1_TO_S5, start=1)
    }
    | {s.name: s for s in CROSSING}
)


def find_setting(setting: str) -> Setting:
    if setting not in SETTINGS:
        raise BridgeError(f"unknown setting {setting!r}", remedy=f"Known settings: {', '.join(SETTINGS)}.")
    return SETTINGS[setting]


@dataclass(frozen=True)
class MrschMachine:
    """What a setting adds to the log's machine; the defaults are the paper's Theta.

    Attributes:
        burst_buffer: shared capacity (bytes), 0 = the setting's, or the paper's 1.26 PB.
        budget: what the whole system may draw (W).
        idle: W of an idle node.
        least, most: range of the power per node of a job (W).
        step: power per node is drawn in steps of so many W from `least` on; a job that would exceed the
            budget alone gets the highest step that does not.
        accounting: ``above-idle``: n nodes at p W demand n·(p − idle) of budget − idle·nodes;
            ``jobs``: they demand n·p of the budget, and idle nodes count nothing.
    """

    burst_buffer: int = 0
    budget: int = 500_000
    idle: int = 60
    least: int = 100
    most: int = 215
    step: int = 1
    accounting: Accounting = "above-idle"

    @property
    def free(self) -> int:
        """W per node that a job is not charged for."""
        return self.idle if self.accounting == "above-idle" else 0

    def power(self, nodes: int) -> int:
        """Return a machine's capacity for power (W). Raises BridgeError: idle nodes use the budget up."""
        left = self.budget - self.free * nodes
        if left <= 0:
            what = f"{nodes} idle nodes at {self.idle} W leave nothing of {self.budget} W for jobs"
            raise BridgeError(what, where="--budget", remedy=f"Give more than {self.free * nodes} W.")
        return left

    def feasible(self, size: Ints, nodes: int) -> Ints:
        """Return the highest W per node at which each job can run alone: [n] like `size`, whole steps.

        From n·(p − free) ≤ capacity; for above-idle this is p ≤ (budget − idle·(nodes − n)) / n.
        """
        most = self.power(nodes) // np.maximum(size, 1) + self.free
        stepped: Ints = self.least + (most - self.least) // self.step * self.step
        return np.maximum(stepped, self.free)


def generate_mrsch(
    base: Workload,
    setting: str,
    seed: int,
    *,
    sizes: Sizes | None = None,
    machine: MrschMachine | None = None,
    arrivals: float | None = None,
) -> Workload:
    """Return a log's jobs with the demands of a setting; the same arguments give the same bits.

    Exactly the setting's share of the records (rounded) requests burst buffer, in whole GB, distributed over
    its range by `sizes`, by the setting's distribution if None. Who asks, how much, and who draws how many W
    come from three independent streams of the seed, so that settings compare job by job: whoever asks in S1
    asks in S2 as well, S4 and S5 ask the same, S6 asks as S1. Records are neither dropped nor reordered. The
    machine is the paper's Theta if None;
    `arrivals` multiplies the time between arrivals, by the setting's factor if None.

    The workload has the column ``burst_buffer`` (bytes), with power also ``power`` (W, see
    `MrschMachine.accounting`) and ``node_power`` (W per node), their capacities, and in the header what each
    node draws that no job is charged for. Raises BridgeError: no such setting; the base does not state its
    nodes, or has such a column already; a factor, budget or step that cannot be.
    """
    chosen = find_setting(setting)
    machine = machine or MrschMachine()
    machine_capacity(base)  # which must be stated
    for name in ("burst_buffer", *(("power", NODE_POWER) if chosen.power else ())):
        if name in base.jobs.columns or name in base.capacity:
            what = f"the log already has {name!r}"
            raise BridgeError(what, where=base.where, remedy="Take the log itself.")
    factor = chosen.arrivals if arrivals is None else arrivals
    workload = scale_arrivals(base, factor) if factor != 1 else replace(base, jobs=base.jobs.copy())
    jobs, capacity, header = workload.jobs, {**workload.capacity}, {**workload.header}
    who, size, watts = np.random.default_rng(seed).spawn(3)

    note = f"{setting} of MRSch on {base.name}, seed {seed}: "
    if chosen.halved:
        for name in ("procs", "req_procs"):
            jobs[name] = jobs[name].where(jobs[name] <= 0, (jobs[name] + 1) // 2)
        note += "half of the nodes, "
    asks = who.permutation(len(jobs)) < int(chosen.share * len(jobs) + 0.5)
    # Every job draws, asking or not, so that a job's size does not depend on who else asks.
    place, ratio = size.random(len(jobs)), chosen.most / chosen.least
    sizes = sizes or chosen.sizes
    if sizes == "heavy-tailed":
        terabytes = _heavy_tailed(chosen, _ranks(_ranks(jobs["run"].to_numpy(np.float64)) + place))
    elif sizes == "uniform":
        terabytes = chosen.least + (chosen.most - chosen.least) * place
    else:
        terabytes = chosen.least * ratio**place
    jobs["burst_buffer"] = np.where(asks, np.rint(terabytes * (TB // GB)).astype(np.int64) * GB, 0)
    capacity["burst_buffer"] = machine.burst_buffer or chosen.burst_buffer or _BURST_BUFFER
    note += f"{chosen.share:.0%} of jobs with {chosen.least}-{chosen.most} TB of burst buffer ({sizes})"
    if chosen.power:
        nodes = demand(jobs).to_numpy(np.int64)
        watts_drawn, most = _draw_watts(len(jobs), machine, watts), machine.feasible(nodes, capacity["nodes"])
        jobs[NODE_POWER] = np.minimum(watts_drawn, most)
        jobs["power"] = nodes * (jobs[NODE_POWER] - machine.free)
        capacity["power"] = machine.power(capacity["nodes"])
        header["IdlePower"] = str(machine.free)
        counted = f"above {machine.idle} W" if machine.free else "in full"
        note += f", {machine.least}-{machine.most} W per node in steps of {machine.step} W, counted {counted}"
        note += f", {int((watts_drawn > most).sum())} jobs capped to fit {machine.budget} W alone"
    return replace(
        workload,
        name=f"{base.name}-{setting}",
        capacity=capacity,
        header=add_note(header, note),
        source=f"{base.name}, {setting} with seed {seed}",
    )


def _ranks(values: Floats) -> Floats:
    """Return where each value stands among all, in order of appearance among equals: 0 < rank < 1."""
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = (np.arange(len(values)) + 0.5) / max(1, len(values))
    return ranks


def _heavy_tailed(chosen: Setting, place: Floats) -> Floats:
    """Return TB at these places of a bounded Pareto distribution: densities of x^-3/2 over the range.

    Its mean is the root of least times most.
    """
    low, high = chosen.least**-0.5, chosen.most**-0.5
    return np.asarray((low - place * (low - high)) ** -2.0)


def _draw_watts(jobs: int, machine: MrschMachine, watts: np.random.Generator) -> Ints:
    """Return W per node, uniform over the steps from the least to the most: [jobs]."""
    span = machine.most - machine.least
    if machine.step < 1 or span % machine.step:
        what = f"steps of {machine.step} W do not lead from {machine.least} W to {machine.most} W"
        raise BridgeError(what, where="--power-step", remedy=f"Give a divisor of {span}.")
    steps = watts.integers(0, span // machine.step, jobs, endpoint=True)
    return machine.least + machine.step * steps.astype(np.int64)


# What such a workload holds, in numbers, beside what the paper says of it (Table III, Figure 8, Section V-E).

UNKNOWN = "not stated"


@dataclass(frozen=True)
class StatisticRow:
    """One statistic: of this workload, and of the paper's (text: the paper gives ranges, or nothing)."""

    what: str
    here: float
    paper: str = UNKNOWN


def _booked(jobs: Jobs, times: Ints) -> Floats:
    """Return Σ demand·time / capacity of each resource: [R]."""
    return np.asarray((jobs.demand / jobs.capacity * times[:, None]).sum(axis=0))


def offered_loads(jobs: Jobs) -> dict[str, float]:
    """Return Σ demand·run / (capacity · time from first to last submission) per resource; NaN for no time."""
    span = float(np.ptp(jobs.submit)) or np.nan
    return dict(zip(jobs.resources, (_booked(jobs, jobs.run) / span).tolist(), strict=True))


def goal(jobs: Jobs) -> dict[str, float]:
    """Return the paper's goal (Eq. 1) over all jobs at once, with requested times: sums to 1."""
    wanted = _booked(jobs, jobs.request)
    return dict(zip(jobs.resources, (wanted / wanted.sum()).tolist(), strict=True))


def statistics(workload: Workload, setting: str) -> list[StatisticRow]:
    """Return the statistics of what was generated for a setting, under the standard loading rule."""
    paper = find_setting(setting)
    jobs = select(workload, LOAD_RULES["standard"])
    buffer = jobs.demand[:, jobs.resources.index("burst_buffer")]
    requested = buffer[buffer > 0] / TB
    rows = [
        StatisticRow("jobs", len(jobs)),
        StatisticRow(
            "mean time between arrivals, s", float(np.ptp(jobs.submit)) / MICRO / max(1, len(jobs) - 1)
        ),
        StatisticRow(
            "mean nodes", float(jobs.demand[:, 0].mean()), "halved" if paper.halved else "as logged"
        ),
        StatisticRow(
            "jobs with burst buffer, %", 100 * len(requested) / len(jobs), f"{100 * paper.share:.0f}"
        ),
    ]
    spreads = [("request, TB", requested, str(paper.least), str(paper.most))] if len(requested) else []
    if paper.power:
        spreads.append(("power per node, W", jobs.extra[NODE_POWER], "100", "215"))
    for what, values, least, most in spreads:
        rows.append(StatisticRow(f"least {what}", float(values.min()), least))
        rows.append(StatisticRow(f"mean {what}", float(values.mean())))
        rows.append(StatisticRow(f"largest {what}", float(values.max()), most))
    rows += [StatisticRow(f"offered load: {name}", load) for name, load in offered_loads(jobs).items()]
    # Figure 8 shows twelve hours of S5; Figure 9's boxes are drawn without numbers.
    share_range = dict.fromkeys(("S5", "C5"), "0.6 to 0.9").get(setting, UNKNOWN)
    return [
        *rows,
        StatisticRow("goal: burst_buffer (Eq. 1 over all jobs)", goal(jobs)["burst_buffer"], share_range),
    ]
