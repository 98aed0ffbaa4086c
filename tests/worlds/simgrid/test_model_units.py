"""Parts of the platform model that need no SimGrid: numbers, intervals, options, profiles, jobs, sleeps."""

import json
import math
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.wire import hosts
from bridge.wire.fields import Fields, read_json
from bridge.worlds.simgrid import machines, options, profile_types, simulation, workload
from bridge.worlds.simgrid.options import USAGE
from bridge.worlds.simgrid.peer import Outbox
from bridge.worlds.simgrid.sleeps import NEVER, Sleeps, SleepsByDate, SleepsByRemainder


@pytest.mark.parametrize("text", ["NaN", '{"a": Infinity}', '{"a": 1, "a": 2}', "[1,", ""])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(BridgeError, match="is not JSON"):
        read_json(text)


def machine_ids(text: str) -> tuple[int, ...]:
    found = Fields({"alloc": text}).hosts("alloc")
    return tuple(i for low, high in found for i in range(low, high + 1))


@pytest.mark.parametrize(
    ("text", "ids"), [("0", (0,)), ("0-1 5", (0, 1, 5)), ("5 0-2 1", (0, 1, 2, 5)), ("7-7", (7,))]
)
def test_intervals_are_read(text: str, ids: tuple[int, ...]) -> None:
    assert machine_ids(text) == ids


@pytest.mark.parametrize("text", ["", " ", "1-", "-1", "2-1", "a", "0,1", "0  1", "1.0", "0--1", "²"])
def test_other_intervals_are_refused(text: str) -> None:
    with pytest.raises(BridgeError):
        machine_ids(text)


def test_intervals_are_written_as_runs() -> None:
    assert hosts.text_of(hosts.from_ids((0, 1, 2, 4, 6, 7))) == "0-2 4 6-7"
    assert hosts.text_of(hosts.from_ids(())) == ""


@given(st.sets(st.integers(0, 200), min_size=1))
def test_intervals_survive_a_round_trip(ids: set[int]) -> None:
    ordered = tuple(sorted(ids))
    assert machine_ids(hosts.text_of(hosts.from_ids(ordered))) == ordered


def test_the_command_line_is_batsims() -> None:
    line = "-p p.xml -w a.json -w b.json -s tcp://x:1 -e dir/out -m boss -r n1,n2:storage -E --mmax 4 -q"
    chosen = options.parse(line.split(), "")
    assert (chosen.platform, chosen.workloads, chosen.export) == ("p.xml", ["a.json", "b.json"], "dir/out")
    assert chosen.roles == {"boss": "master", "n1": "storage", "n2": "storage"}
    assert (chosen.energy, chosen.mmax, chosen.verbosity) == (True, 4, "quiet")
    assert (chosen.storage_sharing, chosen.compute_sharing, chosen.peer_timeout) == (True, False, None)


def test_a_scheduler_configuration_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "c").write_text('{"x": 1}\n')
    assert (
        options.parse(["-p", "p", "--sched-cfg-file", str(tmp_path / "c")], "").sched_config == '{"x": 1}\n'
    )


def test_unknown_events_are_forwarded_only_if_there_is_an_events_file() -> None:
    assert not options.parse(["-p", "p", "--forward-unknown-events"], "").forward_unknown
    assert options.parse(["-p", "p", "--forward-unknown-events", "--events", "e"], "").forward_unknown


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("-p p --enable-redis", "Redis"),
        ("-p p -W f.xml", "workflows"),
        ("-p p --workflow-jobs-limit=3", "workflows"),
        ("-p p --nonsense", "--nonsense"),
        ("-w w", "-p"),
        ("-p p --mmax x", "x"),
        ("-p p -r n1", "n1"),
        ("-p p --enable-profile-reuse", "--enable-dynamic-jobs"),
        *((f"-p p --peer-timeout {time}", "--peer-timeout") for time in ("0", "inf", "1e300", "nan")),
        ("-p p -v loud", "loud"),
    ],
)
def test_other_command_lines_are_refused_by_name(line: str, word: str) -> None:
    with pytest.raises(BridgeError, match=word) as refusal:
        options.parse(line.split(), "")
    assert refusal.value.status == USAGE


