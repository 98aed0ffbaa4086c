"""What `bridge slurm setup` writes, and the gate's directory."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok

from bridge.base.errors import BridgeError
from bridge.cli.main import main
from bridge.config import verify
from bridge.worlds.slurm import gate
from bridge.worlds.slurm.client import Client, is_held_by_us, walltime_from_comment
from bridge.worlds.slurm.install import FILES, pointed_to, write
from bridge.worlds.slurm.settings import AgentConfig


def test_the_files(tmp_path: Path) -> None:
    out = tmp_path / "agent"
    paths = write(
        out, ["batch", "long"], {"defaultpartition": "batch", "schedulerparameters": "bf_window=99"}
    )
    assert sorted(path.name for path in paths) == sorted(FILES)
    lua = (out / "job_submit.lua").read_text()
    assert '["batch"] = "batch", ["long"] = "long", [""] = "batch"' in lua
    assert f'"{out}"' in lua
    conf = (out / "slurm.conf").read_text()
    assert "SchedulerParameters=bf_window=99,bf_interval=30,bf_continue" in conf
    assert f"Epilog={out}/epilog.sh" in conf
    for name in ("jobcomp.sh", "epilog.sh", "watchdog.sh"):
        assert (out / name).stat().st_mode & 0o777 == 0o755
        subprocess.run(["sh", "-n", out / name], check=True)
    if shutil.which("luac5.1"):
        subprocess.run(["luac5.1", "-p", out / "job_submit.lua"], check=True)
    assert (out / "batch").is_dir() and (out / "long").is_dir()
    write(out, ["batch"], {"epilog": "/usr/sbin/ours", "jobsubmitplugins": "lua,other"})
    conf = (out / "slurm.conf").read_text()
    assert "# (there already: /usr/sbin/ours) Epilog=" in conf
    assert "# (there already) JobSubmitPlugins=lua" in conf
    assert not (out / "long").exists()


def test_names_that_could_break_a_script(tmp_path: Path) -> None:
    for name in ('batch"; os.execute("x")--', "a b", "$(x)", "a\nb", "a/b", "..", "events", "slurm.conf"):
        with pytest.raises(BridgeError, match="must not hold"):
            write(tmp_path / "agent", [name], {})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").touch()
    with pytest.raises(BridgeError, match="is not empty"):
        write(tmp_path, ["batch"], {})
    assert (tmp_path / "mine" / "thesis").exists()


def test_how_a_gate_stands(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="holds no gate"):
        gate.gate_of(tmp_path)
    write(tmp_path / "agent", ["batch"], {})
    out = gate.gate_of(tmp_path / "agent")
    assert out == tmp_path / "agent" / "batch"
    assert gate.status(out) == gate.GateStatus(False, None)
    assert not gate.status(out).alive
    (out / "heartbeat").write_text(f"{time.time() - 10:.0f}\n")
    found = gate.status(out)
    assert found.heartbeat is not None
    assert 9 <= found.heartbeat < 20
    assert found.alive
    (out / "gate_open").touch()
    assert not gate.status(out).alive
    gate.close_gate(out)
    assert gate.status(out).alive
    (out / "heartbeat").write_text(f"{time.time() - 40:.0f}\n")
    assert not gate.status(out).alive


def test_each_partition_has_its_gate(tmp_path: Path) -> None:
    out = tmp_path / "agent"
    write(out, ["batch", "long"], {})
    assert gate.gate_of(out, "long") == out / "long"
    with pytest.raises(BridgeError, match=r"gates of several partitions\n  Give --partition: batch, long\."):
        gate.gate_of(out)
    with pytest.raises(BridgeError, match="no gate of partition 'short'"):
        gate.gate_of(out, "short")
    words = ["slurm", "gate", "status", "--directory", str(out)]
    assert (main(words), main([*words, "--partition", "long"])) == (1, 0)


#: What slurmctld gives the script, and what the gate then makes of jobs.
LUA = """
slurm = {SUCCESS = 0, ERROR = -1, NO_VAL = 4294967294}
dofile(arg[1])
for _, names in ipairs({"batch", "long", "other", "batch,long", ""}) do
  local job = {partition = names, priority = 4294967294}
  assert(slurm_job_submit(job, {}, 1000) == slurm.SUCCESS)
  print(names .. " " .. (job.priority == 0 and job.admin_comment or "free"))
