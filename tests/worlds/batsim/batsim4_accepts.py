"""What Batsim 4.2.1 survives of a reply, as far as one reply tells: written from what was seen to abort it.

It shares no line with the code under test. What depends on the simulation (is the job running, are the hosts
free?) is asserted by `fake_batsim`.
"""

import re
from itertools import pairwise
from typing import Any

#: Intervals of ids, ascending and apart, as in "0-1 5".
_HOSTS = re.compile(r"\d+(-\d+)?( \d+(-\d+)?)*")
#: Fields of each decision's data: those it must have, and those it may have.
_DATA: dict[str, tuple[set[str], set[str]]] = {
    "EXECUTE_JOB": ({"job_id", "alloc"}, {"mapping", "storage_mapping"}),
    "KILL_JOB": ({"job_ids"}, set()),
    "REJECT_JOB": ({"job_id"}, set()),
    "CALL_ME_LATER": ({"timestamp"}, set()),
    "REGISTER_PROFILE": ({"workload_name", "profile_name", "profile"}, set()),
    "REGISTER_JOB": ({"job_id", "job"}, set()),
    "NOTIFY": ({"type"}, set()),
    "SET_RESOURCE_STATE": ({"resources", "state"}, set()),
    "QUERY": ({"requests"}, set()),
}
#: Profiles that can be registered: a composed one would have no parts, its job be a segmentation fault.
_PROFILES = {
    "delay": {"delay"},
    "parallel": {"cpu", "com"},
    "parallel_homogeneous": {"cpu", "com"},
    "parallel_homogeneous_total": {"cpu", "com"},
    "parallel_homogeneous_pfs": set[str](),
    "data_staging": {"nb_bytes", "from", "to"},
}


def check(reply: dict[str, Any]) -> None:
    """Assert that Batsim survives a reply.

    Args:
        reply: as `json.loads` has it.
    """
    assert set(reply) == {"now", "events"}
    times = [_number(event["timestamp"]) for event in reply["events"]]
    assert times == sorted(times) and all(time <= _number(reply["now"]) for time in times)
    over: set[str] = set()
    for event in reply["events"]:
        assert set(event) == {"timestamp", "type", "data"}
        kind, data = event["type"], event["data"]
        must, may = _DATA[kind]
        assert must <= set(data) <= must | may, f"{kind}: {sorted(data)}"
        _RULES.get(kind, lambda *_: None)(data, reply["now"])
        if kind in ("EXECUTE_JOB", "KILL_JOB", "REJECT_JOB"):
            jobs = data.get("job_ids") or [data["job_id"]]
            assert not over & set(jobs), f"{kind}: decided about twice"
            over |= set(jobs)


def _number(value: Any) -> float:
    assert type(value) in (int, float) and 0 <= value < float("inf")
    return float(value)


def _hosts(text: str) -> None:
    assert _HOSTS.fullmatch(text), f"hosts {text!r}"
    bounds = [int(bound) for word in text.split() for bound in (word.split("-") * 2)[:2]]
    ends = list(zip(bounds[::2], bounds[1::2], strict=True))
    assert all(low <= high for low, high in ends)
    assert all(high < low for (_, high), (low, _) in pairwise(ends))


def _execute(data: dict[str, Any], _: float) -> None:
    _hosts(data["alloc"])
    assert not {"mapping", "storage_mapping"} <= set(data)
    for rank, place in data.get("mapping", {"0": "0"}).items():
        assert rank.isdigit() and type(place) is str and place.isdigit()
    storage = data.get("storage_mapping", {"label": 0})
    assert storage and all(type(label) is str and type(host) is int for label, host in storage.items())


def _kill(data: dict[str, Any], _: float) -> None:
    assert data["job_ids"] and len(set(data["job_ids"])) == len(data["job_ids"])


def _call(data: dict[str, Any], now: float) -> None:
    assert _number(data["timestamp"]) > now


def _register_profile(data: dict[str, Any], _: float) -> None:
    assert data["workload_name"] and "!" not in data["workload_name"]
    profile = data["profile"]
    assert _PROFILES[profile["type"]] <= set(profile)
    assert type(profile.get("ret", 0)) is int
    assert profile["type"] != "delay" or profile["delay"] > 0


def _register_job(data: dict[str, Any], _: float) -> None:
    job = data["job"]
    assert data["job_id"].count("!") == 1 and job["id"] == data["job_id"]
    assert type(job["res"]) is int and job["res"] > 0 and type(job["profile"]) is str
    assert _number(job["subtime"]) >= 0 and ("walltime" not in job or _number(job["walltime"]) > 0)


def _notify(data: dict[str, Any], _: float) -> None:
    assert data["type"] == "registration_finished"


def _power(data: dict[str, Any], _: float) -> None:
    _hosts(data["resources"])
    assert type(data["state"]) is str and data["state"].isdigit()


def _query(data: dict[str, Any], _: float) -> None:
    assert data["requests"] == {"consumed_energy": {}}


_RULES = {
    "EXECUTE_JOB": _execute,
    "KILL_JOB": _kill,
    "CALL_ME_LATER": _call,
    "REGISTER_PROFILE": _register_profile,
    "REGISTER_JOB": _register_job,
    "NOTIFY": _notify,
    "SET_RESOURCE_STATE": _power,
    "QUERY": _query,
}
