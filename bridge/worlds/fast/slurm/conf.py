"""A site from a slurm.conf and commands of sacctmgr, for the protocol `slurm`."""

from pathlib import Path

from bridge.base import files
from bridge.cluster.imported import ImportNotes, mending
from bridge.cluster.sacctmgr_commands import SacctmgrCommands
from bridge.cluster.slurm_conf import settings
from bridge.cluster.slurm_site import import_slurm
from bridge.scheduler.slurm.settings import Settings, require_modelled, settings_of
from bridge.scheduler.slurm.site import Site

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
    return Site(cluster, _settings_in(conf, defaults or {}), str(conf))


def _settings_in(conf: Path, defaults: dict[str, str]) -> Settings:
    """Return what of a slurm.conf decides besides the cluster; BridgeError names what is not modelled."""
    whole: dict[str, str] = dict(defaults)
    for place, line in settings(conf, files.read_text(conf)):
        if "nodename" not in line and "partitionname" not in line:
            for name in line:
                require_modelled(name, line[name], place)
            whole |= line
    with mending(str(conf)):
        return settings_of(whole)
