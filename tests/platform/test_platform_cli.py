"""`bridge platform`: what it prints and with which exit status."""

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from platform_helpers import CORPUS, SHIPPED
from simgrid_available import needs_simgrid
from subprocess_python import run_python

from bridge.base.errors import BridgeError
from bridge.cli.main import cli


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["platform", *map(str, arguments)])


def of_the_page() -> str:
    """The platform that docs/platforms.md shows."""
    page = (Path(__file__).parents[2] / "docs" / "platforms.md").read_text(encoding="utf-8")
    text = re.search(r"^```xml\n(<\?xml.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert text is not None
    return text[1]


def test_the_platform_that_the_page_shows_is_whole(tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text(of_the_page())
    result = run("check", tmp_path / "mine.xml", "--json")
    assert result.exit_code == 0
    (finding,) = json.loads(result.output)
    assert (finding["severity"], finding["code"]) == ("note", "management-latency")
    assert "8e-10 s" in finding["message"]


ALL = "bb_bw, bb_lat, bb_sharing_policy, bw, core, id, lat"


@pytest.mark.parametrize(
    ("right", "wrong", "code", "remedy"),
    [
        ("prefix=", "prefx=", "unknown-attribute", f"Did you mean prefix? Known: {ALL}"),
        ('gw_dst="switch"', 'gw_dst="swich"', "unknown-node", "Did you mean switch? Declare it first."),
        ('dst="nodes"', 'dst="node"', "unknown-node", "Did you mean nodes? Check the name."),
        ('link_ctn id="clean"', 'link_ctn id="claen"', "unknown-link", "Did you mean clean? Declare the"),
        ('gw_dst="switch"', 'gw_dst="n99"', "unknown-node", "Declare it first."),  # no typo of n10
    ],
)
def test_a_misspelt_word_is_one_finding_that_names_the_right_one(
    right: str, wrong: str, code: str, remedy: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.xml").write_text(of_the_page()[::-1].replace(right[::-1], wrong[::-1], 1)[::-1])
    result = run("check", tmp_path / "mine.xml", "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.output)
    assert finding["code"] == code
    assert finding["remedy"].startswith(remedy)


def test_what_is_missing_because_of_an_error_above_says_so(tmp_path: Path) -> None:
    (tmp_path / "mine.xml").write_text(of_the_page().replace('radical="10-13"', 'radical="10-"'))
    first, second = json.loads(run("check", tmp_path / "mine.xml", "--json").output)
    assert (first["code"], second["code"]) == ("bad-value", "unknown-node")
    assert second["remedy"] == f"Mend line {first['line']} first, which declares it."


def test_check_prints_place_code_and_remedy() -> None:
    path = CORPUS / "bad_wattage_missing.xml"
    result = run("check", "--energy", path)
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == (
        f"{path}:6: error: host 'master_host' (master) has no wattage, others have: -E stops or counts 0 W "
        "[wattage-missing]"
    )
    assert result.output.splitlines()[1].startswith('  Add <prop id="wattage_per_state"')
    assert result.output.splitlines()[-1] == "1 error, 0 warnings, 0 notes"


def test_what_only_energy_needs_is_a_warning_without_it() -> None:
    result = run("check", CORPUS / "bad_wattage_missing.xml", CORPUS / "bad_wattage_format.xml")
    assert result.exit_code == 0
    assert ":6: warning: host 'master_host' (master) has no wattage" in result.output
    assert result.output.splitlines()[-1] == "0 errors, 2 warnings, 0 notes"


def test_check_is_content_with_warnings() -> None:
    result = run("check", CORPUS / "warn_host_order.xml", CORPUS / "good_full.xml")
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == "0 errors, 1 warning, 1 note"


def test_check_as_json() -> None:
    path = CORPUS / "bad_route_link.xml"
    result = run("check", "--json", path)
    assert result.exit_code == 1
    (finding,) = json.loads(result.output)
    assert finding == {
        "path": str(path),
        "line": 17,
        "severity": "error",
        "code": "unknown-link",
        "message": "there is no link 'l9' above this line",
        "remedy": "Declare the link first.",
        "simgrid": "refuses",
    }


@needs_simgrid
def test_check_can_load_for_real() -> None:
    assert run("check", "--load", CORPUS / "good_full.xml").exit_code == 0


@needs_simgrid
def test_a_killed_check_leaves_no_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bridge.cli.main", "platform", "check", "--load"]
    command += [str(SHIPPED / "exact-4360.xml")] * 20
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as check:
        children = Path(f"/proc/{check.pid}/task/{check.pid}/children")
        gone = False
        while check.poll() is None and not gone:
            with suppress(OSError):  # a child that has just ended
                folders = [Path(f"/proc/{child}/cwd").readlink() for child in children.read_text().split()]
                gone = any(path.parent == tmp_path and path.name.endswith(" (deleted)") for path in folders)
        assert gone, "the folder stayed until the end"
        check.kill()
    assert [*tmp_path.iterdir()] == []


@needs_simgrid
def test_check_loads_every_file_and_says_what_simgrid_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the lint sees no mistake, and after a file that SimGrid refuses."""
    monkeypatch.setattr("bridge.platform.check.check_platform", lambda *_args, **_options: [])
    names = ["bad_route_link.xml", "good_full.xml", "bad_units.xml"]
    result = run("check", "--load", *(CORPUS / name for name in names))
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert [line for line in lines if "[simgrid-refuses]" in line] == [lines[0], lines[2]]
    assert lines[0].startswith(f"{CORPUS / 'bad_route_link.xml'}:1: error: SimGrid refuses the platform: ")
    assert lines[2].startswith(f"{CORPUS / 'bad_units.xml'}:5: error: SimGrid refuses the platform: ")
    assert lines[-1] == "2 errors, 0 warnings, 0 notes"


def test_check_says_whether_simgrid_loads_the_file() -> None:
    """Batsim refuses a machine without master, SimGrid does not."""
    path = CORPUS / "bad_no_master.xml"
    assert run("check", path).output.splitlines()[-2] == f"{path}: SimGrid loads it"
    path = CORPUS / "bad_units.xml"
    assert run("check", path).output.splitlines()[-2] == f"{path}: SimGrid refuses it"
    (finding,) = json.loads(run("check", "--json", CORPUS / "bad_no_master.xml").output)
    assert finding["simgrid"] == "loads"


@given(value=st.binary(max_size=60), name=st.sampled_from(["id", "speed", "core"]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_check_ends_in_words_whatever_the_file_holds(value: bytes, name: str, tmp_path: Path) -> None:
    """Names in no encoding, control characters, numbers that are none: printed, as text and as JSON."""
    path = tmp_path / "garbage.xml"
    good = (CORPUS / "good_power.xml").read_bytes()
    path.write_bytes(re.sub(rb'(<host [^>]*%s=")[^"]*' % name.encode(), lambda m: m[1] + value, good))
    for options in ([], ["--json"]):
        result = run("check", *options, path)
        assert result.exit_code in (0, 1)
        assert result.exception is None or isinstance(result.exception, SystemExit)


def test_check_follows_batsims_option() -> None:
    assert run("check", "-m", "head", CORPUS / "bad_no_master.xml").exit_code == 0


def test_new(tmp_path: Path) -> None:
    out = tmp_path / "my.xml"
    result = run("new", SHIPPED / "sp2-128.toml", "-o", out)
    assert result.exit_code == 0
    assert result.output == f"{out}: 128 compute hosts, {out.stat().st_size:,} bytes\n"
    assert out.read_bytes() == (SHIPPED / "sp2-128.xml").read_bytes()
    again = run("new", SHIPPED / "sp2-128.toml", "-o", out)
    assert isinstance(again.exception, BridgeError)
    assert run("new", SHIPPED / "sp2-128.toml", "-o", out, "--force").exit_code == 0


def test_show(tmp_path: Path) -> None:
    picture, graph = tmp_path / "p.png", tmp_path / "g.graphml"
    result = run("show", SHIPPED / "theta-4360.xml", "--picture", picture, "--graph", graph)
    assert result.exit_code == 0
    for words in ("4,360 (n10000 … n14359)", "1,260,000,000,000,000 bytes", "238,400 W above idle"):
        assert words in result.output
    assert picture.stat().st_size > 10_000
    assert graph.stat().st_size > 10_000


def test_show_as_json() -> None:
    result = run("show", "--json", SHIPPED / "cluster-512.xml")
    summary = json.loads(result.output)
    assert summary["capacities"] == {"nodes": 512, "burst_buffer": 4 * 10**14, "power": 49_280}
    assert summary["power"]["job_watts"][:2] == [60, 65]


def test_show_and_check_take_names_of_shipped_platforms() -> None:
    by_name, by_path = (run("show", "--json", name) for name in ("sp2-128", SHIPPED / "sp2-128.xml"))
    named, found = json.loads(by_name.output), json.loads(by_path.output)
    assert Path(named.pop("path")).samefile(found.pop("path"))
    assert named == found
    assert run("check", "sp2-128", CORPUS / "good_full.xml").exit_code == 0
    unknown = run("check", "sp2-129")
    assert isinstance(unknown.exception, BridgeError)
    assert "sp2-128" in unknown.exception.remedy


def test_show_refuses_broken_platforms() -> None:
    result = run("show", CORPUS / "bad_route_link.xml")
    assert isinstance(result.exception, BridgeError)
    assert result.exception.where.endswith("bad_route_link.xml:17")


@needs_simgrid
def test_try() -> None:
    result = run("try", CORPUS / "good_full.xml")
    assert result.exit_code == 0
    assert "20 of 20 jobs as expected" in result.output
    rows = json.loads(run("try", "--json", CORPUS / "good_full.xml").output)
    assert [row["passed"] for row in rows] == [True] * 20


def test_try_refuses_what_the_check_refuses() -> None:
    result = run("try", CORPUS / "bad_speed_zero.xml")
    assert isinstance(result.exception, BridgeError)
    assert "speed-zero" in str(result.exception)


def test_the_command_starts_without_heavy_imports() -> None:
    heavy = "('numpy', 'networkx', 'matplotlib', 'rich')"
    code = f"import sys, bridge.cli.platform; print([m for m in {heavy} if m in sys.modules])"
    assert run_python(code).stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["new", "check", "show", "try"])
def test_help(command: str) -> None:
    assert run(command, "--help").exit_code == 0
