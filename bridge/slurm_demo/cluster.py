"""A cluster of fake nodes in one folder: one slurmctld and a slurmd for each node, all on this machine."""

import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.worlds.slurm import install
from bridge.worlds.slurm.client import Client

#: What must be installed; Debian's packages of these names bring it.
PROGRAMS = ("munged", "slurmctld", "slurmd", "scontrol", "sbatch", "salloc", "scancel")
#: What accounting needs beside them; Debian's packages slurmdbd and mariadb-server bring it.
OF_ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db", "mariadb-admin")
#: Partitions of a cluster that preempts.
PREEMPTING = ("high", "requeue", "cancel", "suspend")
#: A file that `stop` wants to see before it removes a folder.
_MARK = "bridge-cluster"
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def missing(*, accounting: bool = False) -> list[str]:
    """Return the programs that are not installed, of those that are needed."""
    needed = (*PROGRAMS, *OF_ACCOUNTING) if accounting else PROGRAMS
    return [name for name in needed if shutil.which(name, path=_PATH) is None]


def start(
    folder: Path,
    *,
    nodes: int = 64,
    port: int = 27000,
    cores: int = 8,
    memory: int = 16000,
    accounting: bool = False,
    agent: str = "",
    backfill: int = 30,
    site: bool = False,
    preempt: bool = False,
) -> Path:
    """Start a cluster and return its slurm.conf, once all nodes are idle.

    Its partitions: ``agent`` (all nodes, whole nodes to each job, held by the gate), ``other`` (the first
    four nodes, without a gate) and ``kick`` (one node besides). The folder is a new one; others than its
    owner must be able to look into it. Nodes are at most 1,000, of 5 MB each; ports nodes + 3 from `port` on;
    memory is in MB. `accounting`: with slurmdbd and a MariaDB of its own, where `allow`
    lets users in. `site`: at least eight nodes, two GPUs on each of the first four, two licences ``solver``,
    and the gated partitions ``gpu`` (the first four nodes) and ``cpu`` (all but the first two), whose jobs
    share nodes. `preempt`: the gated partition ``high`` of a higher tier, and ``requeue``, ``cancel`` and
    ``suspend``, of which each is named after what then happens to its jobs. `agent`: as whom the agent will
    run, root if empty. `backfill`: seconds between two passes of Slurm's own. Raises
    BridgeError: programs or rights are missing, the folder exists, or something does not start.
    """
    _require_programs()
    folder = folder.absolute()
    values = {"nodes": nodes, "port": port, "cores": cores, "memory": memory, "accounting": accounting}
    values |= {"backfill": backfill, "site": site, "preempt": preempt}
    _prepare(folder)
    names = [*(f"n{k}" for k in range(nodes)), "kick"]
    try:
        _munge(folder)
        conf = _configure(folder, values, agent)
        client = Client(str(conf))
        if accounting:
            _start_database(folder, port + nodes + 2)
        _start_daemons(folder, names)
        _until(lambda: sum(node.state == "idle" for node in client.nodes("agent").values()) == nodes, folder)
    except BaseException:
        _end(folder)
        raise
    return conf


def start_configured(
    folder: Path,
    texts: Mapping[str, str],
    names: Sequence[str],
    *,
    accounting: int = 0,
    commands: Iterable[str] = (),
) -> Path:
    """Start a cluster of one's own slurm.conf and return that file, once slurmctld answers.

    `texts`: slurm.conf and the files beside it, by name. Daemons log and keep their state in FOLDER/log,
    FOLDER/state and so on, as those of `start` do, and munge listens at FOLDER/munge/socket. `accounting`:
    port of a slurmdbd, 0: none; it carries out `commands` of sacctmgr before slurmctld starts. Raises
    BridgeError as `start` does.
    """
    _require_programs(accounting=bool(accounting))
    folder = folder.absolute()
    _prepare(folder)
    conf = folder / "slurm.conf"
    for name, text in {"cgroup.conf": "CgroupAutomount=no\n", **texts}.items():
        (folder / name).write_text(text, encoding="utf-8")
    client = Client(str(conf))
    try:
        _munge(folder)
        if accounting:
            _start_database(folder, accounting)
            for command in commands:
                client.call(*shlex.split(command), patience=60.0)
        _start_daemons(folder, names)
        _until(lambda: bool(client.call("scontrol", "ping")), folder)
    except BaseException:
        _end(folder)
        raise
    return conf


def _require_programs(*, accounting: bool = False) -> None:
    if lacking := missing(accounting=accounting):
        more = " slurmdbd mariadb-server" if accounting else ""
        remedy = f"apt-get install slurmctld slurmd slurm-client munge{more}"
        raise BridgeError(f"{', '.join(lacking)} not installed", remedy=remedy)
    if os.getuid() != 0:
        raise BridgeError("needs root: nodes start jobs as their users", remedy="Start it in a container.")