@pytest.mark.parametrize(
    ("description", "word"),
    [
        ({"type": "smpi", "trace": "t"}, "SMPI"),
        ({"type": "nonsense"}, "nonsense"),
        ({"delay": 1}, "type"),
        ({"type": "delay"}, "delay"),
        ({"type": "delay", "delay": 0}, "positive"),
        ({"type": "delay", "delay": True}, "number"),
        ({"type": "delay", "delay": 1, "ret": 1.5}, "ret"),
        ({"type": "parallel", "cpu": [1, 2], "com": [0, 0, 0]}, "com"),
        ({"type": "parallel_homogeneous", "cpu": 1, "com": -1}, "com"),
        ({"type": "composed", "seq": []}, "seq"),
        ({"type": "composed", "seq": ["a"], "repeat": 0}, "repeat"),
        ({"type": "parallel_homogeneous_pfs"}, "bytes_to_read"),
        ({"type": "data_staging", "nb_bytes": 1, "from": "a"}, "to"),
        ({"type": "send", "msg": "x"}, "msg"),
        ([], "object"),
    ],
)
def test_bad_profiles_are_refused(description: object, word: str) -> None:
    with pytest.raises(BridgeError, match=word) as refusal:
        profile_types.from_json("p", description)
    assert refusal.value.where == "profile 'p'"


def _load(tmp_path: Path, jobs: list[object], described: dict[str, object]) -> workload.SimulatedWorkload:
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": described}))
    return workload.load("w0", str(path))


D = {"type": "delay", "delay": 1}


@pytest.mark.parametrize(
    ("job", "word"),
    [
        ({"subtime": 0, "res": 1, "profile": "d"}, "id"),
        ({"id": 1, "res": 1, "profile": "d"}, "subtime"),
        ({"id": 1, "subtime": 0, "res": 1.5, "profile": "d"}, "res"),
        ({"id": 1, "subtime": 0, "res": -1, "profile": "d"}, "res"),
        ({"id": 1, "subtime": 0, "res": 1, "profile": "e"}, "'e' does not exist"),
        ({"id": 1, "subtime": 0, "res": 1, "profile": "d", "walltime": 0}, "walltime"),
        ({"id": "w00", "subtime": 0, "res": 1, "profile": "d"}, "w00"),
        ({"id": "a!b", "subtime": 0, "res": 1, "profile": "d"}, "!"),
        ({"id": 1, "subtime": 0, "res": 2, "profile": "p"}, "another number"),
    ],
)
def test_bad_jobs_are_refused(tmp_path: Path, job: object, word: str) -> None:
    with pytest.raises(BridgeError, match=word):
        _load(tmp_path, [job], {"d": D, "p": {"type": "parallel", "cpu": [1], "com": [0]}})


def test_a_job_keeps_its_extra_fields_and_gets_its_full_id(tmp_path: Path) -> None:
    job = {"id": 7, "subtime": 1, "res": 2, "profile": "d", "bb": 1.5, "nested": {"ident": "id"}}
    loaded = _load(tmp_path, [job], {"d": D}).jobs["w0!7"]
    assert loaded.text == (
        '{"id":"w0!7","subtime":1,"res":2,"profile":"d","bb":1.500000,"nested":{"ident":"id"}}'
    )
    assert (loaded.walltime, loaded.n_hosts, loaded.state) == (-1.0, 2, "NOT_SUBMITTED")


def test_nested_ids_are_renamed_too_as_batsim_does(tmp_path: Path) -> None:
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "d", "user": {"id": 5}}
    assert json.loads(_load(tmp_path, [job], {"d": D}).jobs["w0!a"].text)["user"] == {"id": "w0!a"}


