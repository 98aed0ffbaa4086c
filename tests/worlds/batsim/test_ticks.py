"""The time-stepped pool behind the wire: every start and kill in the step of the fast world, all legal."""

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import batsim4_accepts
import numpy as np
import pytest
from fake_batsim import MICRO, DelayJob, FakeBatsim
from hypothesis import given, settings
from hypothesis import strategies as st
from pool_policies import EVERYBODY, POOL, RECIPE, NamedPolicy, any_jobs, eager, sequences
from small_pools import Rows, sequences_of

from bridge.base.arrays import Ints
from bridge.base.errors import BridgeError
from bridge.pool.attempts import plain
from bridge.pool.batsim_dispatcher import PoolDispatcher, PoolDispatcherConfig
from bridge.pool.heuristics import PoolActionFunction, PoolBatchBase, heuristic_actions
from bridge.pool.jobset import with_estimates
from bridge.pool.observation import PictureBatch
from bridge.pool.schedule import PoolSchedule
from bridge.pool.settings import PoolConfig
from bridge.pool.world import Sequences
from bridge.worlds.batsim.estimates import estimate_at_submission
from bridge.worlds.batsim.process import DecisionProcess

STEP = 300 * MICRO


def delay_jobs(drawn: Sequences, s: int) -> list[DelayJob]:
    """Return a sequence as jobs that sleep; ids are places in the sequence, not padded."""
    jobs, made = drawn.jobs, []
    for place, (step, k) in enumerate(zip(*drawn.arrivals_of(s), strict=True), 1):
        more = {"believed": int(jobs.believed[k]), "beliefs": jobs.beliefs[k].tolist()}
        run = int(jobs.length[k]) * STEP - MICRO
        made.append(DelayJob(str(place), int(step) * STEP, run, int(jobs.units[k]), None, more))
    return made


@dataclass
class Simulated:
    fake: FakeBatsim
    ticks: PoolDispatcher

    def same_as(self, schedule: PoolSchedule) -> None:
        """Assert that every attempt began and ended in the step of the fast world, and is what it says."""
        tickets = sorted(self.ticks.tickets, key=lambda ticket: int(ticket.event.job_id[3:]))
        last = [ticket.current for ticket in tickets]
        assert [a.start_step for a in last] == schedule.start.tolist()
        assert [a.end_step for a in last] == schedule.end.tolist()
        killed = sorted(
            (a.index, a.start_step, a.end_step, a.belief) for ticket in tickets for a in ticket.attempts[:-1]
        )
        expected = [(int(k.job), int(k.start), int(k.end), int(k.belief)) for k in schedule.attempts]
        assert killed == sorted(expected)
        for attempt in self.ticks.jobs.values():
            name = attempt.job_id if attempt.number > 1 else attempt.job_id[3:]
            assert self.fake.starts[name] == attempt.start_step * STEP + MICRO
            assert self.fake.ends[name] <= attempt.end_step * STEP + MICRO


def simulate(
    drawn: Sequences,
    s: int,
    who: NamedPolicy,
    *,
    acknowledges: bool = False,
    pool: PoolConfig = POOL,
    **setup: Any,
) -> Simulated:
    """Play a sequence against the scripted peer."""
    made = PoolDispatcherConfig(who.make(), pool, who.kill, **setup)
    process = DecisionProcess(PoolDispatcher(made), strict=True)
    dynamic = who.kill != "none"
    fake = FakeBatsim(delay_jobs(drawn, s), pool.units, dynamic=dynamic, acknowledges=acknowledges)
    fake.run(process.reply_to_frame)
    assert not fake.deadlocked and not process.result().missing
    assert isinstance(process.dispatcher, PoolDispatcher)
    return Simulated(fake, process.dispatcher)


#: Of several agents of one kind, one meets a peer that acknowledges dynamic jobs.
ONE_OF_A_KIND = list({(who.kill, who.name.partition(" ")[0]): who for who in EVERYBODY}.values())


