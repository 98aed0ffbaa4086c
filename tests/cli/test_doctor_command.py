"""`bridge doctor`: what is there, what is not, and the exit status."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_commands import run_bridge, run_ok

from bridge.base.environment_variables import VARIABLES
from bridge.base.errors import BridgeError
from bridge.cli import doctor


def findings() -> dict[str, dict[str, str]]:
    """Return what `bridge doctor --json` finds, by name."""
    return {found["what"]: found for found in json.loads(run_bridge("doctor", "--json").out)}


def test_this_machine_is_fine() -> None:
    out = run_ok("doctor")
    for name in ("Python", "numpy", "numba", "pandas", "pyarrow", "cache folder"):
        assert any(line.split()[0] == "ok" and name in line for line in out.splitlines()), name
    found = findings()
    needed, drawing = ["numpy", "numba", "pandas", "pyarrow"], ["matplotlib", "plotly"]
    packages = [*needed, *drawing, "gymnasium", "safetensors", "torch", "scikit-learn"]
    others = ["cache folder", "compiled kernels", "SimGrid interpreter", "batsim", "docker"]
    variables = [variable.name for variable in VARIABLES]
    assert list(found) == ["Python", *packages, *others, *variables]
    for one in found.values():
        assert set(one) == {"what", "status", "detail", "remedy"}
        assert (one["status"] == "ok") == (one["remedy"] == "")


def test_a_cache_folder_that_cannot_be_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("BRIDGE_CACHE", str(folder / "file/cache"))
    told = run_bridge("doctor")
    assert told.status == 1
    text = " ".join(told.out.split())
    assert "broken cache folder" in text
    assert "Not a directory" in text
    assert "Set BRIDGE_CACHE to a folder you can write to." in text
    assert findings()["cache folder"]["status"] == "broken"
    assert run_bridge("doctor", "--json").status == 1


def test_little_disk_space(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_CACHE", str(folder / "cache"))
    usage = type("Usage", (), {"free": 12_000_000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    found = findings()["cache folder"]
    assert (found["status"], found["detail"]) == ("broken", f"{folder}/cache: 12 MB free")
    assert not list((folder / "cache").iterdir())


def test_a_missing_package_is_broken_if_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("pandas", "torch"):
            raise doctor.PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr(doctor, "version", version)
    assert run_bridge("doctor").status == 1
    found = findings()
    assert (found["pandas"]["status"], found["pandas"]["remedy"]) == ("broken", "pip install pandas")
    assert (found["torch"]["status"], found["torch"]["remedy"]) == ("missing", "pip install torch")
    assert (found["numba"]["status"], found["numba"]["detail"]) == ("ok", "1.2.3")


def test_optional_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, script in (("batsim", "echo; echo v4.2.1"), ("docker", "echo; echo no daemon >&2; exit 1")):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    found = findings()
    assert (found["batsim"]["status"], found["batsim"]["detail"]) == ("ok", "v4.2.1")
    assert found["docker"]["status"] == "missing"
    assert found["docker"]["detail"] == f"{folder}/docker: no daemon; containers are optional"
    assert found["docker"]["remedy"].startswith("Docker is installed. Start its service")
    (folder / "batsim").unlink()
    (folder / "docker").unlink()
    monkeypatch.setenv("PATH", str(folder))
    found = findings()
    assert found["batsim"]["detail"] == "not on PATH; the real Batsim is optional"
    assert found["batsim"]["remedy"] == f"Install it: {doctor.BATSIM}"
    assert found["docker"]["remedy"] == "Install Docker."
    monkeypatch.setenv("COLUMNS", "80")
    assert doctor.BATSIM in run_ok("doctor")  # on one line
    assert run_bridge("doctor").status == 0


def test_a_program_that_hangs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "batsim").write_text("#!/bin/sh\n")
    (folder / "batsim").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")

    def run(*words: Any, timeout: float, **_: Any) -> None:
        raise subprocess.TimeoutExpired(words[0], timeout)

    monkeypatch.setattr(subprocess, "run", run)
    found = doctor._program("batsim", ["--version"], "optional", "Install it.", "Mend it.")
    assert found.status == "missing"
    assert "does not answer" in found.detail
    assert found.remedy == "Mend it."


def test_no_simgrid(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise BridgeError("no interpreter has SimGrid", remedy="Install python3-simgrid.")

    monkeypatch.setattr("bridge.worlds.simgrid.find_interpreter", none)
    found = findings()["SimGrid interpreter"]
    assert (found["status"], found["detail"]) == ("missing", "no interpreter has SimGrid")
    assert found["remedy"] == "Install python3-simgrid."
    assert run_bridge("doctor").status == 0


def test_nothing_compiled_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.base.jit.is_compiled", lambda: False)
    found = findings()["compiled kernels"]
    assert (found["status"], found["remedy"]) == ("missing", "bridge replay bundled-128")


def test_remedies_are_shown_whole_on_a_narrow_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("PATH", "/nowhere")
    out = run_ok("doctor")
    assert "…" not in out
    address = findings()["batsim"]["remedy"].split()[-1]
    assert address in "".join(line.strip() for line in out.splitlines())


def test_a_folder_named_like_markup(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_CACHE", str(folder / "[red]x[/red]"))
    assert "[red]x[/red]" in "".join(line.strip() for line in run_ok("doctor").splitlines())


def test_variables_are_listed_with_their_values(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGE_TRACES", str(folder))
    monkeypatch.delenv("BRIDGE_DATA", raising=False)
    found = findings()
    assert found["BRIDGE_TRACES"]["detail"] == f"{folder}; folder of logs that are found by their names"
    assert found["BRIDGE_DATA"]["detail"].startswith("not set: the current folder; ")
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, run_ok("doctor").splitlines())) <= 80


def test_every_variable_that_the_sources_read_is_listed_and_has_its_place_on_the_page() -> None:
    root = Path(__file__).parents[2]
    sources = [path.read_text() for path in (root / "bridge").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\b(BRIDGE_[A-Z_]*[A-Z])\b", text)}
    names = [variable.name for variable in VARIABLES]
    assert read - {"BRIDGE_COMPLETE"} <= {*names}
    page = (root / "docs" / "reference" / "environment-variables.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", page, re.M)
    assert rows == [(v.name, v.purpose, v.default) for v in VARIABLES]