def test_two_jobs_of_one_id_are_refused(tmp_path: Path) -> None:
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "d"}
    with pytest.raises(BridgeError, match="already exists"):
        _load(tmp_path, [job, job], {"d": D})


def test_unused_profiles_are_forgotten_and_used_ones_kept(tmp_path: Path) -> None:
    described: dict[str, object] = {
        "d": D,
        "step": D,
        "both": {"type": "composed", "seq": ["step"]},
        "lost": {"type": "composed", "seq": ["only"]},
        "only": D,
        "unused": D,
    }
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "both"}
    kept = {name: p is not None for name, p in _load(tmp_path, [job], described).profiles.items()}
    assert [name for name, alive in kept.items() if alive] == ["step", "both", "only"]


def test_errors_name_the_file_and_what_in_it(tmp_path: Path) -> None:
    with pytest.raises(BridgeError) as refusal:
        _load(tmp_path, [], {"p": {"type": "delay"}})
    assert refusal.value.where == f"{tmp_path}/w.json: profile 'p'"
    with pytest.raises(BridgeError) as refusal:
        _load(tmp_path, [{"id": 1, "res": 1, "profile": "d"}], {"d": D})
    assert refusal.value.where == f"{tmp_path}/w.json: job 'w0!1'"


def test_circles_of_composed_profiles_are_refused(tmp_path: Path) -> None:
    described: dict[str, object] = {
        "a": {"type": "composed", "seq": ["b"]},
        "b": {"type": "composed", "seq": ["a"]},
    }
    with pytest.raises(BridgeError, match="a -> b -> a"):
        _load(tmp_path, [], described)


def test_forgetting_the_last_job_drops_the_profile_and_its_steps(tmp_path: Path) -> None:
    job = {"id": "a", "subtime": 0, "res": 1, "profile": "c"}
    loaded = _load(tmp_path, [job], {"d": D, "c": {"type": "composed", "seq": ["d", "d"]}})
    loaded.forget("w0!a", collect_profiles=True)
    assert loaded.profiles == {"d": None, "c": None}
    with pytest.raises(BridgeError, match="dropped"):
        loaded.profile("d")
    with pytest.raises(BridgeError, match="over and forgotten"):
        loaded.job("w0!a")


def test_events_of_one_date_come_by_kind(tmp_path: Path) -> None:
    lines = [
        {"type": "other", "timestamp": 2},
        {"type": "machine_unavailable", "timestamp": 2, "resources": "0-1"},
        {"type": "machine_available", "timestamp": 2, "resources": "3"},
        {"type": "machine_unavailable", "timestamp": 1, "resources": "3"},
    ]
    path = tmp_path / "e.txt"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    read = workload.load_events(str(path), forward_unknown=True)
    assert [(e.time, e.kind, e.machines) for e in read] == [
        (1, "machine_unavailable", ((3, 3),)),
        (2, "machine_available", ((3, 3),)),
        (2, "machine_unavailable", ((0, 1),)),
        (2, "other", ()),
    ]
    with pytest.raises(BridgeError, match="other") as refusal:
        workload.load_events(str(path), forward_unknown=False)
    assert refusal.value.where == f"{path}:1"


def test_a_message_holds_the_queued_events_with_their_own_dates() -> None:
    now = 1.5
    outbox = Outbox(lambda: now)
    outbox.job_completed("w0!a", "COMPLETED_FAILED", 3, (0, 1, 5))
    now = 2
    outbox.resources("RESOURCE_STATE_CHANGED", ((2, 3),), "state", "1")
    message = json.loads(outbox.take())
    assert message == {
        "now": 2.0,
        "events": [
            {
                "timestamp": 1.5,
                "type": "JOB_COMPLETED",
                "data": {
                    "job_id": "w0!a",
                    "job_state": "COMPLETED_FAILED",
                    "return_code": 3,
                    "alloc": "0-1 5",
                },
            },
            {"timestamp": 2.0, "type": "RESOURCE_STATE_CHANGED", "data": {"state": "1", "resources": "2-3"}},
        ],
    }
    assert not outbox


