"""What an administrator installs: gate, plugins' scripts, watchdog, and lines for slurm.conf."""

import os
import pwd
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import jinja2

from bridge.base import files
from bridge.base.checks import CheckResult, Status
from bridge.base.errors import BridgeError
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.gate import STALE, gate_of, is_gate

#: File -> whether it is run.
FILES: Mapping[str, bool] = {
    "job_submit.lua": False,
    "jobcomp.sh": True,
    "epilog.sh": True,
    "watchdog.sh": True,
    "slurm.conf": False,
    "watchdog.service": False,
    "watchdog.timer": False,
}
_SETTINGS = (
    *("jobsubmitplugins", "jobcomptype", "epilog", "defmempercpu", "defmempernode", "schedulerparameters"),
)
#: Versions whose text commands are known to be as they are used here.
VERSIONS = (22, 23, 24, 25)


def configuration(client: Client) -> dict[str, str]:
    settings = {}
    for line in client.call("scontrol", "show", "config").splitlines():
        name, equals, value = line.partition("=")
        if equals:
            text = value.strip()
            settings[name.strip().lower()] = "" if text in ("(null)", "N/A", "UNLIMITED") else text
    return settings


def write(
    out: Path,
    partitions: Sequence[str],
    configured: Mapping[str, str],
    *,
    kick: str = "kick",
    grace: float = 0.05,
    user: str = "",
) -> list[Path]:
    """Write the files into a new or empty directory, and return them.

    It becomes the directory of events, and of a folder for each partition's gate. `grace`: seconds that the
    epilog leaves the agent to decide. `user`: as whom the agent runs, who gets the directory; empty = who
    calls this. Raises BridgeError: a name cannot stand in a script, or the directory has other files.
    """
    directory, account = out.absolute(), _account(user)
    for what, text, more in (("partition", [*partitions, kick], ""), ("directory", [str(directory)], "/")):
        for word in text:
            if not re.fullmatch(rf"[\w.@+{more}-]+", word, re.ASCII) or word in {".", "..", *FILES, "events"}:
                message = f"a {what}'s name must not hold anything but letters, digits, {more}.@+-_"
                raise BridgeError(message, where=word)
    there = [path for path in out.iterdir() if path.name not in {*FILES, "events"}] if out.exists() else []
    if not all(is_gate(path) for path in there):
        raise BridgeError("is not empty", where=str(out), remedy="Name a new directory.")
    default = configured.get("defaultpartition", "")
    conf = configured.get("slurm_conf") or os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf")
    values = {
        "directory": str(directory),
        "partitions": list(partitions),
        "kick": kick,
        "grace": grace,
        "stale": STALE,
        "uid": account.pw_uid,
        "conf": conf,
        "folder": str(Path(conf).parent),
        "default": default if default in partitions else "",
        "has": {name: configured.get(name, "") for name in _SETTINGS},
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, is_run in FILES.items():
            (out / name).write_text(template(name).render(values), encoding="utf-8")
            (out / name).chmod(0o755 if is_run else 0o644)
        (out / "events").touch()
        for gate in there:
            if gate.name not in partitions:
                shutil.rmtree(gate)
        for partition in partitions:
            (out / partition).mkdir(exist_ok=True)
        if account.pw_uid != os.getuid():
            for path in (out, out / "events", *(out / partition for partition in partitions)):
                os.chown(path, account.pw_uid, account.pw_gid)
    except OSError as error:
        raise files.cannot_write(out, error) from error
    return [out / name for name in FILES]


def template(name: str) -> jinja2.Template:
    loader = jinja2.FileSystemLoader(Path(__file__).with_name("templates"))
    pages = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return pages.get_template(f"{name}.j2")


def _account(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(user) if user else pwd.getpwuid(os.getuid())
    except KeyError as error:
        raise BridgeError("there is no such account", where=f"user {user!r}") from error


def check_cluster(client: Client, partition: str, directory: Path | None, kick: str) -> list[CheckResult]:
    """Check what the agent needs on this cluster; most important first."""
    try:
        configured = configuration(client)
    except BridgeError as error:
        return [CheckResult("slurmctld", "broken", str(error), "Set SLURM_CONF, and see `scontrol ping`.")]
    results: list[CheckResult] = []

    def look(what: str, is_ok: bool, detail: str, remedy: str, lack: Status = "missing") -> None:
        results.append(CheckResult(what, "ok" if is_ok else lack, detail, remedy))

    version = configured.get("slurm_version", "")
    is_tried = version.partition(".")[0] in map(str, VERSIONS)
    look("version", is_tried, version or "unknown", "Tried on 22.05; made for 22.05 to 25.x.")
    try:
        look("partition", True, f"{partition}, {len(client.nodes(partition))} nodes", "")
    except BridgeError as error:
        look("partition", False, str(error), "Give --partition.", "broken")
    plugins, ends = configured.get("jobsubmitplugins", ""), configured.get("jobcomptype", "")
    lua, advice = "lua" in plugins.split(","), "Without it ends are seen by polling, every 5 s."
    look("gate", lua, plugins or "no JobSubmitPlugins", "Else jobs start without us.", "broken")
    look("ends", ends == "jobcomp/script", ends or "no JobCompType", advice)
    epilog = configured.get("epilog", "")
    defer = re.search(r"\bdefer\b", configured.get("schedulerparameters", ""))
    advice = "Without an Epilog, and with defer, a start takes up to 1 s."
    look("epilog", bool(epilog) and not defer, epilog or "no Epilog", advice)
    try:
        client.nodes(kick)
        look("kicks", True, f"partition {kick}", "")
    except BridgeError:
        look("kicks", False, f"no partition {kick}", "A start takes 0.5 s in place of 0.04 s.")
    memory = any(configured.get(name) for name in ("defmempercpu", "defmempernode"))
    look("memory", memory, "DefMem is set" if memory else "no DefMem", "Else a job takes all memory.")
    if directory is not None:
        results.append(pointed_to(directory, partition, configured))
    return [*results, rights(client, configured)]


def pointed_to(directory: Path, partition: str, configured: Mapping[str, str]) -> CheckResult:
    """Return whether a directory is one of `write`, and the one that this cluster's gate and scripts use."""
    try:
        gate = gate_of(directory, partition)
    except BridgeError as error:
        return CheckResult("directory", "broken", f"{directory}: {error.what}", error.remedy)
    if not os.access(gate, os.W_OK):
        return CheckResult("directory", "broken", str(gate), "Let the agent write there.")
    ours, wrong = directory.absolute(), []
    script = Path(configured.get("slurm_conf", "")).parent / "job_submit.lua"
    if os.access(script, os.R_OK) and f'"{ours}"' not in files.read_text(script):
        wrong.append(str(script))
    for name, file in (("jobcomploc", "jobcomp.sh"), ("epilog", "epilog.sh")):
        path = Path(configured.get(name, ""))
        if path.name == file and path != ours / file:
            wrong.append(str(path))
    if wrong:
        advice = (
            f"{', '.join(wrong)} belongs to another directory: name that one, or install this one's files."
        )
        return CheckResult("directory", "broken", str(directory), advice)
    return CheckResult("directory", "ok", str(directory))


def rights(client: Client, configured: Mapping[str, str]) -> CheckResult:
    """Return whether we may see and start others' jobs."""
    who = client.call("id", "-un").strip()
    if who in ("root", configured.get("slurmuser", "").partition("(")[0]):
        advice = "Give an own account AdminLevel=Operator."
        return CheckResult("rights", "ok", f"{who}: an Operator is enough", advice)
    if shutil.which("sacctmgr", path=client.env["PATH"]) is not None:
        try:
            words = ("sacctmgr", "-nP", "show", "user", who, "format=adminlevel")
            level = client.call(*words, patience=5.0).strip()
        except BridgeError as error:
            level = error.what
        if level in ("Operator", "Administrator"):
            return CheckResult("rights", "ok", f"{who}: {level}")
        advice = f"sacctmgr modify user {who} set adminlevel=operator"
        return CheckResult("rights", "broken", f"{who}: {level or 'no rights'}", advice)
    advice = "Without slurmdbd only root and SlurmUser may start others' jobs."
    return CheckResult("rights", "broken", who, advice)