@pytest.mark.parametrize(
    ("who", "acknowledges"),
    [*((who, False) for who in EVERYBODY), *((who, True) for who in ONE_OF_A_KIND)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_every_policy_decides_as_in_the_fast_world(who: NamedPolicy, acknowledges: bool) -> None:
    drawn = sequences()
    schedules = who.fast(drawn)
    for s, schedule in enumerate(schedules[:1] if acknowledges else schedules):
        simulate(drawn, s, who, acknowledges=acknowledges).same_as(schedule)
    assert (sum(len(schedule.attempts) for schedule in schedules) > 0) == (who.kill != "none")


def test_the_belief_at_submission_is_deeprms_view() -> None:
    drawn, who = sequences(), EVERYBODY[3]
    schedules = who.fast(Sequences(with_estimates(drawn.jobs, "submit"), drawn.arrivals))
    simulate(drawn, 0, who, believe=estimate_at_submission).same_as(schedules[0])
    assert schedules[0].start.tolist() != who.fast(drawn)[0].start.tolist()


def test_another_source_of_beliefs_takes_the_place_of_the_series() -> None:
    drawn, who = sequences(3, 1), EVERYBODY[3]
    asked: list[tuple[str, int]] = []

    def believe(job: Any, run: int) -> int:
        asked.append((job.job_id, run))
        place = int(job.job_id[3:]) - 1
        return int(drawn.jobs.length[drawn.arrivals_of(0)[1][place]]) if run else int(job.fields["believed"])

    jobs = drawn.jobs
    told = np.repeat(jobs.length.astype(np.int16)[:, None], jobs.beliefs.shape[1], axis=1)
    schedule = who.fast(Sequences(replace(jobs, beliefs=told), drawn.arrivals))[0]
    simulate(drawn, 0, who, believe=believe).same_as(schedule)
    lengths = dict(zip(range(1, 99), jobs.length[drawn.arrivals_of(0)[1]].tolist(), strict=False))
    assert all(run < lengths[int(job_id[3:])] for job_id, run in asked)


@settings(max_examples=40)
@given(
    any_jobs(10, 20),
    st.lists(st.integers(-1, 5), min_size=2, max_size=25),
    st.sampled_from(["none", "rule", "learned"]),
    st.integers(0, 99),
    st.booleans(),
)
def test_any_jobs(rows: Rows, arrivals: list[int], kill: Any, seed: int, told: bool) -> None:
    drawn = sequences_of(rows, [a if a < len(rows) else -1 for a in arrivals])
    who = NamedPolicy("any", kill, eager(replace(RECIPE, kill=kill), seed))
    simulate(drawn, 0, who, acknowledges=told).same_as(who.fast(drawn)[0])


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 6000),
            st.sampled_from([1, 150, 299, 300, 301, 599, 600, 900, 1234, 6000]),
            st.integers(1, 10),
            st.integers(1, 15),
            st.lists(st.integers(1, 40), min_size=1, max_size=6),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["none", "rule", "learned"]),
    st.integers(0, 99),
    st.booleans(),
)
def test_jobs_may_take_any_time_and_each_is_run_to_its_end_once(
    rows: list[tuple[int, int, int, int, list[int]]], kill: Any, seed: int, told: bool
) -> None:
    jobs = [
        DelayJob(str(k), at * MICRO, run * MICRO, units, None, {"believed": believed, "beliefs": series})
        for k, (at, run, units, believed, series) in enumerate(rows, 1)
    ]
    ticks = PoolDispatcher(PoolDispatcherConfig(eager(replace(RECIPE, kill=kill), seed)(), POOL, kill))
    process = DecisionProcess(ticks, strict=True)
    fake = FakeBatsim(jobs, POOL.units, dynamic=kill != "none", acknowledges=told)
    fake.run(process.reply_to_frame)
    assert not fake.deadlocked and not process.result().missing
    assert len(ticks.tickets) == len(jobs)
    for ticket in ticks.tickets:
        *killed, last = ticket.attempts
        assert [attempt.state for attempt in killed] == ["COMPLETED_KILLED"] * len(killed)
        assert last.state == "COMPLETED_SUCCESSFULLY"
        steps = [step for attempt in ticket.attempts for step in (attempt.start_step, attempt.end_step)]
        assert steps == sorted(steps) and all(attempt.ran > 0 for attempt in ticket.attempts)