@pytest.mark.parametrize("make", [SleepsByRemainder, SleepsByDate])
def test_sleeps_end_in_order_and_at_one_date_together(make: type[Sleeps]) -> None:
    sleeps, woken = make(), []
    for number, seconds in enumerate((3.0, 1.0, 3.0, 1.0 + 1e-10, 2.0), 1):
        sleeps.add(0.0, seconds, number, lambda number=number: woken.append(number))  # type: ignore[misc]
    sleeps.drop(3)
    assert sleeps.next(0.0) == 1.0
    now, ends = sleeps.move(0.0, 1.0)
    assert (now, [number for number, _ in ends]) == (1.0, [2, 4])
    now, ends = sleeps.move(now, 0.25)
    assert (now, ends, sleeps.next(now)) == (1.25, [], 0.75)
    now, ends = sleeps.move(now, 0.75)
    now, last = sleeps.move(now, sleeps.next(now))
    for _, end in (*ends, *last):
        end()
    assert (now, woken, sleeps.next(now)) == (3.0, [5, 1], NEVER)


def test_rounding_errors_add_up_as_in_simgrid_or_not_at_all() -> None:
    exact, rounding = SleepsByDate(), SleepsByRemainder()
    for sleeps in (exact, rounding):
        for number, seconds in enumerate((0.1, 0.3, 0.7), 1):
            sleeps.add(0.0, seconds, number, lambda: None)
    dates = []
    for sleeps in (exact, rounding):
        now = 0.0
        while sleeps.next(now) != NEVER:
            now, _ = sleeps.move(now, sleeps.next(now))
        dates.append(now)
    assert dates[0] == 0.7
    assert dates[1] == 0.1 + (0.3 - 0.1) + (0.7 - 0.1 - (0.3 - 0.1))
    assert math.isclose(dates[1], 0.7, rel_tol=1e-15)


def test_the_queue_is_taken_where_it_is_exact_or_the_workload_large(tmp_path: Path) -> None:
    (tmp_path / "p.xml").write_text('<platform version="4.1"><zone id="z" routing="Full"/></platform>')
    platform = ["-p", str(tmp_path / "p.xml")]
    work = {"type": "parallel_homogeneous", "cpu": 1, "com": 0}

    def taken(profile: object, jobs: int, *more: str) -> bool:
        listed: list[object] = [{"id": i, "subtime": 0, "res": 1, "profile": "p"} for i in range(jobs)]
        loaded = [_load(tmp_path, listed, {"p": profile})]
        chosen = options.parse([*platform, *more], "")
        return simulation.use_queue(chosen, loaded)[0]

    assert taken(D, 1)
    assert not taken(D, 1, "--enable-dynamic-jobs")
    assert not taken(D, 1, "-E")
    assert not taken(work, simulation.FEW_JOBS)
    assert taken(work, simulation.FEW_JOBS + 1)
    assert taken(work, 1, "--kernel", "queue")
    assert not taken(D, 1, "--kernel", "simgrid")
    with pytest.raises(BridgeError, match="energy"):
        taken(D, 1, "-E", "--kernel", "queue")


