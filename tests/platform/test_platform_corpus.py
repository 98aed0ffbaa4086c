"""The corpus of good and bad platforms: exact findings, and SimGrid's own opinion of each file."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from platform_helpers import CORPUS, SHIPPED
from simgrid_available import needs_simgrid

from bridge.base.errors import BridgeError
from bridge.platform.check import check_platform, require_valid
from bridge.platform.findings import CATALOGUE, ORDER, findings_of_simgrid
from bridge.platform.read import read_platform

EXPECTED = json.loads((CORPUS / "expected.json").read_text())
NAMES = sorted(EXPECTED)


def test_every_file_has_expectations() -> None:
    assert sorted(path.name for path in CORPUS.glob("*.xml")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_findings_are_exactly_these(name: str) -> None:
    found = check_platform(CORPUS / name, energy=True)
    assert [[f.line, f.severity, f.code] for f in found] == EXPECTED[name]["findings"]
    worst = min((ORDER[f.severity] for f in found), default=3)
    if not name.startswith("good"):  # the name of a file says how bad it is
        assert ["bad", "warn", "note"].index(name.partition("_")[0]) == worst
    for finding in found:
        assert finding.path == str(CORPUS / name)
        assert finding.message
        assert finding.remedy


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("bad")])
def test_reading_accepts_what_has_no_error(name: str) -> None:
    assert read_platform(CORPUS / name).compute


def test_a_master_without_wattage_is_an_error_with_energy_only() -> None:
    path = CORPUS / "bad_wattage_missing_master.xml"
    assert [f.severity for f in check_platform(path) if f.code == "wattage-missing"] == ["warning"]
    assert require_valid(path)
    with pytest.raises(BridgeError, match="has no wattage"):
        require_valid(path, energy=True)


def test_reading_refuses_with_file_and_line() -> None:
    with pytest.raises(BridgeError) as caught:
        read_platform(CORPUS / "bad_route_link.xml")
    assert caught.value.where == f"{CORPUS / 'bad_route_link.xml'}:17"
    assert "no link 'l9'" in caught.value.what


def test_every_code_of_the_lint_is_in_the_corpus() -> None:
    """No rule without an example."""
    folder = Path(__file__).parents[2] / "bridge" / "platform"
    scanner = folder.parent / "wire" / "platform_xml.py"
    source = "".join(path.read_text() for path in [*folder.glob("*.py"), scanner, folder / "simgrid.toml"])
    unused = [
        key for key in CATALOGUE if f'"{key}"' not in source and f'"{key.partition("/")[0]}' not in source
    ]
    assert unused == []
    codes = {key.partition("/")[0] for key in CATALOGUE} - {"simgrid-refuses"}  # which is of `--load`
    used = {code for entry in EXPECTED.values() for _, _, code in entry["findings"]}
    assert len(codes) > 40
    assert codes - used == set()


@needs_simgrid
def test_simgrid_agrees() -> None:
    """What SimGrid refuses to load, the lint calls an error; what the lint passes, SimGrid loads."""
    # Not tried: a billion hosts, and a dragonfly that reads beyond its memory.
    tried = [name for name in NAMES if EXPECTED[name]["simgrid"] != "not tried"]
    refusals = findings_of_simgrid([CORPUS / name for name in tried])
    opinions = {name: "refuses" if no else "loads" for name, no in zip(tried, refusals, strict=True)}
    assert opinions == {name: EXPECTED[name]["simgrid"] for name in tried}
    for name, opinion in opinions.items():
        errors = [code for _, severity, code in EXPECTED[name]["findings"] if severity == "error"]
        if opinion == "refuses" and name != "warn_profiles.xml":  # that one names a profile that is not there
            assert errors, name


def test_a_zone_as_the_gateway_of_a_bypass_bars_the_way() -> None:
    text = (
        (CORPUS / "good_routing_kinds.xml")
        .read_text()
        .replace('dst="fl" gw_src="ra"', 'dst="fl" gw_src="root"')
    )
    found = check_platform("edited.xml", data=text.encode())
    (barred,) = [finding for finding in found if finding.code == "zone-unreachable"]
    assert barred.message == (
        "hosts of zone 'za' cannot reach those of 'fl': the gateway 'root' is a zone, not a host or router"
    )


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_edit_makes_the_lint_crash(data: st.DataObject) -> None:
    """Any line lost, doubled or garbled ends in findings, never in an exception."""
    name = data.draw(st.sampled_from(["good_star.xml", "good_power.xml", "good_routing_kinds.xml"]))
    lines = (CORPUS / name).read_text().splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    edit = data.draw(st.sampled_from(["drop", "double", "move", "value"]))
    if edit == "drop":
        del lines[at]
    elif edit == "double":
        lines.insert(data.draw(st.integers(0, len(lines))), lines[at])
    elif edit == "move":
        lines.insert(data.draw(st.integers(0, len(lines) - 1)), lines.pop(at))
    else:
        values = list(re.finditer(r'"([^"]*)"', lines[at]))
        if values:
            old = data.draw(st.sampled_from(values))
            word = data.draw(
                st.sampled_from(["", "n0", "root", "-1", "1e999", "UP", "Cluster", "0-3", "1:2", "&x;"])
            )
            lines[at] = lines[at][: old.start(1)] + word + lines[at][old.end(1) :]
    for finding in check_platform("edited.xml", data="\n".join(lines).encode()):
        assert 1 <= finding.line <= len(lines) + 1


@given(st.binary(max_size=200))
def test_junk_is_a_finding(junk: bytes) -> None:
    assert check_platform("junk", data=junk)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere.xml"):
        with pytest.raises(BridgeError, match="cannot read"):
            check_platform(path)


def test_another_master_name() -> None:
    """With Batsim's -m the check follows."""
    codes = [f.code for f in check_platform(CORPUS / "good_full.xml", master_name="n0")]
    assert "master-missing" not in codes
    expected = {"master_host", "n1"}
    assert {h.name for h in read_platform(CORPUS / "good_full.xml", master_name="n0").compute} == expected


def test_shipped_platforms_have_neither_errors_nor_warnings() -> None:
    for path in SHIPPED.glob("*.xml"):
        assert [f for f in check_platform(path) if f.severity != "note"] == [], path
