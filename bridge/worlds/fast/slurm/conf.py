"""A site from a slurm.conf and commands of sacctmgr, with what only the protocol `slurm` asks for."""

from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.cluster.imported import ImportNotes, mending
from bridge.cluster.sacctmgr_commands import SacctmgrCommands
from bridge.cluster.slurm_conf import settings
from bridge.cluster.slurm_partitions import seconds_of
from bridge.cluster.slurm_site import import_slurm
from bridge.cluster.slurm_values import node_names
from bridge.scheduler.slurm.site import Settings, Site

#: Plugins and settings whose rules the specification does not know: refused by name.
_REFUSED = {
    "topologyplugin": ("", "topology/none", "topology/default"),
    "burstbuffertype": ("", "(null)", "none"),
    "suspendtime": ("", "-1", "infinite", "none"),
    "federationparameters": ("",),
    "priorityflags": None,
}
_PRIORITY_FLAGS = {
    "FAIR_TREE",
    "NO_FAIR_TREE",
    "SMALL_RELATIVE_TO_TIME",
    "CALCULATE_RUNNING",
    "NO_NORMAL_ALL",
}
#: Defaults of the recorded cases, where their slurm.conf does not state it.
CASE_DEFAULTS = {"killwait": "2", "messagetimeout": "100"}


def site_of(conf: Path, accounting: Path | None, defaults: dict[str, str] | None = None) -> Site:
    """Return the site of a slurm.conf; BridgeError names the line of what it cannot be."""
    imported = import_slurm(conf)
    cluster = imported.cluster
    if accounting is not None:
        commands = SacctmgrCommands(ImportNotes())
        for number, line in enumerate(files.read_text(accounting).splitlines(), start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                with mending(f"{accounting}:{number}"):
                    commands.run(line)
        cluster = commands.on(cluster)
    return Site(cluster, settings_of(conf, defaults or {}), str(conf))


def settings_of(conf: Path, defaults: dict[str, str]) -> Settings:
    """Return what of a slurm.conf decides besides the cluster; BridgeError names what is not modelled."""
    whole: dict[str, str] = dict(defaults)
    threads: dict[str, int] = {}
    usual: dict[str, str] = {}
    for place, line in settings(conf, files.read_text(conf)):
        if "nodename" in line:
            if line["nodename"].upper() == "DEFAULT":
                usual |= line
                continue
            with mending(place):
                count = int((usual | line).get("threadspercore", "1"))
                if count > 1:
                    threads |= dict.fromkeys(node_names(line["nodename"]), count)
        elif "partitionname" not in line:
            for name in line:
                _require_modelled(name, line[name], place)
            whole |= line
    enforce = whole.get("accountingstorageenforce", "").lower().split(",")
    with mending(str(conf)):
        return Settings(
            builtin=whole.get("schedulertype", "").lower() == "sched/builtin",
            basic=whole.get("prioritytype", "priority/basic").lower() != "priority/multifactor",
            limits=bool({"limits", "safe", "all"} & set(enforce)),
            safe=bool({"safe", "all"} & set(enforce)),
            over_time=60 * int(whole.get("overtimelimit", "0") or 0),
            kill_wait=seconds_of(whole.get("killwait", "30"), minutes=False) or 0,
            message_timeout=seconds_of(whole.get("messagetimeout", "10"), minutes=False) or 10,
            threads=threads,
            epilog="epilog" in whole,
            resv_over_run=60 * int(whole.get("resvoverrun", "0") or 0),
        )


def _require_modelled(name: str, value: str, place: str) -> None:
    remedy = "Leave it out, and know that the site decides otherwise there."
    if name == "priorityflags":
        for word in filter(None, value.upper().split(",")):
            if word not in _PRIORITY_FLAGS:
                raise BridgeError(f"PriorityFlags={word} is not modelled", where=place, remedy=remedy)
        return
    allowed = _REFUSED.get(name)
    if allowed is not None and value.lower() not in allowed:
        raise BridgeError(f"{name}={value} is not modelled", where=place, remedy=remedy)