#: Declared to be in an encoding of which SimGrid takes no notice.
PLATFORM = (
    '<?xml version="1.0" encoding="iso-8859-1"?><platform version="4.1"><!-- é --><zone id="z"/></platform>'
)
HUGE = "1" + "0" * 400
FINE = '{"id": "a", "subtime": 0, "res": 1, "profile": "d"}'
WORKLOAD = '{"nb_res": 4, "jobs": [%s], "profiles": {"d": {"type": "delay", "delay": 1}%s}}'


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        WORKLOAD.encode("utf-16")[:-1],
        WORKLOAD % (FINE.replace('"a"', '"\xe9"'), "") + "\xe9",
        "[" * 100_000,
        WORKLOAD % ('{"id": ' + "[" * 500 + "]" * 500 + "}", ""),
        WORKLOAD % (FINE.replace('"a"', '"\\ud800"'), ""),
        WORKLOAD % (FINE.replace('"subtime": 0', '"subtime": 1e9999'), ""),
        WORKLOAD % (FINE.replace('"subtime": 0', f'"subtime": {HUGE}'), ""),
        WORKLOAD % (FINE.replace('"res": 1', '"res": ' + "7" * 5000), ""),
        WORKLOAD % (FINE.replace('"id"', f'"x": {HUGE}, "id"'), ""),
        WORKLOAD % (FINE, ', "r": {"type": "recv", "regex": "("}'),
        WORKLOAD % (FINE, ', "u": {"type": "usage_trace", "trace": "a\\u0000b"}'),
        WORKLOAD
        % (FINE, "".join(f', "p{i}": {{"type": "composed", "seq": ["p{i + 1}"]}}' for i in range(3000))),
        '{"nb_res": NaN}',
        "1",
        "",
    ],
)
def test_any_malformed_workload_is_one_error_that_names_the_file(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "w.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    with pytest.raises(BridgeError) as refusal:
        workload.load("w0", str(path))
    assert refusal.value.where.startswith(str(path))
    assert len(str(refusal.value)) < 1000 and len(str(refusal.value).splitlines()) <= 2


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_no_workload_events_or_platform(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(data)
        for read in (lambda name: workload.load("w0", name), machines.read_platform):
            with pytest.raises(BridgeError) as refusal:
                read(file.name)
            assert refusal.value.where.startswith(file.name)
        if data.strip(b"\r\n"):  # lines end in any of the two
            with pytest.raises(BridgeError):
                workload.load_events(file.name, forward_unknown=True)


@pytest.mark.parametrize(
    "text",
    [
        '<?xml version="1.0" encoding="utf-16"?><platform version="4.1"/>'.encode("utf-16"),
        b'<?xml version="1.0"?><platform version="4.1"><zone/></platforms>',
        b"<platform>" * 100_000,
        b"<platform>&undefined;</platform>" * 2,
        b"<zone/>",
    ],
)
def test_what_is_no_platform_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "p.xml").write_bytes(text)
    with pytest.raises(BridgeError) as refusal:
        machines.read_platform(str(tmp_path / "p.xml"))
    assert refusal.value.where.startswith(f"{tmp_path}/p.xml") and refusal.value.remedy


@pytest.mark.parametrize(
    "text", [PLATFORM.encode("latin-1"), b"\n" + PLATFORM.encode(), b"<!-- a -- b -->" + PLATFORM.encode()]
)
def test_the_platform_is_read_as_simgrid_reads_it(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "p.xml").write_bytes(text)
    assert [element.tag for element in machines.read_platform(str(tmp_path / "p.xml")).walk()] == [
        "platform",
        "zone",
    ]


@pytest.mark.parametrize("pstates", ["\u00b2:1:2", "9" * 5000 + ":1:2", "0:1", "0:1:3", "-1:1:2", "0:0:1"])
def test_sleep_states_that_are_none_are_refused(pstates: str) -> None:
    host = SimpleNamespace(pstate_count=3)
    machine = machines.SimulatedHost(host, "n")
    machine.properties["sleep_pstates"] = pstates
    with pytest.raises(BridgeError, match="sleep_pstates"):
        machines.read_pstates(machine)


def test_arguments_that_are_no_text_are_refused() -> None:
    with pytest.raises(BridgeError, match="UTF-8") as refusal:
        options.parse(["-p", "p", "--sched-cfg", "\udcff"], "")
    assert refusal.value.status == USAGE


def test_a_huge_set_of_machines_is_checked_before_it_is_expanded() -> None:
    few = machines.SimulatedHosts([machines.SimulatedHost(None, "n0")], [], machines.SimulatedHost(None, "m"))
    assert few.ids(((0, 0),)) == (0,)
    with pytest.raises(BridgeError, match="no machine 999999999999"):
        few.ids(((0, 999_999_999_999),))