# By hand: a pool of 4 units. Job 1 has all of them. Believed to run 2 steps, and after one 12, it is killed.

SMALL = PoolConfig(units=4, slots=2, kill_slots=2, horizon=16, last_step=20)
LONG = {
    "id": "w0!1",
    "subtime": 300,
    "res": 4,
    "profile": "p",
    "believed": 2,
    "beliefs": [2, 12],
    "user": "u",
}


class Talk:
    """A conversation by hand; times in seconds."""

    def __init__(
        self,
        answer: PoolActionFunction | None = None,
        *,
        kill: Any = "rule",
        hosts: int = 4,
        strict: bool = True,
        config: dict[str, Any] | None = None,
        profiles: dict[str, Any] | None = None,
        pool: PoolConfig = SMALL,
    ) -> None:
        self.ticks = PoolDispatcher(PoolDispatcherConfig(answer or heuristic_actions("saf"), pool, kill))
        self.process = DecisionProcess(self.ticks, strict=strict)
        self.config = {"dynamic-jobs-enabled": kill != "none"} | (config or {})
        self.hosts = hosts
        self.profiles = {"p": {"type": "delay", "delay": 599}} if profiles is None else profiles

    def begin(self) -> list[tuple[str, Any]]:
        compute = [{"id": k, "name": f"n{k}", "state": "idle", "properties": {}} for k in range(self.hosts)]
        begin = {
            "nb_compute_resources": self.hosts,
            "compute_resources": compute,
            "config": self.config,
            "workloads": {"w0": "w.json"},
            "profiles": {"w0": self.profiles},
        }
        return self.say(0, ("SIMULATION_BEGINS", begin))

    def say(self, now: float, *events: tuple[str, Any]) -> list[tuple[str, Any]]:
        told = [{"timestamp": now, "type": kind, "data": data} for kind, data in events]
        reply = json.loads(self.process.reply_to_frame(json.dumps({"now": now, "events": told}).encode()))
        batsim4_accepts.check(reply)
        assert reply["now"] == now
        return [(event["type"], event["data"]) for event in reply["events"]]

    def submit(self, now: float, **other: Any) -> list[tuple[str, Any]]:
        job = {**LONG, **other}
        return self.say(now, ("JOB_SUBMITTED", {"job_id": job["id"], "job": job}))


def start_talk(answer: PoolActionFunction | None = None, **how: Any) -> Talk:
    """Return a conversation that has begun."""
    talk = Talk(answer, **how)
    talk.begin()
    return talk


def running(**how: Any) -> Talk:
    """Return a conversation in which job 1 has just started."""
    talk = start_talk(**how)
    talk.submit(300)
    talk.say(301, CALL)
    return talk


CALL: tuple[str, Any] = ("REQUESTED_CALL", {})
LAST: tuple[str, Any] = ("NOTIFY", {"type": "no_more_static_job_to_submit"})
FINISHED = ("NOTIFY", {"type": "registration_finished"})
SUCCESS, KILLED = "COMPLETED_SUCCESSFULLY", "COMPLETED_KILLED"


def later(seconds: float) -> tuple[str, Any]:
    return "CALL_ME_LATER", {"timestamp": seconds}


def ended(job_id: str, state: str = SUCCESS, hosts: str = "0-3") -> tuple[str, Any]:
    data = {"job_id": job_id, "job_state": state, "return_code": 0, "alloc": hosts}
    return "JOB_COMPLETED", data


def gone(*job_ids: str, **progress: Any) -> tuple[str, Any]:
    return "JOB_KILLED", {"job_ids": list(job_ids), "job_progress": progress}


def start(job_id: str, hosts: str = "0-3") -> tuple[str, Any]:
    return "EXECUTE_JOB", {"job_id": job_id, "alloc": hosts}


