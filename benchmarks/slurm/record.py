"""Record a case of the Slurm that is installed here, for `bridge slurm case`.

    python benchmarks/slurm/record.py SCENARIO --out FOLDER [--factor 20]

SCENARIO is a text file: comments that say what it is for, lines of a slurm.conf, commands of sacctmgr, and
`SECONDS COMMAND`, where a command is one of scontrol or scancel, or `sbatch OPTIONS sleep SECONDS` (`fail
SECONDS`: exit code 1). `%NAME%` is the id of the job of that name, `StartTime=@SECONDS` and `--begin=SECONDS`
are instants of the scenario. `SECONDS end` stops the recording; else it ends with the last job.

    # Two jobs wait for each other.
    NodeName=n[0-3] CPUs=8 RealMemory=16000
    PartitionName=p Nodes=n[0-3] Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
    0  sbatch -J a -N3 -t 5 sleep 200
    10 sbatch -J b -N2 -t 5 sleep 100
    20 scontrol hold %b%

With a factor all programs of Slurm have a clock that runs so many times as fast (fast_clock.c, a C compiler).
Their delays count so much more, too. Needs root, Debian's packages of Slurm, slurmdbd and MariaDB where the
scenario has commands of sacctmgr, and the users whose jobs it submits.
"""

import argparse
import os
import pwd
import re
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from bridge.base.errors import BridgeError
from bridge.cluster.slurm_values import node_names
from bridge.slurm_demo import cluster
from bridge.slurm_demo.case_files import Notes, write_case
from bridge.slurm_demo.scenario import RecordingScenario, SbatchLine, read_scenario
from bridge.worlds.slurm.client import Client

#: Seconds of the clock before time 0, in which nodes come up.
SETTLE = 60
#: Seconds of the clock between two looks at the reasons why jobs wait.
LOOK = 30.0
#: A recording ends so long after the last submission or command, s of the clock.
PATIENCE = 4 * 3600.0
#: What the recorded cases have beside the lines of their cluster.conf.
BASE = """ClusterName=fake
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={port}
SlurmdPort={first}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/pid/slurmctld.pid
SlurmdPidFile={folder}/pid/slurmd.%n.pid
SlurmctldDebug=debug2
DebugFlags=Priority
SlurmdDebug=error
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
MessageTimeout=100
KillWait=2
ReturnToService=2
BatchStartTimeout=600
"""


class Clock:
    """The clock of the recorded programs; seconds since 1970 in `now`."""

    def __init__(self, factor: float, folder: Path) -> None:
        self.factor, self.origin = factor, time.time()
        if factor == 1:
            return
        library = folder / "fast_clock.so"
        source = Path(__file__).with_name("fast_clock.c")
        words = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl", "-lpthread"]
        subprocess.run(words, check=True)
        origins = time.time_ns(), time.monotonic_ns()
        self.origin = origins[0] / 1e9
        os.environ["BRIDGE_CLOCK"] = f"{factor:g} {origins[0]} {origins[1]}"
        os.environ["LD_PRELOAD"] = str(library)  # of all that this process starts

    def now(self) -> float:
        return self.origin + (time.time() - self.origin) * self.factor

    def sleep_until(self, instant: float) -> None:
        time.sleep(max(instant - self.now(), 0.0) / self.factor)


def configuration(scenario: RecordingScenario, folder: Path, port: int) -> tuple[dict[str, str], list[str]]:
    """Return the files of a scenario's site by name, and its nodes; GPUs are links beside the folder."""
    host = os.uname().nodename.partition(".")[0]
    lines = [BASE.format(host=host, folder=folder, port=port, first=port + 1)]
    names: list[str] = []
    gres: list[str] = []
    for line in scenario.conf:
        match = re.match(r"NodeName=(\S+)", line)
        if not match:
            lines.append(line)
            continue
        members = list(node_names(match[1]))
        first, last = port + 1 + len(names), port + len(names) + len(members)
        names += members
        ports = f"[{first}-{last}]" if last > first else str(first)
        lines.append(f"{line} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} State=UNKNOWN")
        if device := re.search(r"Gres=gpu:(?:\w+:)?(\d+)", line):
            for number in range(int(device[1])):
                path = folder.parent / f"gpu{number}"
                path.unlink(missing_ok=True)
                path.symlink_to("/dev/null")  # Slurm wants to see a device
            gres.append(f"NodeName={match[1]} Name=gpu File={folder.parent}/gpu[0-{int(device[1]) - 1}]\n")
    if scenario.accounting:
        lines += ["AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1"]
        lines.append(f"AccountingStoragePort={port + len(names) + 1}")
        lines.append(f"AccountingStoragePass={folder}/munge/socket")
    texts = {"slurm.conf": "\n".join(lines) + "\n"}
    return (texts | {"gres.conf": "".join(gres)}) if gres else texts, names