end
"""


@pytest.mark.skipif(shutil.which("lua") is None, reason="there is no lua")
def test_the_gate_holds_jobs_of_partitions_whose_agent_lives(tmp_path: Path) -> None:
    out = tmp_path / "agent"
    write(out, ["batch", "long"], {"defaultpartition": "long"})
    (tmp_path / "try.lua").write_text(LUA)
    held = "agent:held"

    def run_lua() -> list[str]:
        words = ["lua", tmp_path / "try.lua", out / "job_submit.lua"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()

    free = ["batch free", "long free", "other free", "batch,long free", " free"]
    assert run_lua() == free
    (out / "batch" / "heartbeat").write_text(f"{time.time():.0f}\n")
    (out / "long" / "heartbeat").write_text(f"{time.time() - 40:.0f}\n")  # its agent is dead
    assert run_lua() == [f"batch {held}", "long free", "other free", f"batch,long {held}", " free"]
    (out / "long" / "heartbeat").write_text(f"{time.time():.0f}\n")
    (out / "batch" / "gate_open").touch()
    assert run_lua() == ["batch free", f"long {held}", "other free", f"batch,long {held}", f" {held}"]
    (out / "long" / "gate_open").touch()
    assert run_lua() == free


def test_what_a_comment_may_say() -> None:
    assert walltime_from_comment("walltime=33.5 please") == 33.5
    assert walltime_from_comment("x;walltime=7,y") == 7
    assert walltime_from_comment("nowalltime=7") is None
    assert walltime_from_comment("walltime=7x") is None
    assert is_held_by_us("JobId=1\n   WorkDir=/tmp\n   AdminComment=agent:held \n   Comment=x")
    assert not is_held_by_us("JobId=1\n   WorkDir=/tmp\n   Comment=x\n   AdminComment=agent:held \n")
    assert not is_held_by_us("JobId=1\n   AdminComment=agent:heldnot \n")


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_of_starts_is_above_0(rate: float) -> None:
    with pytest.raises(BridgeError, match=r"max_starts_per_s cannot be .*\n  Write a number above 0"):
        verify(AgentConfig(partition="batch", max_starts_per_s=rate), "the options")


def test_no_cluster_is_known_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "scontrol"
    said = "scontrol: fatal: Could not establish a configuration source"
    command.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    with pytest.raises(BridgeError) as caught:
        Client().call("scontrol", "show", "config")
    assert str(caught.value) == f"scontrol show config: {said}\n  Set SLURM_CONF to the cluster's slurm.conf."


@pytest.mark.parametrize("every", ["nan", "inf"])
def test_the_page_asks_slurm_at_times(every: str) -> None:
    told = run_bridge("serve", "--slurm", "--partition", "batch", "--every", every)
    assert (told.status, "--every must be a number of seconds" in told.err) == (2, True)


def test_a_directory_must_be_the_one_that_the_cluster_uses(tmp_path: Path) -> None:
    ours, other = tmp_path / "agent", tmp_path / "other"
    for one in (ours, other):
        write(one, ["batch"], {})
    shutil.copy(ours / "job_submit.lua", tmp_path / "job_submit.lua")
    told = {"slurm_conf": str(tmp_path / "slurm.conf"), "jobcomploc": str(ours / "jobcomp.sh")}
    told["epilog"] = str(ours / "epilog.sh")
    assert pointed_to(ours, "batch", told).is_ok
    found = pointed_to(other, "batch", told)
    assert not found.is_ok
    for name in (tmp_path / "job_submit.lua", ours / "jobcomp.sh", ours / "epilog.sh"):
        assert str(name) in found.remedy
    assert pointed_to(ours, "batch", told | {"epilog": "/usr/sbin/own", "jobcomploc": "/var/log/jobs"}).is_ok
    assert "`bridge slurm setup`" in pointed_to(tmp_path / "gone", "batch", told).remedy
    assert not pointed_to(ours, "long", told).is_ok


def test_the_directory_has_one_name(tmp_path: Path) -> None:
    write(tmp_path / "agent", ["batch"], {})
    told = "".join(
        run_ok("slurm", "gate", "status", option, tmp_path / "agent") for option in ("--directory", "--dir")
    )
    told += run_ok("slurm", "--help")
    assert "doctor --partition batch --directory /etc/bridge" in told
    assert "--dir " not in told
