"""A small simulation played before the socket is bound, so that first messages are answered like later ones.

The kernels are loaded (or compiled), late imports done, arrays grown once; then all that lives so far is left
out of garbage collection for good.
"""

import gc

from bridge.batsim import events as ev
from bridge.batsim.dispatcher import Setup
from bridge.batsim.process import DecisionProcess
from bridge.dialects.batsim4 import Batsim4
from bridge.scheduler.protocol import Policy
from bridge.wire.times import MICRO

#: More jobs than a session has room for at first.
_JOBS = 1100
_HOSTS = 8


def warm_up() -> None:
    """Play it; takes about half a second, or as long as compiling takes."""
    process, spoken = DecisionProcess(Setup(Policy("fcfs", "easy"))), Batsim4()
    compute = tuple(ev.Resource(k, f"host{k}") for k in range(_HOSTS))

    def tell(now: int, *events: ev.Event) -> None:
        process.answer(spoken.encode_message(ev.Message(now, events)))

    def job(k: int) -> ev.JobSubmitted:
        fields = {"subtime": 1, "res": 1 + k % _HOSTS, "profile": "p", "walltime": 10 + k % 7}
        return ev.JobSubmitted(MICRO, f"w0!{k}", 1 + k % _HOSTS, MICRO, 10 * MICRO, "p", fields)

    tell(0, ev.SimulationBegins(0, compute))
    tell(MICRO, *map(job, range(_JOBS // 2)))
    tell(MICRO, *map(job, range(_JOBS // 2, _JOBS)))
    for now in range(2 * MICRO, 60 * MICRO, MICRO):
        running = [one for one in process.dispatcher.jobs.values() if one.state == "running"]
        done = running[0]
        tell(now, ev.JobCompleted(now, done.job_id, "COMPLETED_SUCCESSFULLY", 0, done.hosts))
    tell(60 * MICRO, ev.SimulationEnds(60 * MICRO))
    gc.collect()
    gc.freeze()
