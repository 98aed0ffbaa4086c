"""The referee, rule by rule, and against hostile deciders: nothing illegal leaves the process."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from detailed import PATIENCE_S, model, needs_simgrid
from fake_batsim import MICRO, DelayJob, FakeBatsim
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.wire import events as ev
from bridge.wire.hosts import parse
from bridge.worlds.batsim.endpoint import Endpoint, PeerGoneError
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.batsim.referee import Referee
from bridge.worlds.batsim.wire_scheduler import WireScheduler

#: Exit status of the platform model when nothing can happen any more.
STUCK = 3
POWER = {"wattage_per_state": "9:9:9,8:8:8,1:1:1,2:2:2,2:2:2", "sleep_pstates": "2:3:4"}


def begin(**rules: Any) -> ev.SimulationBegins:
    compute = tuple(ev.HostInfo(k, f"n{k}", properties=POWER) for k in range(4))
    storage = (ev.HostInfo(4, "bb"), ev.HostInfo(5, "pfs"))
    profiles = {
        "w0": {
            "d": {"type": "delay", "delay": 5},
            "total": {"type": "parallel_homogeneous_total", "cpu": 1, "com": 1},
            "io": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1, "storage": "bb"},
            "both": {"type": "composed", "seq": ["d", "io"]},
        }
    }
    return ev.SimulationBegins(0, compute, storage, workloads={"w0": "w.json"}, profiles=profiles, **rules)


def job(name: str, res: int, profile: str = "d", time: int = 0) -> ev.JobSubmitted:
    return ev.JobSubmitted(time, name, res, time, None, profile)


def done(name: str, time: int, state: str = "COMPLETED_SUCCESSFULLY") -> ev.JobCompleted:
    return ev.JobCompleted(time, name, state, 0, ())


class Table:
    """A referee at a table: messages in, decisions in, what is left of them out."""

    def __init__(self, *jobs: ev.JobSubmitted, energy: bool = False, **rules: Any) -> None:
        self.referee = Referee(energy=energy)
        self.referee.observe(ev.Message(0, (begin(**rules),)))
        self.tell(0, *jobs)

    def tell(self, now: int, *events: ev.Event) -> None:
        self.now = now
        self.referee.observe(ev.Message(now, events))

    def legal(self, *decisions: ev.Decision) -> tuple[ev.Decision, ...]:
        return self.referee.check(self.now, decisions).decisions

    def why(self, decision: ev.Decision) -> str:
        assert self.legal(decision) == ()
        return self.referee.refusals[-1].why

    def run(self, name: str, hosts: str) -> None:
        assert len(self.legal(ev.ExecuteJob(self.now, name, parse(hosts)))) == 1


def execute(name: str, hosts: str, **more: Any) -> ev.ExecuteJob:
    return ev.ExecuteJob(0, name, parse(hosts), **more)


def test_allocations() -> None:
    table = Table(job("a", 2), job("b", 2))
    assert "asks for 2 hosts and is given 3" in table.why(execute("a", "0-2"))
    assert "empty" in table.why(execute("a", ""))
    assert "outside 0-3" in table.why(execute("a", "3-4"))  # 4 is storage
    assert "ascending" in table.why(ev.ExecuteJob(0, "a", ((1, 1), (0, 0))))
    assert "ascending" in table.why(ev.ExecuteJob(0, "a", ((0, 1), (1, 1))))
    assert "malformed" in table.why(ev.ExecuteJob(0, "a", (5,)))  # type: ignore[arg-type]
    assert "empty" in table.why(ev.ExecuteJob(0, "a", None))  # type: ignore[arg-type]
    assert "no such job" in table.why(execute("c", "0-1"))
    table.run("a", "0 2")
    assert "host 2 runs another job" in table.why(execute("b", "1-2"))
    table.run("b", "1 3")


def test_a_job_is_executed_once() -> None:
    table = Table(job("a", 1))
    twice = execute("a", "0"), execute("a", "1")
    assert table.legal(*twice) == twice[:1]
    assert "is running" in table.why(execute("a", "1"))
    table.tell(5, done("a", 5))
    assert "is over" in table.why(ev.ExecuteJob(5, "a", parse("0")))


def test_hosts_that_are_down_come_back() -> None:
    table = Table(job("a", 1), job("b", 1))
    table.tell(0, ev.MachineAvailability(0, parse("0-1"), available=False))
    assert "host 1 is unavailable" in table.why(execute("a", "1"))
    table.tell(0, ev.MachineAvailability(0, parse("1"), available=True))
    table.run("a", "1")


def test_compute_sharing_lets_jobs_share() -> None:
    table = Table(job("a", 2), job("b", 2), compute_sharing=True)
    table.run("a", "0-1")
    table.run("b", "1-2")
    table.tell(5, done("a", 5), job("c", 1, time=5))
    table.legal(ev.ExecuteJob(5, "c", parse("2")))
    assert table.referee.refusals == []


def test_sizes_mappings_and_storage() -> None:
    table = Table(job("w0!t", 4, "total"), job("w0!m", 4), job("w0!i", 1, "io"), job("w0!c", 1, "both"))
    table.run("w0!t", "0-1")  # …_total runs on any number
    good = execute("w0!m", "2-3", mapping={0: 0, 1: 0, 2: 1, 3: 1})
    assert "given 3" in table.why(execute("w0!m", "2-3", mapping={0: 0, 1: 0, 2: 1}))
    assert "place in the allocation" in table.why(execute("w0!m", "2-3", mapping={0: 0, 1: 0, 2: 1, 3: 2}))
    assert "place in the allocation" in table.why(execute("w0!m", "2-3", mapping={1: 0, 2: 0, 3: 1, 4: 1}))
    assert table.legal(good) == (good,)
    table.tell(3, done("w0!m", 3))
    for name in ("w0!i", "w0!c"):
        assert "storage host is given for bb" in table.why(ev.ExecuteJob(3, name, parse("2")))
    assert "no storage" in table.why(ev.ExecuteJob(3, "w0!i", parse("2"), None, {"bb": 3}))
    assert "no storage" in table.why(ev.ExecuteJob(3, "w0!i", parse("2"), None, {}))
    assert "both a mapping" in table.why(ev.ExecuteJob(3, "w0!i", parse("2"), {0: 0}, {"bb": 4}))
    assert len(table.legal(ev.ExecuteJob(3, "w0!i", parse("2"), None, {"bb": 4}))) == 1


def test_kills() -> None:
    table = Table(job("a", 1), job("b", 1), job("c", 1))
    assert "is waiting" in table.why(ev.KillJob(0, ("a",)))
    assert table.legal(execute("a", "0"), ev.KillJob(0, ("a",))) == (execute("a", "0"),)  # one decision a job
    table.run("b", "1")
    table.tell(4, ev.RequestedCall(4), done("a", 4))  # stands in the same message: the kill is dropped
    assert table.legal(ev.KillJob(4, ("a", "b", "b", "x"))) == (ev.KillJob(4, ("b",)),)
    expected = ["the job is over", "this reply has decided about the job already", "there is no such job"]
    assert [r.why for r in table.referee.refusals[-3:]] == expected
    told = len(table.referee.refusals)
    assert table.legal(ev.KillJob(4, ("a",))) == () and len(table.referee.refusals) == told + 1
    assert "names no job" in table.why(ev.KillJob(4, ()))


def test_rejections() -> None:
    table = Table(job("a", 1), job("b", 1))
    table.run("a", "0")
    assert "is running" in table.why(ev.RejectJob(0, "a"))
    assert len(table.legal(ev.RejectJob(0, "b"))) == 1
    assert "is over" in table.why(ev.RejectJob(0, "b"))


def test_calls_and_times() -> None:
    table = Table()
    table.tell(7)
    assert "not due later" in table.why(ev.CallMeLater(7, 7))
    assert "not due later" in table.why(ev.CallMeLater(7, 3))
    assert "not due later" in table.why(ev.CallMeLater(7, 10**30))
    assert "its time" in table.why(ev.CallMeLater(6, 9))
    assert "its time" in table.why(ev.CallMeLater(8, 9))
    reply = table.referee.check(9, (ev.CallMeLater(8, 20), ev.CallMeLater(7, 20), ev.CallMeLater(9, 10)))
    assert [d.time for d in reply.decisions] == [8, 9] and reply.now == 9
    assert table.referee.check(3, ()).now == 7


def test_nothing_before_the_beginning_and_after_the_end() -> None:
    referee = Referee()
    assert referee.check(0, (ev.CallMeLater(0, 5),)).decisions == ()
    table = Table()
    table.tell(1, ev.SimulationEnds(1))
    assert "has ended" in table.why(ev.CallMeLater(1, 5))


def test_power_states() -> None:
    table = Table(job("a", 1))
    assert "energy" in table.why(ev.SetPowerState(0, parse("0"), 1))
    assert "energy" in table.why(ev.QueryEnergy(0))
    table = Table(job("a", 1), job("b", 1), energy=True)
    assert len(table.legal(ev.QueryEnergy(0))) == 1
    for bad in (3, 4, 5, -1):  # passed on the way, or not there
        assert f"power state {bad}" in table.why(ev.SetPowerState(0, parse("0"), bad))
    assert "outside" in table.why(ev.SetPowerState(0, parse("4"), 1))
    table.run("a", "0")
    assert "host 0 is busy" in table.why(ev.SetPowerState(0, parse("0-1"), 2))
    assert len(table.legal(ev.SetPowerState(0, parse("1-2"), 2))) == 1
    assert "host 2 is switching" in table.why(ev.SetPowerState(0, parse("2"), 0))
    assert "host 1 is switching" in table.why(execute("b", "1"))
    table.tell(1, ev.ResourceStateChanged(1, parse("1-2"), 2))
    assert "host 1 is asleep" in table.why(ev.ExecuteJob(1, "b", parse("1")))
    assert "power state 2" in table.why(ev.SetPowerState(1, parse("1"), 2))
    assert "some of the hosts sleep" in table.why(ev.SetPowerState(1, parse("1-3"), 0))
    assert len(table.legal(ev.SetPowerState(1, parse("1-2"), 1))) == 1
    table.tell(2, ev.ResourceStateChanged(2, parse("1-2"), 1))
    table.run("b", "1")


DELAY = {"type": "delay", "delay": 1.5}


def register(name: str = "d!a", profile: str = "p", time: int = 0) -> ev.RegisterJob:
    return ev.RegisterJob(time, name, 1, None, profile)


def test_registration_needs_dynamic_jobs() -> None:
    table = Table()
    assert "--enable-dynamic-jobs" in table.why(ev.RegisterProfile(0, "d", "p", DELAY))
    assert "--enable-dynamic-jobs" in table.why(register())
    assert "--enable-dynamic-jobs" in table.why(ev.FinishRegistration(0))


def test_registration() -> None:
    table = Table(job("w0!1", 1), dynamic_jobs=True)
    assert "no profile 'p'" in table.why(register())
    assert len(table.legal(ev.RegisterProfile(0, "d", "p", DELAY))) == 1
    assert "there already" in table.why(ev.RegisterProfile(0, "d", "p", DELAY))
    assert "static workload" in table.why(ev.RegisterJob(0, "w0!2", 1, None, "d"))
    assert "WORKLOAD!NAME" in table.why(register("a"))
    assert "no host" in table.why(ev.RegisterJob(0, "d!a", 0, None, "p"))
    assert "walltime" in table.why(ev.RegisterJob(0, "d!a", 1, 0, "p"))
    assert "JSON" in table.why(ev.RegisterJob(0, "d!a", 1, None, "p", {"x": float("nan")}))
    good = register()
    assert table.legal(good) == (good,)
    assert "known already" in table.why(good)
    table.run("d!a", "0")  # nobody acknowledges: it waits at once
    assert len(table.legal(ev.FinishRegistration(0))) == 1
    assert "declared finished" in table.why(register("d!b"))
    assert "declared finished" in table.why(ev.FinishRegistration(0))


def test_profiles_are_dropped_with_their_last_job() -> None:
    table = Table(dynamic_jobs=True)
    assert len(table.legal(ev.RegisterProfile(0, "d", "p", DELAY), register())) == 2
    table.run("d!a", "0")
    table.tell(2, done("d!a", 2))
    assert "dropped" in table.why(register("d!b", time=2))
    table = Table(dynamic_jobs=True, profile_reuse=True)
    assert len(table.legal(ev.RegisterProfile(0, "d", "p", DELAY), register())) == 2
    table.run("d!a", "0")
    table.tell(2, done("d!a", 2))
    assert len(table.legal(register("d!b", time=2))) == 1


def test_acknowledged_jobs_wait_for_the_acknowledgement() -> None:
    table = Table(dynamic_jobs=True, acknowledges=True)
    assert len(table.legal(ev.RegisterProfile(0, "d", "p", DELAY), register())) == 2
    assert "in submission" in table.why(execute("d!a", "0"))
    table.tell(0, job("d!a", 1, "p"))
    table.run("d!a", "0")


@pytest.mark.parametrize(
    "profile",
    [
        {},
        {"type": "smpi", "trace": "x"},
        {"type": []},
        {"type": "delay", "delay": 0},
        {"type": "delay", "delay": True},
        {"type": "delay", "delay": 1, "ret": 1.5},
        {"type": "parallel", "cpu": [1, 2], "com": [0]},
        {"type": "parallel", "cpu": [1, -2], "com": [0, 0, 0, 0]},
        {"type": "parallel_homogeneous", "cpu": 1},
        {"type": "parallel_homogeneous", "cpu": 1, "com": float("inf")},
        {"type": "composed", "seq": []},
        {"type": "composed", "seq": ["p", "q"]},
        {"type": "composed", "seq": ["p"], "repeat": 0},
        {"type": "composed", "seq": ["p", "p"], "repeat": 3},
        {"type": "parallel_homogeneous_pfs", "storage": "pfs"},
        {"type": "data_staging", "nb_bytes": 3, "from": "pfs"},
    ],
)
def test_profiles_that_batsim_would_refuse(profile: dict[str, Any]) -> None:
    table = Table(dynamic_jobs=True)
    assert len(table.legal(ev.RegisterProfile(0, "d", "p", DELAY))) == 1
    assert table.legal(ev.RegisterProfile(0, "d", "x", profile)) == ()


@pytest.mark.parametrize(
    "profile",
    [
        {"type": "parallel", "cpu": [1, 2], "com": [0, 0.5, 0, 0]},
        {"type": "parallel_homogeneous", "cpu": 1, "com": 0, "ret": 1},
        {"type": "parallel_homogeneous_total", "cpu": 1, "com": 0},
        {"type": "parallel_homogeneous_pfs", "bytes_to_write": 3},
        {"type": "data_staging", "nb_bytes": 3, "from": "pfs", "to": "bb"},
    ],
)
def test_profiles_that_batsim_takes(profile: dict[str, Any]) -> None:
    table = Table(dynamic_jobs=True)
    known = ev.RegisterProfile(0, "d", "p", DELAY), ev.RegisterProfile(0, "d", "x", profile)
    assert table.legal(*known) == known


def test_strict_raises_and_names_the_decision() -> None:
    referee = Referee(strict=True)
    referee.observe(ev.Message(0, (begin(),)))
    with pytest.raises(
        BridgeError, match=r"illegal decision: 0.000000 s: ExecuteJob a: there is no such job"
    ):
        referee.check(0, (execute("a", "0"),))


class Hostile:
    """Decides at random about everything that exists and much that does not."""

    registers = True

    def __init__(self, rng: random.Random, most: int = 8) -> None:
        self.rng, self.most = rng, most
        self.completed = 0
        self.ids = ["w0!nobody", "d!1", "d!2", "d!3", ""]
        self.sizes: dict[str, int] = {}
        self.refusals = 0

    def on_refused(self, decision: ev.Decision, why: str) -> None:  # noqa: ARG002
        self.refusals += 1

    def decide(self, message: ev.Message) -> Sequence[ev.Decision]:
        for event in message.events:
            if isinstance(event, ev.JobSubmitted):
                self.ids.append(event.job_id)
                self.sizes[event.job_id] = event.res
            self.completed += isinstance(event, ev.JobCompleted)
        return [self.one(message.now) for _ in range(self.rng.randrange(self.most))]

    def hosts(self, n: int) -> Any:
        rng = self.rng
        if rng.random() < 0.1:
            return rng.choice([((3, 1),), ((0, 1), (1, 2)), ((-1, 0),), None, ((0.5, 2),), (5,)])
        low = rng.randrange(9)
        return ((low, low + n - 1),) if n == 1 or rng.random() < 0.7 else ((low, low), (low + 2, low + n))

    def one(self, now: int) -> ev.Decision:
        rng = self.rng
        job_id = rng.choice(self.ids)
        size = self.sizes.get(job_id, 1) if rng.random() < 0.9 else rng.randrange(-1, 5)
        time = now if rng.random() < 0.95 else now + rng.choice([-1, 1])
        delay: Any = rng.choice([DELAY, DELAY, DELAY, {"type": "delay", "delay": 0}, {}])
        mine = rng.choice(["d!1", "d!2", "d!3", "d!4", "d!5", "w0!9", "d"])
        decisions = [
            (9, ev.ExecuteJob(time, job_id, self.hosts(max(size, 1)))),
            (4, ev.KillJob(time, tuple(rng.choices(self.ids, k=rng.randrange(4))))),
            (0.4, ev.RejectJob(time, job_id)),
            (2, ev.CallMeLater(time, now + rng.choice([-MICRO, 0, 1, MICRO]))),
            (3, ev.RegisterProfile(time, rng.choice(["d", "d", "w0", ""]), rng.choice("pqr"), delay)),
            (3, ev.RegisterJob(time, mine, rng.randrange(4), rng.choice([None, MICRO]), rng.choice("pqr"))),
            (0.3, ev.FinishRegistration(time)),
            (1, ev.SetPowerState(time, self.hosts(rng.randrange(1, 4)), rng.randrange(-1, 6))),
            (1, ev.QueryEnergy(time)),
        ]
        return rng.choices([d for _, d in decisions], [weight for weight, _ in decisions])[0]


def harass(
    seed: int,
    jobs: list[DelayJob],
    through: Callable[[DecisionProcess], Callable[[bytes], bytes]] = lambda process: process.reply_to_frame,
    **rules: bool,
) -> Hostile:
    """Let a hostile decider decide for a fake Batsim that asserts every rule.

    Args:
        seed: of the decisions.
        jobs, rules: the simulation's.
        through: makes what answers a frame of Batsim 4 of a process.
    """
    chooser = Hostile(random.Random(seed))
    process = DecisionProcess(cast(WireScheduler[Any], chooser), energy=rules["energy"])
    downs = [
        (3 * MICRO, {"type": "event_machine_unavailable", "resources": "0-2"}),
        (9 * MICRO, {"type": "event_machine_available", "resources": "1"}),
    ]
    fake = FakeBatsim(jobs, 9, events=downs, **rules)
    told, reply = 0, through(process)

    def answer(frame: bytes) -> bytes:
        nonlocal told
        told += 1
        if told > 60:  # calls without end
            chooser.ids, chooser.one = [], lambda now: ev.CallMeLater(now, now)  # type: ignore[method-assign]
        return reply(frame)

    fake.run(answer)
    return chooser


def seconds(least: int, most: int) -> st.SearchStrategy[int]:
    return st.integers(least, most).map(lambda s: s * MICRO)


JOB = st.builds(
    DelayJob, st.just(""), seconds(0, 12), seconds(1, 6), st.integers(1, 10), st.none() | seconds(1, 6)
)
JOBS = st.lists(JOB, min_size=1, max_size=12).map(
    lambda jobs: [replace(job, name=str(k)) for k, job in enumerate(jobs)]
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.integers(0, 2**32),
    JOBS,
    st.fixed_dictionaries(dict.fromkeys(("dynamic", "acknowledges", "energy"), st.booleans())),
)
def test_nothing_illegal_leaves_the_process(seed: int, jobs: list[DelayJob], rules: dict[str, bool]) -> None:
    harass(seed, jobs, **rules)


@needs_simgrid
@pytest.mark.parametrize("seed", range(3))
def test_the_embedded_model_never_aborts_under_a_hostile_decider(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made = [
        DelayJob(f"{k:02d}", rng.randrange(30) * MICRO, rng.randint(1, 9) * MICRO, rng.randint(1, 9), None)
        for k in range(40)
    ]
    chooser = Hostile(rng, most=40)
    process = DecisionProcess(cast(WireScheduler[Any], chooser))
    with Endpoint("tcp://127.0.0.1:*", startup_timeout=PATIENCE_S) as endpoint:
        child = model(tmp_path, made, 9, endpoint.address, *(["--enable-dynamic-jobs"] if seed else []))
        try:
            for told in range(1, 10_000):
                frame = endpoint.receive()
                if told > 120:  # calls without end
                    chooser.one = lambda now: ev.KillJob(now, ())  # type: ignore[method-assign]
                endpoint.send(process.reply_to_frame(frame))
        except PeerGoneError:
            pass
        _, errors = child.communicate(timeout=PATIENCE_S)
    # it may be stuck, since a hostile decider leaves jobs waiting, but never stops for a decision
    assert child.returncode in (0, STUCK), errors
    assert chooser.refusals > 100 and chooser.completed > 3


def test_the_hostile_decider_gets_something_through_and_something_not() -> None:
    made = [DelayJob(str(k), k * MICRO, 3 * MICRO, 1 + k % 3, None) for k in range(20)]
    chooser = harass(1, made, dynamic=True, energy=True)
    assert chooser.refusals > 50


def test_jobs_of_a_static_workload_under_names_that_no_log_has() -> None:
    table = Table(job("w0!1", 1), dynamic_jobs=True)
    assert "use a workload of your own" in table.why(ev.RegisterJob(0, "w0!1_2", 1, None, "d"))
    again = ev.RegisterJob(0, "w0!1~again~2", 1, None, "d")
    assert table.legal(again) == (again,)
    assert "known already" in table.why(again)
