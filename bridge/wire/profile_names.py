"""Batsim 5's names of profiles: in a workload's file, and on the wire. Everywhere else they are Batsim 4's.

| Batsim 4 | Batsim 5 |
|---|---|
| delay | DelayProfile |
| parallel | ParallelTaskProfile |
| parallel_homogeneous, …_total | ParallelTaskHomogeneousProfile, by its generation_strategy |
| composed | SequentialCompositionProfile |
| parallel_homogeneous_pfs | ParallelTaskOnStorageHomogeneousProfile |
| data_staging | ParallelTaskDataStagingBetweenStoragesProfile |

A file has the keys of Batsim 4; on the wire keys have longer names, and profiles are called WORKLOAD!NAME.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

ProfileFields = Mapping[str, Any]

STRATEGY = "generation_strategy"
EACH, SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"
_STORED = "ParallelTaskOnStorageHomogeneousProfile"


class _Kind(NamedTuple):
    """Batsim 5's type, its keys on the wire by Batsim 4's, and its strategy."""

    name: str
    keys: dict[str, str]
    strategy: str = ""


_HOMOGENEOUS = {"cpu": "computation_amount", "com": "communication_amount"}
_KINDS = {
    "delay": _Kind("DelayProfile", {"delay": "delay"}),
    "parallel": _Kind("ParallelTaskProfile", {"cpu": "computation_vector", "com": "communication_matrix"}),
    "parallel_homogeneous": _Kind("ParallelTaskHomogeneousProfile", _HOMOGENEOUS, EACH),
    "parallel_homogeneous_total": _Kind("ParallelTaskHomogeneousProfile", _HOMOGENEOUS, SPREAD),
    "composed": _Kind("SequentialCompositionProfile", {"repeat": "repetition_count", "seq": "profile_ids"}),
    "parallel_homogeneous_pfs": _Kind(
        _STORED,
        {"storage": "storage_name", "bytes_to_read": "bytes_to_read", "bytes_to_write": "bytes_to_write"},
    ),
    "data_staging": _Kind(
        "ParallelTaskDataStagingBetweenStoragesProfile",
        {"nb_bytes": "bytes_to_transfer", "from": "emitter_storage_name", "to": "receiver_storage_name"},
    ),
}
#: What Batsim assumes where a profile leaves it out.
_DEFAULTS: dict[str, Any] = {"storage": "pfs", "bytes_to_read": 0, "bytes_to_write": 0, "repeat": 1}
#: Batsim 5's type, and its strategy where that tells, -> Batsim 4's.
_BACK = {(kind.name, kind.strategy): simulated for simulated, kind in _KINDS.items()}


def _simulated_type(name: str, strategy: str) -> str | None:
    return _BACK.get((name, strategy)) or _BACK.get((name, ""))


def of_file(profile: ProfileFields) -> dict[str, Any]:
    """Return a profile of a workload's file of Batsim 5 as Batsim 4 has it; other types stay as they are."""
    own = dict(profile)
    simulated_type = _simulated_type(str(own.get("type")), str(own.get(STRATEGY, EACH)))
    if simulated_type is None:
        return own
    if _KINDS[simulated_type].strategy:
        own.pop(STRATEGY, None)
    return own | {"type": simulated_type}


def to_file(profile: ProfileFields) -> dict[str, Any] | None:
    """Return a profile as a workload's file of Batsim 5 has it; None: it has no such profile."""
    kind = _KINDS.get(str(profile.get("type")))
    if kind is None:
        return None
    own = {key: value for key, value in profile.items() if key != "ret"}
    own["type"] = kind.name
    if kind.strategy == SPREAD:
        own[STRATEGY] = SPREAD
    return own


def is_simulated_differently(profile: ProfileFields) -> bool:
    """Tell whether 5.0.0-rc2 would simulate a profile otherwise: it writes as much as it reads."""
    amounts = [profile.get(key, 0) for key in ("bytes_to_read", "bytes_to_write")]
    return profile.get("type") == "parallel_homogeneous_pfs" and amounts[0] != amounts[1]


def spread(profile: ProfileFields, hosts: int) -> dict[str, Any]:
    """Return such a profile for the file with all hosts' amounts together, which 5.0.0-rc2 gets right."""
    own = dict(profile) | {"type": _STORED, STRATEGY: SPREAD}
    for key in ("bytes_to_read", "bytes_to_write"):
        own[key] = own.get(key, 0) * hosts
    return own


def of_wire(name: str, fields: ProfileFields, workload: str) -> dict[str, Any]:
    """Convert a profile of Batsim 5 (type name, own fields) to Batsim 4's form.

    Parts of the same workload lose its name.
    """
    simulated_type = _simulated_type(name, str(fields.get(STRATEGY, EACH)))
    if simulated_type is None:
        return {"type": name, **fields}
    names = {theirs: ours for ours, theirs in _KINDS[simulated_type].keys.items()}
    own = {names.get(key, key): value for key, value in fields.items()}
    if _KINDS[simulated_type].strategy:
        own.pop(STRATEGY, None)
    if simulated_type == "composed" and isinstance(own.get("seq"), list):
        own["seq"] = [local(part, workload) if isinstance(part, str) else part for part in own["seq"]]
    return {"type": simulated_type, **own}


def to_wire(profile: ProfileFields, workload: str) -> tuple[str, dict[str, Any]]:
    own = dict(profile)
    profile_type = str(own.pop("type", ""))
    own.pop("ret", None)
    kind = _KINDS.get(profile_type)
    if kind is None:
        return profile_type, own
    if profile_type == "parallel_homogeneous_pfs" and "host" in own:
        own["storage"] = own.pop("host")
    own = {key: value for key, value in _DEFAULTS.items() if key in kind.keys} | own
    if profile_type == "composed":
        own["seq"] = [f"{workload}!{part}" if "!" not in part else part for part in own["seq"]]
    fields = {kind.keys.get(key, key): value for key, value in own.items()}
    return kind.name, fields | ({STRATEGY: kind.strategy} if kind.strategy else {})


def local(name: str, workload: str) -> str:
    """Return a profile's name without that of its workload, if it is in it."""
    return name.removeprefix(f"{workload}!")


def of_workload(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a workload's file of either version with the names and fields of Batsim 4."""
    jobs = [_with_fields(job) if isinstance(job, dict) else job for job in content["jobs"]]
    profiles = {
        name: of_file(profile) if isinstance(profile, dict) else profile
        for name, profile in content["profiles"].items()
    }
    return content | {"jobs": jobs, "profiles": profiles}


def _with_fields(job: dict[str, Any]) -> dict[str, Any]:
    more = job.get("extra_data")
    if not isinstance(more, dict):
        return job
    return {name: value for name, value in job.items() if name != "extra_data"} | more