def test_a_kill_and_the_next_attempt_by_hand() -> None:
    talk = Talk()
    assert talk.begin() == [later(301)]
    assert talk.submit(300) == []
    assert talk.say(300, LAST) == []
    assert talk.say(301, CALL) == [later(601), start("w0!1")]
    assert talk.say(601, CALL) == [("KILL_JOB", {"job_ids": ["w0!1"]}), later(901)]
    how = {"w0!1": {"profile_name": "p", "progress": 0.5}}
    registered = talk.say(
        601, ended("w0!1", KILLED), ("JOB_KILLED", {"job_ids": ["w0!1"], "job_progress": how})
    )
    again = {
        "id": "w0_again!1_2",
        "res": 4,
        "profile": "1_2:p",
        "user": "u",
        "beliefs": [2, 12],
        "attempt": 2,
        "again": "w0!1",
        "kills": 1,
        "lost": 1,
        "believed": 12,
        "progress": {"profile_name": "p", "progress": 0.5},
        "subtime": 601.0,
    }
    profile = {
        "workload_name": "w0_again",
        "profile_name": "1_2:p",
        "profile": {"type": "delay", "delay": 599},
    }
    assert registered == [
        ("REGISTER_PROFILE", profile),
        ("REGISTER_JOB", {"job_id": "w0_again!1_2", "job": again}),
        start("w0_again!1_2"),
    ]
    assert talk.say(901, CALL) == [later(1201)]
    assert talk.say(1200, ended("w0_again!1_2")) == [FINISHED]
    assert talk.say(1201, CALL) == []
    assert talk.say(1201, ("SIMULATION_ENDS", {})) == []
    result = talk.process.result()
    assert (result.outcome.name, result.counts()["submitted"]) == ("ENDED", 1)
    first, second = result.as_dict()["jobs"]
    assert (first["state"], first["start_step"], first["end_step"], first["start"]) == (KILLED, 1, 2, 301)
    assert first["progress"] == how["w0!1"]
    assert (second["attempt"], second["again"], second["state"]) == (2, "w0!1", SUCCESS)
    assert (second["start_step"], second["end_step"], second["submit"]) == (2, 4, 300)


def test_an_announced_attempt_starts_once_it_is_announced() -> None:
    talk = start_talk(config={"dynamic-jobs-acknowledged": True})
    talk.submit(300)
    talk.say(301, LAST, CALL)
    talk.say(601, CALL)
    registered = talk.say(601, ended("w0!1", KILLED), gone("w0!1"))
    assert [kind for kind, _ in registered] == ["REGISTER_PROFILE", "REGISTER_JOB"]
    assert registered[1][1]["job"]["progress"] is None
    assert plain({"a": [Decimal("0.5"), {"b": 1}]}) == {"a": [0.5, {"b": 1}]}
    announced = ("JOB_SUBMITTED", {"job_id": "w0_again!1_2", "job": registered[1][1]["job"]})
    assert talk.say(601, announced) == [start("w0_again!1_2")]


#: Of a Batsim that keeps profiles.
REUSED = {"profile-reuse-enabled": True}


def test_a_composed_profile_is_never_registered_but_used_again() -> None:
    parts = {
        "work": {"type": "delay", "delay": 5},
        "talk": {"type": "parallel_homogeneous", "cpu": 0, "com": 1.5},
        "p": {"type": "composed", "repeat": 2, "seq": ["work", "talk", "work"]},
    }
    with pytest.raises(BridgeError, match="--enable-profile-reuse is missing"):
        Talk(profiles=parts).begin()
    talk = running(profiles=parts, config=REUSED)
    talk.say(601, CALL)
    registered = talk.say(601, ended("w0!1", KILLED), gone("w0!1"))
    assert [kind for kind, _ in registered] == ["REGISTER_JOB", "EXECUTE_JOB"]
    told = registered[0][1]
    assert told["job_id"] == told["job"]["id"] == registered[1][1]["job_id"] == "w0!1~again~2"
    assert (told["job"]["profile"], told["job"]["again"], told["job"]["attempt"]) == ("p", "w0!1", 2)
    talk.say(901, CALL)
    assert talk.say(1200, ended("w0!1~again~2")) == []
    assert talk.say(1201, LAST, CALL) == [FINISHED]


