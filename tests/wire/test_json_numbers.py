"""JSON is written with numbers as Batsim writes them."""

import pytest

from bridge.wire import json_numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1.000000"),
        (0.1, "0.100000"),
        (1e21, "1000000000000000000000.000000"),
        (1e-7, "0.000000"),
        (-2.5, "-2.500000"),
        (2**64, "18446744073709551616.000000"),
        (2**64 - 1, "18446744073709551615"),
        (True, "true"),
        (None, "null"),
        ('é"\n', '"é\\"\\n"'),
        ({"a": [1, {"b": 1.25}], "c": {}}, '{"a":[1,{"b":1.250000}],"c":{}}'),
    ],
)
def test_numbers_are_written_like_batsims(value: object, text: str) -> None:
    assert json_numbers.dumps(value) == text