def _prepare(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        remedy = "bridge slurm cluster down, or another folder."
        raise BridgeError("is not empty", where=str(folder), remedy=remedy)
    for name in ("state", "spool", "log", "pid", "munge"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for path in (folder, folder / "munge"):
        path.chmod(0o755)
    (folder / _MARK).touch()


def _start_daemons(folder: Path, names: Iterable[str]) -> None:
    _daemon(folder, "slurmctld", "slurmctld", "-i")
    for name in names:
        _daemon(folder, f"slurmd.{name}", "slurmd", "-N", name)


def _munge(folder: Path) -> None:
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    subprocess.run(["chown", "-R", "munge:", str(folder / "munge")], check=True)
    words = [f"--{name}={folder}/munge/{name}" for name in ("socket", "pid-file", "seed-file", "log-file")]
    words.append(f"--key-file={key}")
    who = ["setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups"]
    _run([*who, "munged", *words], folder)


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _configure(folder: Path, values: Mapping[str, Any], agent: str) -> Path:
    conf = folder / "slurm.conf"
    directory = folder / "agent"
    gated = ["agent", *(("gpu", "cpu") if values["site"] else ()), *(PREEMPTING if values["preempt"] else ())]
    install.write(directory, gated, {"defaultpartition": "agent", "slurm_conf": str(conf)}, user=agent)
    shutil.copy(directory / "job_submit.lua", folder / "job_submit.lua")
    page = install.template("cluster.conf").render(values, folder=folder, host=_host())
    conf.write_text(page, encoding="utf-8")
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n", encoding="utf-8")
    if values["site"]:
        for number in range(2):
            (folder / f"gpu{number}").symlink_to("/dev/null")  # Slurm wants to see a device
        line = f"NodeName=n[0-3] Name=gpu File={folder}/gpu[0-1]\n"
        (folder / "gres.conf").write_text(line, encoding="utf-8")
    return conf


def _around(folder: Path) -> dict[str, str]:
    return dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"), PATH=_PATH)


def _run(words: list[str], folder: Path) -> None:
    how: dict[str, Any] = {"env": _around(folder), "capture_output": True, "timeout": 60}
    how |= {"encoding": "utf-8", "errors": "replace"}
    done = subprocess.run(words, check=False, **how)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        what = f"{words[0]} does not start: {lines[-1]}"
        raise BridgeError(what, where=str(folder), remedy=f"See {folder}/log.")


def _daemon(folder: Path, name: str, *words: str) -> None:
    _run([*words, "-f", str(folder / "slurm.conf"), "-L", str(folder / "log" / f"{name}.log")], folder)


def _start_database(folder: Path, port: int) -> None:
    """Start slurmdbd at this port and a MariaDB of its own, before slurmctld; munge runs."""
    env = _around(folder)
    data, sock = folder / "mysql", folder / "mysql" / "sock"
    data.mkdir()
    log = (folder / "log" / "mysql.log").open("wb")
    words = ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root"]
    words += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    if subprocess.run(words, env=env, stdout=log, stderr=log, timeout=120, check=False).returncode:
        raise BridgeError("MariaDB's tables cannot be made", where=str(folder), remedy=f"See {log.name}.")
    words = ["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={sock}", "--skip-networking"]
    words += [f"--pid-file={folder}/pid/mariadbd.pid", "--innodb-buffer-pool-size=64M", "--user=root"]
    words += ["--innodb-lock-wait-timeout=900"]
    subprocess.Popen(words, env=env, stdout=log, stderr=log, start_new_session=True)
    log.close()
    _until(partial(_works, ["mariadb-admin", "--no-defaults", "-S", str(sock), "ping"], env), folder)
    conf = folder / "slurmdbd.conf"
    page = install.template("slurmdbd.conf").render(folder=folder, host=_host(), port=port)
    conf.write_text(page, encoding="utf-8")
    conf.chmod(0o600)
    subprocess.run(["slurmdbd"], env={**env, "MYSQL_UNIX_PORT": str(sock)}, timeout=60, check=True)
    _until(partial(_works, ["sacctmgr", "-n", "show", "cluster"], env), folder)
    client = Client(env["SLURM_CONF"])
    client.call("sacctmgr", "-i", "-Q", "add", "cluster", "fake")
    client.call("sacctmgr", "-i", "-Q", "add", "account", "all")


def allow(client: Client, user: str, level: str = "None") -> None:
    """Let a user run jobs on the cluster, at an administrator's level: None, Operator or Administrator."""
    client.call("sacctmgr", "-i", "-Q", "add", "user", user, "account=all", f"adminlevel={level}")


def _works(words: list[str], env: Mapping[str, str]) -> bool:
    return not subprocess.run(words, env=env, capture_output=True, timeout=5, check=False).returncode


def start_controller(folder: Path) -> None:
    _daemon(folder, "slurmctld", "slurmctld")


def _until(true: Callable[[], bool], folder: Path, patience: float = 60.0) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            if true():
                return
        except (BridgeError, subprocess.TimeoutExpired):
            pass
        if time.monotonic() > end:
            what = f"is not up within {patience:g} s"
            raise BridgeError(what, where=str(folder), remedy=f"See {folder}/log.")
        time.sleep(0.1)


def pid(folder: Path, name: str) -> int:
    """Return the process of a daemon: ``slurmctld``, ``slurmd.n3``; 0 if it does not run."""
    try:
        process_id = int((folder / "pid" / f"{name}.pid").read_text(encoding="ascii"))
        os.kill(process_id, 0)
    except (OSError, ValueError):
        return 0
    return process_id


def stop(folder: Path) -> None:
    """End a cluster and remove its folder. Raises BridgeError: there is none in the folder."""
    if not (folder / _MARK).exists():
        raise BridgeError("holds no cluster that `bridge slurm cluster up` has started", where=str(folder))
    _end(folder.absolute())
    shutil.rmtree(folder)


def _end(folder: Path) -> None:
    names = [path.stem for path in (folder / "pid").glob("*.pid")]
    pids = {process_id for name in names if (process_id := pid(folder, name))}
    with suppress(OSError, ValueError):
        pids.add(int((folder / "munge" / "pid-file").read_text(encoding="ascii")))
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in pids:
            with suppress(ProcessLookupError):
                os.kill(one, number)
        end = time.monotonic() + 5.0
        while any(Path(f"/proc/{one}").exists() for one in pids) and time.monotonic() < end:
            time.sleep(0.05)