def test_a_composed_profile_that_is_told_late_needs_the_option_as_well() -> None:
    whole = {"type": "composed", "seq": ["part"]}
    talk = start_talk(profiles={"part": {"type": "delay", "delay": 7}})
    told = {"job_id": "w0!1", "job": LONG, "profile": whole}
    with pytest.raises(BridgeError, match="--enable-profile-reuse is missing") as error:
        talk.say(300, ("JOB_SUBMITTED", told))
    assert error.value.where.endswith("job w0!1")


def test_a_job_is_not_killed_when_its_end_stands_in_the_same_message() -> None:
    for events in ((CALL, ended("w0!1")), (ended("w0!1"), CALL)):
        talk = running()
        assert talk.say(601, *events) == [later(901)]
        assert talk.ticks.jobs["w0!1"].end_step == 2


def test_an_end_in_the_instant_of_the_kill_counts_in_the_next_step_and_the_job_does_not_run_again() -> None:
    talk = running()
    assert talk.say(601, CALL)[0] == ("KILL_JOB", {"job_ids": ["w0!1"]})
    assert talk.say(601, ended("w0!1"), gone("w0!1")) == []
    assert talk.submit(700, id="w0!2", beliefs=[2]) == []
    # the pool believes that job 1 runs again since step 2: job 2 is booked when that is seen to be over
    assert talk.say(901, CALL) == [later(1201), start("w0!2")]
    assert (talk.ticks.jobs["w0!1"].start_step, talk.ticks.jobs["w0!1"].end_step) == (1, 3)
    assert talk.say(1500, LAST, ended("w0!2")) == [FINISHED]
    assert list(talk.ticks.jobs) == ["w0!1", "w0!2"]
    assert not talk.process.result().missing


def test_an_end_told_behind_the_tick_counts_in_the_next_step() -> None:
    talk = start_talk(kill="none")
    talk.submit(300)
    talk.submit(300, id="w0!2")
    talk.say(301, LAST, CALL)
    assert talk.say(601, CALL) == [later(901)]
    assert talk.say(601, ended("w0!1")) == []
    assert talk.say(901, CALL) == [later(1201), start("w0!2")]
    assert talk.ticks.jobs["w0!1"].end_step == 3


def test_a_start_waits_for_the_hosts_of_a_kill_that_is_carried_out_late() -> None:
    talk = running()
    talk.say(601, CALL)
    assert talk.say(901, CALL) == [later(1201)]
    told = talk.say(901.5, ended("w0!1", KILLED), gone("w0!1"))
    assert told[-1] == start("w0_again!1_2")
    assert talk.ticks.jobs["w0_again!1_2"].start_step == 3


def test_what_has_not_really_begun_is_killed_without_a_word() -> None:
    wanted = [2, 2, 0, 2, 3, 0, 2, 3, 2, 2]

    def answer(pools: PoolBatchBase, view: PictureBatch, live: Ints) -> Ints:  # noqa: ARG001
        return np.array([wanted.pop(0)])

    talk = start_talk(answer, kill="learned")
    talk.say(301, CALL)
    talk.submit(302)
    assert talk.say(601, CALL)[-1] == start("w0!1")
    assert talk.say(901, CALL)[0] == ("KILL_JOB", {"job_ids": ["w0!1"]})
    assert talk.say(1201, CALL) == [later(1501)]
    told = talk.say(1202, ended("w0!1", KILLED), gone("w0!1"))
    assert [kind for kind, _ in told] == ["REGISTER_PROFILE", "REGISTER_JOB"]
    assert talk.say(1501, CALL) == [later(1801)]
    assert talk.ticks.jobs["w0_again!1_2"].state == "waiting"


def test_a_late_call_makes_up_for_the_steps_and_never_asks_for_the_past() -> None:
    talk = start_talk(kill="none")
    talk.submit(300)
    assert talk.say(300.5, CALL) == []  # nobody asked for that
    assert talk.say(1201, CALL) == [later(1501), start("w0!1")]
    assert talk.ticks.live.now == 4
    assert talk.ticks.passes == 4


