"""Whatever a decision process answers, the model goes on or ends with one error that names the answer."""

import json
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_process import needs_simgrid, started

from bridge.base.errors import BridgeError
from bridge.worlds.simgrid import options, workload
from bridge.worlds.simgrid.machines import SimulatedHost, SimulatedHosts
from bridge.worlds.simgrid.model import SimulationModel
from bridge.worlds.simgrid.queue_kernel import QueueRuntime
from bridge.worlds.simgrid.server import Server
from bridge.worlds.simgrid.simulation import jobs_of, submitter

HOSTS = 4
PROFILES = {
    "d": {"type": "delay", "delay": 2},
    "s": {"type": "send", "msg": {"a": 1}},
    "r": {"type": "recv", "success": "d", "failure": "d", "timeout": "r"},
    "c": {"type": "composed", "repeat": 10**12, "seq": ["d", "s"]},
    "e": {"type": "delay", "delay": 1, "ret": 10**300},
}
JOBS = [
    {"id": name, "subtime": i / 2, "res": 1 + i % 2, "profile": name, "walltime": 7}
    for i, name in enumerate(PROFILES)
]
WORKLOAD = json.dumps({"nb_res": HOSTS, "jobs": JOBS, "profiles": PROFILES})


class Host:
    """What the queue needs of a host; messages take no time."""

    def __init__(self, name: str) -> None:
        self.name = name

    def route_to(self, _other: "Host") -> tuple[list[Any], float]:
        return [SimpleNamespace(bandwidth=1e18)], 0.0


class Script:
    """Gives prepared answers, then none that would go on."""

    def __init__(self, answers: list[bytes]) -> None:
        self._left = answers[::-1]
        self.answers = 0
        self.waited_s = 0.0

    def ask(self, message: str, _meanwhile: Any) -> bytes:
        json.loads(message)
        if not self._left:
            raise BridgeError("enough", where=f"answer {self.answers}")
        self.answers += 1
        return self._left.pop()


def simulate(folder: Path, answers: list[bytes]) -> None:
    """Run a simulation without SimGrid; BridgeError is what may come out of it."""
    (folder / "w.json").write_text(WORKLOAD)
    chosen = options.parse(["-p", "p", "-e", str(folder / "out"), "-q", "--enable-dynamic-jobs"], "")
    machines = SimulatedHosts(
        [SimulatedHost(Host(f"n{i}"), f"n{i}") for i in range(HOSTS)], [], SimulatedHost(Host("m"), "m")
    )
    loaded = workload.load("w0", str(folder / "w.json"))
    kernel = QueueRuntime(None)
    model = SimulationModel(chosen, machines, [loaded], [], kernel)
    model.peer = Script(answers)  # type: ignore[assignment]
    actor = submitter(model, "jobs", jobs_of(loaded), attrgetter("subtime"))
    kernel.start("jobs", machines.master.host, actor)
    kernel.start("server", machines.master.host, Server(model).actor())
    try:
        kernel.run()
    finally:
        model.close(complete=False)


