"""What of slurm.conf decides besides a description of the cluster: settings by name, some refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.base.errors import BridgeError
from bridge.cluster.slurm_partitions import seconds_of

#: Settings that decide, in small letters.
_READ = (
    *("schedulertype", "prioritytype", "accountingstorageenforce", "overtimelimit", "killwait"),
    *("messagetimeout", "epilog", "resvoverrun"),
)
#: Plugins and settings whose rules the specification does not know: refused by name, but for these values.
_REFUSED: Mapping[str, tuple[str, ...]] = {
    "topologyplugin": ("", "topology/none", "topology/default"),
    "burstbuffertype": ("", "(null)", "none"),
    "suspendtime": ("", "-1", "infinite", "none"),
    "federationparameters": ("",),
}
_PRIORITY_FLAGS = frozenset(
    ("FAIR_TREE", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME", "CALCULATE_RUNNING", "NO_NORMAL_ALL")
)
_REMEDY = "Leave it out, and know that the site decides otherwise there."


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What of slurm.conf decides besides the cluster's description.

    Attributes:
        builtin: SchedulerType=sched/builtin: no backfill.
        basic: PriorityType=priority/basic.
        limits: AccountingStorageEnforce has limits.
        safe: it has safe: a job starts only if it can end within GrpTRESMins.
        over_time: OverTimeLimit in s.
        kill_wait: KillWait in s.
        message_timeout: MessageTimeout in s.
        epilog: Epilog= is set.
        resv_over_run: ResvOverRun in s.
    """

    builtin: bool = False
    basic: bool = True
    limits: bool = True
    safe: bool = False
    over_time: int = 0
    kill_wait: int = 30
    message_timeout: int = 10
    epilog: bool = False
    resv_over_run: int = 0


def require_modelled(name: str, value: str, place: str) -> None:
    """Raise BridgeError at `place` for a setting, named in small letters, that is not modelled."""
    if name == "priorityflags":
        for word in filter(None, value.upper().split(",")):
            if word not in _PRIORITY_FLAGS:
                raise BridgeError(f"PriorityFlags={word} is not modelled", where=place, remedy=_REMEDY)
    elif name in _REFUSED and value.lower() not in _REFUSED[name]:
        raise BridgeError(f"{name}={value} is not modelled", where=place, remedy=_REMEDY)


def settings_of(whole: Mapping[str, str]) -> Settings:
    """Return what settings, named in small letters, decide; ValueError: one is not what it should be."""
    enforce = set(whole.get("accountingstorageenforce", "").lower().split(","))
    return Settings(
        builtin=whole.get("schedulertype", "").lower() == "sched/builtin",
        basic=whole.get("prioritytype", "priority/basic").lower() != "priority/multifactor",
        limits=bool({"limits", "safe", "all"} & enforce),
        safe=bool({"safe", "all"} & enforce),
        over_time=60 * int(whole.get("overtimelimit", "0") or 0),
        kill_wait=seconds_of(whole.get("killwait", "30"), minutes=False) or 0,
        message_timeout=seconds_of(whole.get("messagetimeout", "10"), minutes=False) or 10,
        epilog="epilog" in whole,
        resv_over_run=60 * int(whole.get("resvoverrun", "0") or 0),
    )


def settings_of_site(stated: Mapping[str, str], *, has_weights: bool, where: str) -> Settings:
    """Return what the `scheduler.settings` of a cluster decide; BridgeError at `where`: one is odd.

    Limits of a cluster's description count, and its weights of priority, unless the settings say otherwise.
    """
    whole = {name.lower(): value for name, value in stated.items()}
    for name, value in whole.items():
        if name not in _READ and name not in _REFUSED and name != "priorityflags":
            raise BridgeError(
                f"{name} is not known to the protocol slurm", where=where, remedy="Leave it out."
            )
        require_modelled(name, value, where)
    whole.setdefault("prioritytype", "priority/multifactor" if has_weights else "priority/basic")
    whole.setdefault("accountingstorageenforce", "limits")
    try:
        return settings_of(whole)
    except ValueError as error:
        raise BridgeError(str(error), where=where, remedy="Mend the setting.") from error
