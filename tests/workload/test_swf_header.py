"""SWF headers: fields, continued text, and the machine's capacity in its many spellings."""

import pytest

from bridge.base.errors import BridgeError
from bridge.workload.resources import capacity_of, idle_power_of, parse_capacity, with_capacity
from bridge.workload.table import format_header, parse_header


def test_repeated_and_continued_fields_are_joined() -> None:
    lines = [
        ";   --- made by hand ---",
        "; Note: hybrid nodes count twice,",
        ";\tsee: http://example.org",
        ";",
        ";MaxProcs:128",
        ";    Queue: 1 short",
        "; Queue: 2 long",
        ";       which is open at night",
    ]
    assert parse_header(lines) == {
        "Comment": "--- made by hand ---",
        "Note": "hybrid nodes count twice,\nsee: http://example.org",
        "MaxProcs": "128",
        "Queue": "1 short\n2 long\nwhich is open at night",
    }


@pytest.mark.parametrize(
    ("header", "capacity"),
    [
        ({"MaxProcs": "1664 (72, 1368, 224)", "MaxNodes": "184"}, {"nodes": 1664}),
        ({"MaxNodes": "338 (batch partition; 512 total)"}, {"nodes": 338}),
        ({"MaxProcs": "-1", "MaxNodes": "16"}, {"nodes": 16}),
        ({"MaxProcs": "unknown"}, {}),
        ({}, {}),
        (
            {"MaxProcs": "4", "Capacity": "burst_buffer=10 power=3"},
            {"nodes": 4, "burst_buffer": 10, "power": 3},
        ),
    ],
)
def test_capacity(header: dict[str, str], capacity: dict[str, int]) -> None:
    assert capacity_of(header) == capacity
    assert list(capacity_of(header)) == list(capacity)


@pytest.mark.parametrize("text", ["nodes", "nodes=", "nodes=-1", "nodes=1.5", "=3"])
def test_a_capacity_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(BridgeError, match="does not state a capacity"):
        parse_capacity(f"power=5 {text}")


def test_a_capacity_is_stated_with_the_least_change() -> None:
    stated = {"MaxProcs": "1664 (72, 1368, 224)"}
    assert with_capacity(stated, {"nodes": 1664}) == stated
    assert with_capacity(stated, {"nodes": 8, "power": 5}) == {"MaxProcs": "8", "Capacity": "power=5"}
    assert with_capacity({"MaxNodes": "256", "Capacity": "power=5"}, {"nodes": 256}) == {"MaxNodes": "256"}


def test_idle_power() -> None:
    assert idle_power_of({}) == 0
    assert idle_power_of({"IdlePower": " 60"}) == 60
    for text in ("", "60 W", "-60", "59.5", "60\n60"):
        with pytest.raises(BridgeError, match="no whole number of W"):
            idle_power_of({"IdlePower": text})


def test_control_characters_cannot_break_the_header() -> None:
    assert format_header({"Note": "a\rb\n1 2 3"}) == "; Note: a b\n; Note: 1 2 3\n"
