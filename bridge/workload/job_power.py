"""Power per job: W per node, rounded up to what hosts can be set to, and the demand that is booked for it."""

from dataclasses import dataclass, replace

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.workload.derive import add_note
from bridge.workload.mrsch import NODE_POWER
from bridge.workload.statistics import demand
from bridge.workload.table import Workload, tally


@dataclass(frozen=True)
class PowerLevels:
    """The powers that a job's nodes can be given.

    A job of n nodes that demands P draws P / n + `uncharged` per node; it gets the lowest level that is not
    below, and books n · (level − `uncharged`) W.

    Attributes:
        watts: W per node, ascending.
        uncharged: W per node that no job's demand holds: what an idle node draws if jobs are charged for
            what they draw above it, 0 if they are charged for all that their nodes draw.
    """

    watts: tuple[int, ...]
    uncharged: int = 0

    def of(self, nodes: Ints, power: Ints) -> Ints:
        """Return the level of jobs by their nodes (from 1) and power (W); ``len(watts)``: none is so high."""
        per_node = -(-np.asarray(power, np.int64) // nodes) + self.uncharged
        return np.asarray(np.searchsorted(self.watts, per_node), np.int64)

    def booked(self, nodes: Ints, level: Ints) -> Ints:
        return np.asarray(nodes * (np.asarray(self.watts, np.int64)[level] - self.uncharged), np.int64)

    def round_up(self, nodes: int, power: int) -> tuple[int, int] | None:
        """Return one job's level and the demand that is booked for it; None if no level is high enough."""
        (level,) = self.of(np.array([nodes]), np.array([power])).tolist()
        return None if level == len(self.watts) else (level, nodes * (self.watts[level] - self.uncharged))


def round_power_demands(workload: Workload, levels: PowerLevels) -> Workload:
    """Return the workload with every demand for power rounded up; jobs beyond the highest level are dropped.

    A log without the column ``power`` may have ``node_power``, W per node, instead. A demand that is not
    known (−1) is none. ``node_power`` then says what the nodes will draw. Raises BridgeError: the log has
    neither column.
    """
    jobs = workload.jobs.copy()
    nodes = np.maximum(demand(jobs).to_numpy(np.int64), 1)
    if "power" in jobs.columns:
        power = jobs["power"].to_numpy(np.int64)
    elif NODE_POWER in jobs.columns:
        power = nodes * (jobs[NODE_POWER].to_numpy(np.int64) - levels.uncharged)
    else:
        remedy = "Give it a column power (W), see docs/workloads.md, or leave power out."
        raise BridgeError("its jobs have no power", where=workload.where, remedy=remedy)
    power = np.maximum(power, 0)
    level = levels.of(nodes, power)
    beyond = level == len(levels.watts)
    level[beyond] -= 1
    jobs["power"] = levels.booked(nodes, level)
    jobs[NODE_POWER] = np.asarray(levels.watts, np.int64)[level]
    raised = (jobs["power"].to_numpy() > power) & ~beyond
    why = f"needs more than the {levels.watts[-1]} W that a host can draw"
    counted = {
        **workload.tally,
        **tally("dropped", why, jobs["job_id"][beyond]),
        **tally("noted", "power rounded up to what hosts can be set to", jobs["job_id"][raised]),
    }
    note = f"power rounded up to levels of {levels.watts[0]} to {levels.watts[-1]} W per node"
    return replace(workload, jobs=jobs[~beyond], header=add_note(workload.header, note), tally=counted)