NUMBERS = st.sampled_from([0, 1, 0.5, 3, -1, 1e308, -1e308, 10**300, 2**63, 1e-300, True, None, "0"])
_TEXTS = (
    "w0!d w0!s w0!r w0!c w0!e w0!x x!d w0! ! 0 0-3 0-999999999999 1-0 é d w0 999999999999999999999 "
    "RUNNING REJECTED registration_finished continue_registration consumed_energy"
)
TEXTS = st.sampled_from(_TEXTS.split())
_KEYS = (
    "job_id job_ids alloc timestamp type data requests mapping storage_mapping additional_io_job "
    "profile_name profile job resources state metadata job_state msg workload_name id subtime res "
    "walltime delay seq repeat"
)
KEYS = st.sampled_from(_KEYS.split())
VALUES = st.recursive(
    NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | TEXTS, inner, max_size=4),
    max_leaves=6,
)
LIKELY: dict[str, dict[str, Any]] = {
    "EXECUTE_JOB": {"job_id": "w0!d", "alloc": "0"},
    "KILL_JOB": {"job_ids": ["w0!d"]},
    "REJECT_JOB": {"job_id": "w0!s"},
    "CALL_ME_LATER": {"timestamp": 3},
    "REGISTER_PROFILE": {
        "workload_name": "dyn",
        "profile_name": "p",
        "profile": {"type": "delay", "delay": 1},
    },
    "REGISTER_JOB": {"job_id": "dyn!1", "job": {"id": "dyn!1", "subtime": 0, "res": 1, "profile": "p"}},
    "QUERY": {"requests": {"consumed_energy": {}}},
    "ANSWER": {},
    "CHANGE_JOB_STATE": {"job_id": "w0!d", "job_state": "RUNNING"},
    "SET_RESOURCE_STATE": {"resources": "0-1", "state": "1"},
    "SET_JOB_METADATA": {"job_id": "w0!d", "metadata": "x"},
    "NOTIFY": {"type": "registration_finished"},
    "TO_JOB_MSG": {"job_id": "w0!r", "msg": "hello"},
}


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """An event that is nearly right: some of its fields replaced, added or left out."""
    kind = draw(st.sampled_from(sorted(LIKELY)))
    data = {
        key: draw(VALUES) if draw(st.integers(0, 4)) == 0 else value for key, value in LIKELY[kind].items()
    }
    if draw(st.booleans()) and "job_id" in data:
        data["job_id"] = draw(TEXTS)
    if draw(st.integers(0, 5)) == 0:
        data |= draw(st.dictionaries(KEYS, VALUES, max_size=2))
    event = {"timestamp": draw(st.just(0) | NUMBERS), "type": kind, "data": data}
    return event | draw(st.just({}) | st.dictionaries(KEYS, VALUES, max_size=1))


ANSWERS = st.builds(
    lambda now, events: json.dumps({"now": now, "events": events}).encode(),
    st.sampled_from([0, 0.5, 1, 2.5, 10]) | NUMBERS,
    st.lists(events(), max_size=4),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    answers=st.lists(
        ANSWERS | st.binary(max_size=20) | VALUES.map(lambda value: json.dumps(value).encode()), max_size=6
    )
)
def test_any_answers_are_followed_or_refused(tmp_path: Path, answers: list[bytes]) -> None:
    empty = b'{"now": 0, "events": []}'
    try:
        simulate(tmp_path, [empty, *answers])
    except BridgeError as error:
        assert error.where.startswith(("answer", "job '", "KILL_JOB"))
        assert len(str(error).splitlines()) <= 2
        str(error).encode()


HUGE = "1" + "0" * 400
EXECUTE = (
    '{"now": 0, "events": [{"timestamp": 0, "type": "EXECUTE_JOB", "data": {"job_id": "w0!d", "alloc": %s}}]}'
)


@needs_simgrid
@pytest.mark.parametrize(
    "raw",
    [
        b'{"now": 1e9999, "events": []}',
        f'{{"now": {HUGE}, "events": []}}'.encode(),
        f'{{"now": {"7" * 5000}, "events": []}}'.encode(),
        b"[" * 100_000,
        b'{"now": 0, "events": [{"timestamp": 0, "type": "\\ud800", "data": {}}]}',
        b'\xff{"now": 0}',
        b'{"now": 0, "events": [{"timestamp": 0, "type": "\xed\xa0\x80", "data": {}}]}',
        (EXECUTE % '"0-999999999999"').encode(),
        (EXECUTE % '"0-99999999999999999999999999"').encode(),
        (EXECUTE % f'"0", "mapping": {{"0": "{"9" * 5000}"}}').encode(),
        (EXECUTE % '"0", "storage_mapping": {"a": 1e3}').encode(),
    ],
)
def test_beyond_all_limits_is_one_error_in_little_memory(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "w.json").write_text(WORKLOAD)
    (tmp_path / "p.xml").write_text(
        '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
        '<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="1Gf"/>'
        '<host id="n0" speed="1Gf"/><link id="l" bandwidth="1GBps" latency="0us"/>'
        '<route src="master_host" dst="n0"><link_ctn id="l"/></route>'
        '<route src="master_host" dst="master_host"><link_ctn id="l"/></route></zone></platform>'
    )
    with started(tmp_path, "-p", "p.xml", "-w", "w.json", "-q", memory=2 << 30) as model:
        assert model.hear() is not None
        model.say('{"now": 0, "events": []}')
        assert model.hear() is not None
        model.say(raw)
        assert model.hear() is None
        status, errors = model.end()
    assert status == 1
    assert errors.startswith("bridge simgrid: error: answer 2") and len(errors.splitlines()) <= 2
    assert len(errors) < 500 and "Traceback" not in errors