def test_jobs_of_one_tick_come_in_order_of_time_and_number() -> None:
    talk = start_talk(kill="none", pool=replace(SMALL, slots=3))
    for now, job_id in ((299, "w0!11"), (300, "w0!10"), (300, "w0!9")):
        talk.submit(now, id=job_id, subtime=now)
    assert talk.say(301, CALL) == [later(601), start("w0!11")]
    assert [ticket.event.job_id for ticket in talk.ticks.tickets] == ["w0!11", "w0!9", "w0!10"]


def test_ticks_end_with_the_jobs() -> None:
    talk = Talk(kill="none", config={"dynamic-jobs-enabled": True})
    assert talk.begin() == [FINISHED, later(301)]
    assert talk.say(0, LAST) == []
    assert talk.say(301, CALL) == []
    talk = start_talk()
    assert talk.say(0, LAST) == [FINISHED]


def test_jobs_that_cannot_run_are_rejected() -> None:
    talk = start_talk(kill="none", pool=replace(SMALL, backlog=0, slots=1))
    assert talk.submit(300, res=5) == [("REJECT_JOB", {"job_id": "w0!1"})]
    assert talk.ticks.jobs["w0!1"].why == "asks for 5 hosts; a job of this pool has 1 to 4"
    talk.submit(300, id="w0!2")
    talk.submit(300, id="w0!10")
    assert talk.say(301, CALL) == [("REJECT_JOB", {"job_id": "w0!10"}), later(601), start("w0!2")]
    assert talk.ticks.jobs["w0!10"].why == "0 jobs wait already"
    talk = start_talk(kill="none", profiles={"p": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1}})
    assert talk.submit(300) == [("REJECT_JOB", {"job_id": "w0!1"})]


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ({"believed": None}, "its field 'believed' is None"),
        ({"believed": 0}, "its field 'believed' is 0"),
        ({"beliefs": []}, "its field 'beliefs' is \\[\\]"),
        ({"beliefs": [1, "x"]}, "its field 'beliefs' is"),
        ({"believed": 16}, "is believed to run 16 steps, but only 1 to 15 can be booked"),
    ],
)
def test_jobs_without_beliefs_are_refused(job: dict[str, Any], says: str) -> None:
    talk = start_talk()
    with pytest.raises(BridgeError, match=says) as error:
        talk.submit(300, **job)
    assert error.value.where == "message 2, time 300.000000 s, job w0!1"


def test_a_job_without_the_field_is_refused() -> None:
    talk = start_talk()
    job = {key: value for key, value in LONG.items() if key != "believed"}
    with pytest.raises(BridgeError, match="its field 'believed' is missing"):
        talk.say(300, ("JOB_SUBMITTED", {"job_id": "w0!1", "job": job}))


def test_platforms_that_will_not_do_are_refused() -> None:
    with pytest.raises(BridgeError, match="the platform has 3 compute hosts, the pool 4 units"):
        Talk(hosts=3).begin()
    with pytest.raises(BridgeError, match="--enable-dynamic-jobs is missing"):
        Talk(config={"dynamic-jobs-enabled": False}).begin()
    with pytest.raises(BridgeError, match="reads true lengths"):
        Talk(pool=replace(SMALL, oracle_clamp=True))
    talk = start_talk()
    with pytest.raises(BridgeError, match="hosts leave or come back"):
        talk.say(1, ("NOTIFY", {"type": "event_machine_unavailable", "resources": "0"}))
    with pytest.raises(BridgeError, match="the first message is not SIMULATION_BEGINS"):
        Talk().say(0, CALL)
    with pytest.raises(BridgeError, match="a second simulation begins"):
        talk.begin()
    with pytest.raises(BridgeError, match="completed, but was never submitted"):
        talk.say(2, ended("w0!7"))


