"""JSON from strangers: what is beyond the limits is one line of ValueError, never another exception."""

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base import jsontext
from bridge.wire import json_numbers


@pytest.mark.parametrize(
    "text",
    [
        "", "[1,", "NaN", '{"a": Infinity}', "-Infinity", "1e9999", "-1e9999", "1" + "0" * 400,
        "1" * 5000, "1." + "1" * 5000, "1e" + "9" * 20, "[" * 101 + "]" * 101, "[" * 100_000 + "]" * 100_000,
        '{"a":' * 200 + "1" + "}" * 200, "[" * 10**6, '"\\ud800"', '{"\\uDFFF": 1}', '[["a", "\\udc00x"]]',
        '"\ud800"', '[["a", "\\udc00x"]]', "\ufeff{}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("exact", [False, True])
def test_what_is_beyond_the_limits_is_one_line(text: str, exact: bool) -> None:
    with pytest.raises(ValueError) as refusal:
        jsontext.loads(text, exact=exact)
    assert len(str(refusal.value)) < 200 and "\n" not in str(refusal.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", b'"\xed\xa0\x80"', b'{"a": "\xe9"}', b"\x00"])
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        jsontext.loads(data)


def test_what_is_within_the_limits_is_read() -> None:
    assert jsontext.loads(b'{"a": [1, 2.5, true, null, "\\ud83d\\ude00"]}') == {
        "a": [1, 2.5, True, None, "😀"]
    }
    assert jsontext.loads("[" * 100 + "]" * 100)
    assert jsontext.loads("1" + "0" * 300) == 10**300
    assert jsontext.loads("1e308") == 1e308
    assert jsontext.loads("0.1", exact=True) == Decimal("0.1")
    assert jsontext.loads("1e-99999999999") == 0.0
    assert jsontext.loads('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match="'a' stands twice"):
        jsontext.loads('{"a": 1, "a": 2}', unique=True)
    with pytest.raises(ValueError, match="3 bytes"):
        jsontext.loads(b"[1]", most_bytes=2)


@given(st.binary(max_size=40) | st.text(alphabet='[]{}",:\\ud8e+-.0123nultrfasINx', max_size=40))
def test_whatever_comes_is_a_value_or_a_value_error(text: bytes | str) -> None:
    try:
        value = jsontext.loads(text)
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        json_numbers.dumps(value).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@given(JSON)
def test_what_json_writes_comes_back(value: object) -> None:
    assert jsontext.loads(json.dumps(value)) == value
    assert jsontext.loads(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_numbers_are_their_text(value: float) -> None:
    text = json.dumps(value)
    assert math.isclose(float(jsontext.loads(text, exact=True)), value, rel_tol=0, abs_tol=0)
