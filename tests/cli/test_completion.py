"""The shell completes workloads, policies, clusters, platforms and settings."""

import pytest
from click.shell_completion import BashComplete

from bridge.cli.main import cli


def completed(*words: str) -> list[str]:
    """Return what is offered for the last word."""
    shell = BashComplete(cli, {}, "bridge", "_BRIDGE_COMPLETE")
    items = shell.get_completions(list(words[:-1]), words[-1])
    return [item.value for item in items if item.type == "plain"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rep",), ["replay", "report"]),
        (("replay", "bund"), ["bundled-128"]),
        (("workload", "info", "bund"), ["bundled-128"]),
        (("replay", "bundled-128", "--policy", "sj"), ["sjf+easy"]),
        (("replay", "bundled-128", "--policy", "sjf+c"), ["sjf+conservative", "sjf+conservative_keeps"]),
        (("evaluate", "bundled-128", "--order", "f"), ["fcfs", "f1", "f2", "f3", "f4"]),
        (("replay", "bundled-128", "--order", "u"), ["unicep", "user_shares"]),
        (("replay", "bundled-128", "--cluster", "t"), ["teaching-site", "thetagpu-2023", "thetagpu-like"]),
        (("workload", "import", "sacct", "f.txt", "--cluster", "te"), ["teaching-site"]),
        (("validate", "fcfs+easy", "--platform", "te"), ["teaching-16"]),
        (("validate", "fcfs+e"), ["fcfs+easy"]),
        (("train", "--fast", "rls"), ["rlscheduler", "rlschert"]),
        (("train", "--fast", "mrsch", "--setting", "scalar"), ["scalar", "scalar-power"]),
        (("train", "--fast", "--setting", "rec"), ["recommended"]),
        (("policies", "show", "sem", "--setting", "th"), ["theta"]),
        (("cluster", "import", "nodes.csv", "--map", "open"), ["openb"]),
    ],
)
def test_what_is_offered(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


def test_files_are_offered_too() -> None:
    shell = BashComplete(cli, {}, "bridge", "_BRIDGE_COMPLETE")
    assert "file" in [item.type for item in shell.get_completions(["replay"], "my")]
