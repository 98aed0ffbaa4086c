"""A scripted Batsim for tests and benchmarks: delay jobs in plain Python, the wire as the real one spells it.

It shares no line with the code under test, and asserts every rule whose breach would abort the real Batsim.
"""

import heapq
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import batsim4_accepts

MICRO = 1_000_000


@dataclass
class DelayJob:
    """A job of the workload; times in microseconds, a walltime of None is none."""

    name: str
    submit: int
    run: int
    res: int
    walltime: int | None
    more: dict[str, Any] = field(default_factory=dict)


def seconds(time: int) -> str:
    return f"{time // MICRO}.{time % MICRO:06d}"


def number(time: int) -> str:
    """Return a time as a workload's field: whole numbers stay whole."""
    return str(time // MICRO) if time % MICRO == 0 else seconds(time)


def hosts_of(alloc: str) -> set[int]:
    found: set[int] = set()
    for word in alloc.split():
        low, _, high = word.partition("-")
        ids = range(int(low), int(high or low) + 1)
        assert not found & set(ids), f"{alloc}: twice"
        found |= set(ids)
    return found


class FakeBatsim:
    """Simulates delay jobs; yields messages and is sent replies.

    Attributes:
        starts, ends: microseconds by job name.
        rejected: names.
        deadlocked: it had to stop before the end, as the real one does, silently.
    """

    def __init__(
        self,
        jobs: list[DelayJob],
        hosts: int,
        *,
        dynamic: bool = False,
        acknowledges: bool = False,
        reuse: bool = False,
        energy: bool = False,
        sharing: bool = False,
        events: list[tuple[int, dict[str, Any]]] | None = None,
        names: list[str] | None = None,
        storage: list[str] | None = None,
        profiles: dict[str, Any] | None = None,
    ) -> None:
        self.jobs = {f"w0!{job.name}": job for job in jobs}
        self.n_hosts = hosts
        self.names = names or [f"node{k:05d}" for k in range(hosts)]
        self.storage = storage or []
        self.profiles = profiles
        self.dynamic, self.finished_registration = dynamic, not dynamic
        self.acknowledges, self.energy, self.reuse, self.sharing = acknowledges, energy, reuse, sharing
        self.registered: dict[str, dict[str, Any]] = {}  # workload -> profiles; None once collected
        self.pstate = [0] * hosts
        self.switching: set[int] = set()
        self.external = sorted(events or [], key=lambda event: event[0])
        self.now = 0
        self.starts: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.state: dict[str, str] = {}
        self.alloc: dict[str, str] = {}
        self.owner: dict[int, str] = {}
        self.down: set[int] = set()
        self.rejected: list[str] = []
        self.deadlocked = False
        self.decisions: list[dict[str, Any]] = []
        self._queue: list[tuple[int, int, str, Any]] = []  # (time, serial, kind, what)
        self._serial = 0
        self._calls = 0

    def _later(self, time: int, kind: str, what: Any) -> None:
        heapq.heappush(self._queue, (time, self._serial, kind, what))
        self._serial += 1

    def _message(self, *events: str) -> bytes:
        text = ",".join(f'{{"timestamp":{seconds(self.now)},{event}}}' for event in events)
        return f'{{"now":{seconds(self.now)},"events":[{text}]}}'.encode()

    def _begin(self) -> str:
        def resource(k: int, name: str, role: str) -> str:
            power = ',"wattage_per_state":"9:9:9,8:8:8,1:1:1,2:2:2,2:2:2","sleep_pstates":"2:3:4"'
            shown = power if self.energy else ""
            properties = f'"properties":{{"role":"{role}"{shown}}},"zone_properties":{{}}'
            return f'{{"id":{k},"name":"{name}","state":"idle",{properties}}}'

        profiles = self.profiles
        if profiles is None:
            runs = sorted({job.run for job in self.jobs.values()})
            profiles = {f"delay{run}": {"type": "delay", "delay": run / MICRO} for run in runs}
        compute = ",".join(resource(k, name, "") for k, name in enumerate(self.names))
        storage = ",".join(resource(self.n_hosts + k, name, "storage") for k, name in enumerate(self.storage))
        return (
            f'"type":"SIMULATION_BEGINS","data":{{"nb_resources":{self.n_hosts + len(self.storage)},'
            f'"nb_compute_resources":{self.n_hosts},"nb_storage_resources":{len(self.storage)},'
            f'"allow_compute_sharing":{str(self.sharing).lower()},"allow_storage_sharing":true,"config":{{"redis-enabled":false,'
            f'"dynamic-jobs-enabled":{str(self.dynamic).lower()},"sched-config":"",'
            f'"profile-reuse-enabled":{str(self.reuse).lower()},'
            f'"dynamic-jobs-acknowledged":{str(self.acknowledges).lower()}}},"compute_resources":[{compute}],'
            f'"storage_resources":[{storage}],"workloads":{{"w0":"/w.json"}},'
            f'"profiles":{{"w0":{json.dumps(profiles)}}}}}'
        )

    def _submission(self, job_id: str) -> str:
        job = self.jobs[job_id]
        more = "".join(f",{json.dumps(key)}:{json.dumps(value)}" for key, value in job.more.items())
        wall = "" if job.walltime is None else f',"walltime":{number(job.walltime)}'
        profile = "" if "profile" in job.more else f',"profile":"delay{job.run}"'
        return (
            f'"type":"JOB_SUBMITTED","data":{{"job_id":"{job_id}","job":{{"id":"{job_id}",'
            f'"subtime":{number(job.submit)}{wall},"res":{job.res}{profile}{more}}}}}'
        )

    def _completion(self, job_id: str, state: str) -> str:
        self.ends[self.jobs[job_id].name] = self.now
        self.state[job_id] = state
        for host in hosts_of(self.alloc[job_id]):
            self.owner.pop(host, None)
        self._collect(job_id)
        code = 0 if state == "COMPLETED_SUCCESSFULLY" else -1
        return (
            f'"type":"JOB_COMPLETED","data":{{"job_id":"{job_id}","job_state":"{state}","return_code":{code},'
            f'"alloc":"{self.alloc[job_id]}"}}'
        )

    def _collect(self, job_id: str) -> None:
        """Forget a registered profile after its last job."""
        if self.reuse:
            return
        workload = job_id.partition("!")[0]
        name = self.jobs[job_id].more.get("profile")
        if workload in self.registered and not any(
            self.state[other] in ("waiting", "running", "announced")
            for other in self.state
            if other.partition("!")[0] == workload and self.jobs[other].more.get("profile") == name
        ):
            self.registered[workload][name] = None

    def talk(self) -> Iterator[bytes]:
        """Yield each message; the reply is sent in with ``send``."""
        yield from self._ask(self._begin())
        for job_id in sorted(self.jobs, key=lambda i: (self.jobs[i].submit, i)):
            self._later(self.jobs[job_id].submit, "submit", job_id)
        for time, event in self.external:
            self._later(time, "external", event)
        to_submit, said_last = len(self.jobs), False
        while self._queue:
            self.now = self._queue[0][0]
            told: list[str] = []
            while self._queue and self._queue[0][0] == self.now:
                _, _, kind, what = heapq.heappop(self._queue)
                if kind in ("submit", "announce"):
                    self.state[what] = "waiting"
                    told.append(self._submission(what))
                    to_submit -= kind == "submit"
                elif kind == "end" and self.state[what[0]] == "running":
                    told.append(self._completion(*what))
                elif kind == "call":
                    self._calls -= 1
                    told.append('"type":"REQUESTED_CALL","data":{}')
                elif kind == "answer":
                    told.append('"type":"ANSWER","data":{"consumed_energy":1.500000}')
                elif kind == "switched":
                    if set(what[0]) <= self.switching and (what[1] == 2 or self._sleep(what[0])):
                        self.switching -= set(what[0])
                        for host in what[0]:
                            self.pstate[host] = what[1]
                    ids = " ".join(map(str, what[0]))
                    changed = f'{{"resources":"{ids}","state":"{what[1]}"}}'
                    told.append(f'"type":"RESOURCE_STATE_CHANGED","data":{changed}')
                elif kind == "external":
                    ids = hosts_of(what["resources"])
                    self.down = (
                        self.down | ids if what["type"] == "event_machine_unavailable" else self.down - ids
                    )
                    told.append(f'"type":"NOTIFY","data":{json.dumps(what)}')
            if told:
                yield from self._ask(*told)
            if not to_submit and not said_last:
                said_last = True
                yield from self._ask('"type":"NOTIFY","data":{"type":"no_more_static_job_to_submit"}')
        open_jobs = [
            job_id for job_id, state in self.state.items() if state in ("waiting", "running", "announced")
        ]
        if open_jobs or not self.finished_registration:
            self.deadlocked = True
            return
        yield from self._ask('"type":"SIMULATION_ENDS","data":{}', last=True)

    def _ask(self, *events: str, last: bool = False) -> Iterator[bytes]:
        reply = yield self._message(*events)
        assert isinstance(reply, bytes), "the driver must send the reply"
        killed = self._obey(reply, last)
        if killed:
            told = [self._completion(job_id, "COMPLETED_KILLED") for job_id in killed]
            named = json.dumps({"job_ids": killed, "job_progress": {}})
            yield from self._ask(*told, f'"type":"JOB_KILLED","data":{named}')

    def _obey(self, reply: bytes, last: bool) -> list[str]:
        """Carry out a reply and return the jobs that it kills."""
        answer = json.loads(reply)
        batsim4_accepts.check(answer)
        now = round(answer["now"] * MICRO)
        assert now == self.now, "this fake knows no decision times"
        assert not (last and answer["events"]), "a decision after the end"
        killed: list[str] = []
        for event in answer["events"]:
            assert round(event["timestamp"] * MICRO) == self.now
            self.decisions.append(event)
            kind, data = event["type"], event["data"]
            if kind == "EXECUTE_JOB":
                self._execute(data)
            elif kind == "REJECT_JOB":
                assert self.state.get(data["job_id"]) == "waiting", f"rejects {data['job_id']}"
                self.state[data["job_id"]] = "rejected"
                self.rejected.append(self.jobs[data["job_id"]].name)
                self._collect(data["job_id"])
            elif kind == "KILL_JOB":
                assert data["job_ids"]
                for job_id in data["job_ids"]:
                    assert self.state.get(job_id) == "running", f"kills {job_id}, {self.state.get(job_id)}"
                    if job_id not in killed:
                        killed.append(job_id)
            elif kind == "CALL_ME_LATER":
                at = round(data["timestamp"] * MICRO)
                assert at > self.now, "a call in the past"
                self._calls += 1
                self._later(at, "call", None)
            elif kind == "NOTIFY":
                assert self.dynamic and not self.finished_registration
                assert data == {"type": "registration_finished"}
                self.finished_registration = True
            else:
                self._obey_rarer(kind, data)
        return killed

    def _obey_rarer(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "QUERY":
            assert self.energy and data == {"requests": {"consumed_energy": {}}}
            self._later(self.now, "answer", None)
        elif kind == "SET_RESOURCE_STATE":
            self._switch(sorted(hosts_of(data["resources"])), int(data["state"]))
        elif kind == "REGISTER_PROFILE":
            assert self.dynamic and not self.finished_registration
            profile = data["profile"]
            assert profile["type"] == "delay" and profile["delay"] > 0
            known = self.registered.setdefault(data["workload_name"], {})
            assert data["workload_name"] != "w0" and data["profile_name"] not in known
            known[data["profile_name"]] = profile
        elif kind == "REGISTER_JOB":
            self._register(data["job_id"], data["job"])
        else:
            raise AssertionError(f"{kind} is not expected here")

    def _switch(self, ids: list[int], state: int) -> None:
        assert self.energy and ids and ids[-1] < self.n_hosts and state in (0, 1, 2)
        assert not set(ids) & (self.down | set(self.owner) | self.switching)
        assert not (state == 2 and any(self.pstate[host] == 2 for host in ids)), "sleeps already"
        slow = [host for host in ids if 2 in (state, self.pstate[host])]
        assert slow in ([], ids), "some sleep and some do not"
        if not slow:  # between computing states at once; the word comes later all the same
            for host in ids:
                self.pstate[host] = state
        self.switching |= set(slow)
        self._later(self.now + (MICRO if slow else 0), "switched", (ids, state))

    def _sleep(self, ids: list[int]) -> bool:
        return all(self.pstate[host] == 2 for host in ids)

    def _register(self, job_id: str, job: dict[str, Any]) -> None:
        assert self.dynamic and not self.finished_registration
        assert job_id not in self.jobs and job["id"] == job_id and job["res"] > 0
        profile = self.registered[job_id.partition("!")[0]][job["profile"]]
        assert profile is not None, "the profile was collected"
        walltime = round(job["walltime"] * MICRO) if "walltime" in job else None
        run = round(profile["delay"] * MICRO)
        self.jobs[job_id] = DelayJob(job_id, self.now, run, job["res"], walltime, {"profile": job["profile"]})
        self.state[job_id] = "announced" if self.acknowledges else "waiting"
        if self.acknowledges:
            self._later(self.now, "announce", job_id)

    def _execute(self, data: dict[str, Any]) -> None:
        job_id, alloc = data["job_id"], hosts_of(data["alloc"])
        assert self.state.get(job_id) == "waiting", f"executes {job_id}, {self.state.get(job_id)}"
        job = self.jobs[job_id]
        mapping = data.get("mapping")  # rank -> place in the allocation
        size = len(alloc) if mapping is None else len(mapping)
        assert size == job.res and alloc <= set(range(self.n_hosts)), f"{job_id} on {data['alloc']}"
        assert mapping is None or {int(place) for place in mapping.values()} <= set(range(len(alloc)))
        assert not alloc & self.down, f"{job_id} on hosts that are down"
        assert not alloc & self.switching and all(self.pstate[host] < 2 for host in alloc), (
            f"{job_id} on sleepers"
        )
        for host in alloc:
            assert self.sharing or host not in self.owner, f"host {host} runs {self.owner[host]}"
            self.owner[host] = job_id
        self.state[job_id], self.alloc[job_id] = "running", data["alloc"]
        self.starts[job.name] = self.now
        walled = job.walltime is not None and job.run >= job.walltime
        length = job.walltime if walled and job.walltime is not None else job.run
        end = "COMPLETED_WALLTIME_REACHED" if walled else "COMPLETED_SUCCESSFULLY"
        self._later(self.now + length, "end", (job_id, end))

    @property
    def start_times(self) -> dict[str, float]:
        """Job name -> when it started, in seconds."""
        return {name: time / MICRO for name, time in self.starts.items()}

    def decisions_of(self, kind: str) -> list[dict[str, Any]]:
        return [event["data"] for event in self.decisions if event["type"] == kind]

    def run(self, answer: Callable[[bytes], bytes]) -> "FakeBatsim":
        """Talk to a function that answers frames, to the end."""
        talk = self.talk()
        try:
            message = next(talk)
            while True:
                message = talk.send(answer(message))  # type: ignore[attr-defined]
        except StopIteration:
            return self

    def run_on(self, socket: Any) -> "FakeBatsim":
        """Talk over a connected REQ socket, to the end."""
        return self.run(asking(socket))


def asking(socket: Any) -> Callable[[bytes], bytes]:
    """Return what sends frames over a connected REQ socket and returns the answers."""

    def ask(frame: bytes) -> bytes:
        socket.send(frame)
        reply: bytes = socket.recv()
        return reply

    return ask
