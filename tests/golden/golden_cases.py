"""What is frozen: agents of the zoo and of the pool judged and replayed, a session per decision kind."""

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bridge.learn.checkpoint_files import is_of_pool

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "worlds" / "batsim")]
from fake_batsim import MICRO, DelayJob, FakeBatsim  # type: ignore[import-not-found]  # noqa: E402
from trained_agents import CONFIG as EVENT_CONFIG  # type: ignore[import-not-found]  # noqa: E402
from trained_agents import POOL_CONFIG  # noqa: E402

_SHIPPED = sorted(path for path in (ROOT / "zoo").iterdir() if path.is_dir())
ZOO = [path.name for path in _SHIPPED if not is_of_pool(path)]
#: Agents of the time-stepped pool: small random networks that are sure of themselves, and kill; the zoo's.
POOL_AGENTS = {name: HERE / name for name in ("pool-draws", "pool-greedy")} | {
    path.name: path for path in _SHIPPED if is_of_pool(path)
}
#: Settings of the workloads of nodes and burst buffer, and of power as well, for MRSch's agents.
TWO_RESOURCES, THREE_RESOURCES = "S4", "S9"

HOSTS, UNITS, STEP = 16, 12, 300 * MICRO


@dataclass(frozen=True)
class Session:
    """A policy, the words of `bridge decide` behind it, and what it decides for."""

    policy: str
    words: tuple[str, ...]
    peer: Callable[[], FakeBatsim]


#: Trainings of two epochs, by what they write under; the words of `bridge train`, and more of the config.
TRAININGS = {
    "rlbackfilling": (("rlbackfilling",), EVENT_CONFIG),
    "rlscheduler-paper": (("rlscheduler", "--setting", "paper"), EVENT_CONFIG),
    "schedinspector": (("schedinspector",), EVENT_CONFIG),
    "sem-theta": (("sem", "--setting", "theta"), EVENT_CONFIG),
    "mrsch": (("mrsch", "--workload", "S4.parquet"), EVENT_CONFIG + 'curriculum = ["sampled:1", "real:1"]\n'),
    "rlschert": (("rlschert",), POOL_CONFIG + "lessons = 1\n"),
    "rlschert-kill": (
        ("rlschert", "--setting", "kill", "--teacher", "trained-rlschert"),
        POOL_CONFIG + "lessons = 1\n",
    ),
    "rlschert-paper-pg": (("rlschert", "--setting", "paper-pg"), POOL_CONFIG),
}


def workload_of(agent: str, folder: Path) -> str:
    """Return what an agent of the zoo is judged on; MRSch's workloads are in a folder."""
    if not agent.startswith("mrsch"):
        return "bundled-128"
    setting = THREE_RESOURCES if agent.endswith("power") else TWO_RESOURCES
    return str(folder / f"{setting}.parquet")


def rules_of(agent: str) -> tuple[str, ...]:
    """Return the words that judge an agent of the zoo under the rules that it has learnt."""
    setup = json.loads((ROOT / "zoo" / agent / "agent.json").read_text())["recipe"]["setup"]
    words: tuple[str, ...] = ("--protocol", setup["protocol"])
    return (*words, "--preset", setup["preset"]) if setup["preset"] else words


def waiting(burst_buffer: bool = False) -> FakeBatsim:
    """Return a peer with 50 jobs that queue up for 16 hosts; every third may ask for burst buffer too."""
    draw, now, jobs = random.Random(7), 0, []
    for k in range(1, 51):
        now += draw.randrange(0, 240)
        run = draw.choice((30, 200, 900, 2400)) + draw.randrange(60)
        more = {"user": draw.randrange(5), "queue": 1}
        if burst_buffer:
            more["burst_buffer"] = draw.choice((0, 200, 500)) * 10**9
        request = run * draw.choice((1, 2, 5))
        size = draw.choice((1, 1, 2, 3, 4, 8, 16))
        jobs.append(DelayJob(f"{k:02d}", now * MICRO, run * MICRO, size, request * MICRO, more))
    return FakeBatsim(jobs, HOSTS)


def stepping() -> FakeBatsim:
    """Return a peer with 18 jobs for a pool of 12 units, of which some run far longer than believed."""
    draw, step, jobs = random.Random(3), 0, []
    for k in range(1, 19):
        step += draw.randrange(0, 4)
        length, believed = draw.randrange(1, 14), draw.randrange(1, 8)
        late = max(believed, length + draw.randrange(-1, 9))
        beliefs = [believed if i < 2 else max(late, i + 1) for i in range(length)]
        more = {"believed": believed, "beliefs": beliefs}
        jobs.append(
            DelayJob(
                str(k),
                step * STEP,
                length * STEP - MICRO,
                draw.choice((1, 2, 2, 4, 4, 6, 8, 8, 10, 12)),
                None,
                more,
            )
        )
    return FakeBatsim(jobs, UNITS, dynamic=True, acknowledges=True)


_POOL = ("--scheduler", "slotted", "--kill", "rule", "--pool-units", str(UNITS), "--pool-slots", "2")
SESSIONS = {
    "rule-easy": Session("wfp3", ("--backfill", "easy"), waiting),
    "rule-conservative": Session("sjf", ("--backfill", "conservative", "--placement", "contiguous"), waiting),
    "pick": Session(
        "zoo/mrsch-s4-ours", ("--resource", "burst_buffer=1000000000000"), lambda: waiting(burst_buffer=True)
    ),
    "pick-and-backfill": Session("zoo/sem-theta", (), waiting),
    "backfill": Session("zoo/rlbackfilling-lublin-1", (), waiting),
    "inspect": Session("zoo/schedinspector-hpc2n", ("--cross-protocol",), waiting),
    "tick-rule": Session("saf", _POOL, stepping),
    "tick": Session("tests/golden/pool-greedy", (), stepping),
}
