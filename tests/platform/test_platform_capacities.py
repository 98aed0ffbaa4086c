"""Machine capacities: which storage counts as burst buffer, how power is accounted, what is refused."""

from pathlib import Path

import pytest
from platform_helpers import CORPUS

from bridge.base.errors import BridgeError
from bridge.platform import read_platform
from bridge.platform.capacities import burst_buffers, capacities, power_summary
from bridge.platform.model import Platform
from bridge.platform.summary import summarise, summary_lines


def edited(tmp_path: Path, *changes: tuple[str, str], name: str = "good_power.xml") -> Platform:
    text = (CORPUS / name).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "platform.xml"
    path.write_text(text)
    return read_platform(path)


def test_all_resources() -> None:
    """60 W idle, 120 W full; the sleeping and moving pstates do not count; 1000 W budget."""
    platform = read_platform(CORPUS / "good_power.xml")
    assert capacities(platform) == {"nodes": 1, "burst_buffer": 10 * 10**12, "power": 940}
    assert capacities(platform, accounting="jobs")["power"] == 1000
    power = power_summary(platform)
    assert power is not None
    assert (power.idle, power.full, power.budget, power.job_watts) == (60, 120, 1000, ())


def test_without_a_budget_the_machine_may_run_at_full_power(tmp_path: Path) -> None:
    platform = edited(tmp_path, ('  <prop id="power_budget" value="1000"/>\n', ""))
    assert capacities(platform)["power"] == 60


def test_only_nodes() -> None:
    platform = read_platform(CORPUS / "good_full.xml")
    assert capacities(platform) == {"nodes": 2}
    assert power_summary(platform) is None


def test_storage_without_kinds_counts_if_it_has_a_capacity(tmp_path: Path) -> None:
    platform = edited(tmp_path, ('   <prop id="storage_kind" value="burst_buffer"/>\n', ""))
    assert burst_buffers(platform) == {"bb": 10 * 10**12}


def test_a_file_system_is_no_burst_buffer(tmp_path: Path) -> None:
    platform = edited(tmp_path, ('value="burst_buffer"', 'value="pfs"'))
    assert burst_buffers(platform) == {}
    assert "burst_buffer" not in capacities(platform)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('value="10TB"', 'value="much"', "host 'bb'"),
        ("60:70:120", "60:x:120", "host 'n0'"),
        ('value="1000"', 'value="lots"', "power_budget"),
        ('value="1000"', 'value="59"', "below the 60 W of the idle machine"),
    ],
)
def test_malformed(tmp_path: Path, old: str, new: str, words: str) -> None:
    platform = edited(tmp_path, (old, new))
    with pytest.raises(BridgeError, match=words) as caught:
        capacities(platform)
    assert str(tmp_path / "platform.xml") in caught.value.where


def test_summary() -> None:
    summary = summarise(read_platform(CORPUS / "good_power.xml"))
    assert summary["compute_hosts"] == 1
    assert summary["speeds"] == [{"hosts": 1, "speed": 2e9, "cores": 1, "pstates": 5}]
    assert summary["storage"] == [{"name": "bb", "kind": "burst_buffer", "capacity": 10 * 10**12}]
    assert summary["management_latency"] == 0
    text = dict(summary_lines(summary))
    assert text["power"] == "idle 60 W, full 120 W, budget 1,000 W"
    assert text["storage bb"] == "burst buffer, 10 TB"
    assert text["master"] == "master_host, messages to it: no latency"