class Recorder:
    """Submits and commands in time, and notes what no log says: why jobs wait, and when commands returned."""

    def __init__(self, scenario: RecordingScenario, clock: Clock, client: Client) -> None:
        self.scenario, self.clock, self.client = scenario, clock, client
        self.epoch = int(clock.now()) + SETTLE
        self.notes = Notes(self.epoch)
        self.next_look = 0.0

    def time(self) -> float:
        return self.clock.now() - self.epoch

    def play(self) -> None:
        """Carry the scenario out, until its end."""
        steps: list[tuple[float, SbatchLine | str]] = [(job.time, job) for job in self.scenario.jobs]
        steps += self.scenario.commands
        steps = [one for one in sorted(steps, key=lambda one: one[0]) if one[0] <= self.scenario.end]
        for at, what in steps:
            self._wait(at)
            if isinstance(what, str):
                self._command(at, what)
            else:
                self._submit(what)
        last = min(self.scenario.end, steps[-1][0] + PATIENCE)
        while self.time() < last and self._look():
            self.clock.sleep_until(self.epoch + min(self.next_look, last))
        self.clock.sleep_until(self.clock.now() + LOOK)

    def _wait(self, until: float) -> None:
        while (now := self.time()) < until:
            if now >= self.next_look:
                self._look()
            self.clock.sleep_until(self.epoch + min(until, self.next_look))

    def _look(self) -> bool:
        """Note why jobs wait; tell whether there are any jobs."""
        text = self.client.call("scontrol", "-o", "show", "job")
        now = self.time()
        self.next_look = now + LOOK
        lines = [line for line in text.splitlines() if line.startswith("JobId=")]
        are_left = [self.notes.look(now, line) for line in lines]
        return any(are_left)

    def _words(self, text: str) -> str:
        """Return a command with ids for labels, and the clock's instants for those of the scenario."""
        ids = self.notes.ids
        if unknown := {name for name in re.findall(r"%(\w[\w-]*)%", text) if name not in ids}:
            raise BridgeError(f"{', '.join(sorted(unknown))} was not submitted before", where=text)
        text = re.sub(r"%(\w[\w-]*)%", lambda match: ids[match[1]], text)
        instants = r"((?:Start|End)Time=@|--begin=)(\d+)\b"
        return re.sub(instants, lambda match: match[1].rstrip("@") + self._instant(match[2]), text)

    def _instant(self, seconds: str) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(self.epoch + int(seconds)))

    def _command(self, at: float, text: str) -> None:
        words = shlex.split(self._words(text))
        self.client.call(*words)
        self.notes.commands.append((at, self.time(), text))

    def _submit(self, job: SbatchLine) -> None:
        words = shlex.split(self._words(shlex.join(job.words)))
        user = [word for word in words if word.startswith("--user=")]
        words = [f"--uid={word.partition('=')[2]}" if word in user else word for word in words]
        line = ["sbatch", "--parsable", "-J", job.label, "-o", "/dev/null", "-D", "/", *words]
        try:
            answer = self.client.call(*line, "--wrap", job.script)
        except BridgeError as error:
            self.notes.refused[job.label] = str(error)
            return
        self.notes.ids[job.label] = answer.strip().partition(";")[0]


def record(scenario: RecordingScenario, out: Path, factor: float, port: int) -> None:
    """Record a scenario into a new folder; BridgeError: it cannot be."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    if unknown := scenario.users - known:
        remedy = "; ".join(f"useradd -M {name}" for name in sorted(unknown))
        raise BridgeError(
            f"there is no user {', '.join(sorted(unknown))}", where=scenario.name, remedy=remedy
        )
    with tempfile.TemporaryDirectory(prefix="bridge-record-") as place:
        Path(place).chmod(0o755)
        folder = Path(place) / "cluster"
        clock = Clock(factor, Path(place))
        texts, names = configuration(scenario, folder, port)
        accounting = port + len(names) + 1 if scenario.accounting else 0
        conf = cluster.start_configured(
            folder, texts, names, accounting=accounting, commands=scenario.accounting
        )
        try:
            recorder = Recorder(scenario, clock, Client(str(conf)))
            recorder.play()
        finally:
            log = (folder / "log" / "slurmctld.log").read_text(encoding="utf-8", errors="replace")
            if os.environ.get("KEEP"):
                Path(os.environ["KEEP"]).write_text(log, encoding="utf-8")
            cluster.stop(folder)
    version = re.search(r"slurmctld version (\S+) started", log)
    write_case(scenario, recorder.notes, log, out, factor, version[1] if version else "")


def main() -> None:
    """Record one scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("scenario", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--factor", type=float, default=1.0, help="how often as fast the clock runs")
    parser.add_argument(
        "--port", type=int, default=26900, help="first one; a port for each node, and three more"
    )
    options = parser.parse_args()
    record(read_scenario(options.scenario), options.out, options.factor, options.port)


if __name__ == "__main__":
    main()
