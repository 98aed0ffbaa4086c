"""slurmdbd and a MariaDB of its own for a cluster of fake nodes: who may do what is told there."""

import shutil
import subprocess
import time
from pathlib import Path

from bridge.errors import BridgeError
from bridge.slurm.client import Client
from bridge.slurm.setup import template

#: What must be installed beyond Slurm itself; Debian's packages slurmdbd and mariadb-server bring it.
PROGRAMS = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db", "mariadb-admin")
_PATIENCE = 60.0


def missing(path: str) -> list[str]:
    """Return the programs that are not on a path."""
    return [name for name in PROGRAMS if shutil.which(name, path=path) is None]


def start(folder: Path, port: int, host: str, env: dict[str, str]) -> None:
    """Start both in a cluster's folder, before its slurmctld; its munge runs.

    `port`: of slurmdbd; `env`: of the cluster's commands. BridgeError: one does not start.
    """
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
    _until(["mariadb-admin", "--no-defaults", "-S", str(sock), "ping"], env, "MariaDB")
    conf = folder / "slurmdbd.conf"
    page = template("slurmdbd.conf").render(folder=folder, host=host, port=port)
    conf.write_text(page, encoding="utf-8")
    conf.chmod(0o600)
    subprocess.run(["slurmdbd"], env={**env, "MYSQL_UNIX_PORT": str(sock)}, timeout=60, check=True)
    _until(["sacctmgr", "-n", "show", "cluster"], env, "slurmdbd")
    client = Client(env["SLURM_CONF"])
    client.call("sacctmgr", "-i", "-Q", "add", "cluster", "fake")
    client.call("sacctmgr", "-i", "-Q", "add", "account", "all")


def allow(client: Client, user: str, level: str = "None") -> None:
    """Let a user run jobs on the cluster, at an administrator's level: None, Operator or Administrator."""
    client.call("sacctmgr", "-i", "-Q", "add", "user", user, "account=all", f"adminlevel={level}")


def _until(words: list[str], env: dict[str, str], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            if not subprocess.run(words, env=env, capture_output=True, timeout=5, check=False).returncode:
                return
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() > end:
            raise BridgeError(f"{what} is not up within {_PATIENCE:g} s")
        time.sleep(0.2)