@pytest.mark.parametrize("profiles", [{}, {"p": {"type": "composed", "seq": ["part"]}}])
def test_a_profile_that_was_not_told_is_missed_before_it_is_needed(profiles: dict[str, Any]) -> None:
    talk = start_talk(profiles=profiles, config={"profile-reuse-enabled": True})
    with pytest.raises(BridgeError, match="its profile 'p' is not known") as error:
        talk.submit(300)
    assert "--forward-profiles-on-submission" in error.value.remedy
    job = {"job_id": "w0!1", "job": LONG, "profile": {"type": "delay", "delay": 7}}
    talk = start_talk(profiles={})
    assert talk.say(300, ("JOB_SUBMITTED", job)) == []
    talk = start_talk(kill="none", profiles={})
    assert talk.submit(300) == []


@pytest.mark.parametrize(
    "profiles",
    [
        {"p": {"type": "smpi", "trace": "t"}},
        {"p": {"type": "usage_trace", "trace": "t"}},
    ],
)
def test_a_profile_that_cannot_be_registered_is_refused_before_a_kill(profiles: dict[str, Any]) -> None:
    talk = start_talk(profiles=profiles)
    with pytest.raises(BridgeError, match="could not be registered again after a kill: a profile"):
        talk.submit(300)
    talk = start_talk(kill="none", profiles=profiles)
    assert talk.submit(300) == []


def test_a_registration_that_the_referee_refuses_costs_one_job_only() -> None:
    talk = start_talk(strict=False, config={"profile-reuse-enabled": True})
    talk.submit(300, res=2)
    talk.submit(300, id="w0!2", res=2, believed=9, beliefs=[9])
    assert [kind for kind, _ in talk.say(301, LAST, CALL)] == ["CALL_ME_LATER", "EXECUTE_JOB", "EXECUTE_JOB"]
    talk.submit(302, id="w0!3", believed=9, beliefs=[9])
    talk.say(601, CALL)
    talk.process.referee._met["w0_again!1_2"] = None  # both it and the start in the same reply are refused
    told = talk.say(601, ended("w0!1", KILLED, "0-1"), gone("w0!1"))
    assert [kind for kind, _ in told] == ["REGISTER_PROFILE"]
    assert talk.ticks.jobs["w0_again!1_2"].state == "lost"
    assert talk.say(901, CALL) == [later(1201)]
    assert talk.say(1200, ended("w0!2", hosts="2-3")) == []
    assert talk.say(1201, CALL) == [later(1501), start("w0!3")]
    assert talk.say(1300, ended("w0!3")) == [FINISHED]


def test_a_number_that_is_too_long_is_a_name() -> None:
    talk = start_talk(kill="none")
    talk.submit(300, id="w0!" + 25 * "9")
    assert talk.say(301, CALL)[-1] == start("w0!" + 25 * "9")
    assert talk.ticks.live.state.jobs.id[0, 0] == 1


def test_a_policy_that_never_starts_anything_is_given_up() -> None:
    talk = start_talk(lambda *_: np.array([2]), kill="none")
    now = 301.0
    talk.say(now, CALL)
    while now < 300 * 50:  # no job: waiting is right
        now += 300
        assert talk.say(now, CALL) == [later(now + 300)]
    talk.submit(now + 1)
    with pytest.raises(BridgeError, match="1 job is unfinished, and in 21 steps with an empty pool"):
        for _ in range(50):
            now += 300
            talk.say(now, CALL)
    assert now == 301 + 300 * (49 + 21)


def test_a_start_that_the_referee_refuses_is_lost_and_a_kill_is_none() -> None:
    talk = start_talk(strict=False)
    talk.submit(300)
    talk.process.referee._busy |= 1
    assert talk.say(301, LAST, CALL) == [later(601)]
    assert talk.ticks.jobs["w0!1"].state == "lost"
    assert [job.job_id for job in talk.process.result().missing] == ["w0!1"]

    talk = running(strict=False)
    talk.process.referee._jobs["w0!1"].state = "waiting"
    assert talk.say(601, CALL) == [later(901)]
    talk.process.referee._jobs["w0!1"].state = "running"
    assert talk.say(901, LAST, CALL) == [later(1201)]
    assert talk.say(1200, ended("w0!1")) == [FINISHED]
    assert talk.ticks.jobs["w0!1"].state == SUCCESS
