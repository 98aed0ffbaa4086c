"""Fields of JSON objects: read if they are what they should be, else one error without a place."""

from collections.abc import Callable
from typing import Any

import pytest

from bridge.base.errors import BridgeError, add_location
from bridge.wire.fields import Fields, read_json


def test_fields_are_what_they_are() -> None:
    given = Fields({"t": "x", "i": 3, "n": 1.5, "a": [1, 2], "w": ["p"], "o": {"k": 1}, "h": "5 0-1 1"})
    assert (given.text("t"), given.integer("i"), given.number("i"), given.amount("n")) == ("x", 3, 3.0, 1.5)
    assert (given.array("a"), given.amounts("a", 2), given.texts("w")) == ([1, 2], [1.0, 2.0], ["p"])
    assert (given.mapping("o"), given.hosts("h")) == ({"k": 1}, ((0, 1), (5, 5)))
    assert (given.text("z", "d"), given.number("z", -1), given.array("z", [])) == ("d", -1.0, [])
    assert "t" in given and "z" not in given
    given.only(("t", "i"), ("n", "a", "w", "o", "h"))


@pytest.mark.parametrize(
    ("read", "word"),
    [
        (lambda given: given.text("z"), "'z' is missing or not a string"),
        (lambda given: given.text("n", ""), "'n' is not a string"),
        (lambda given: given.integer("b"), "'b' is missing or not an integer"),
        (lambda given: given.number("b"), "number"),
        (lambda given: given.amount("n"), "-1.5"),
        (lambda given: given.amount("zero", positive=True), "'zero' is 0"),
        (lambda given: given.amounts("a", 3), "has 2 numbers"),
        (lambda given: given.amounts("w", None), "at least 0"),
        (lambda given: given.texts("a"), "strings"),
        (lambda given: given.mapping("a"), "an object"),
        (lambda given: given.hosts("e"), "names no machine"),
        (lambda given: given.hosts("t"), "'t': "),
        (lambda given: given.only(("n",)), "does not belong"),
        (lambda given: given.only(("z",)), "'z' is missing"),
        (lambda _: Fields([], "a job is"), "a job is not an object"),
        (lambda _: read_json("[1]"), "is not a JSON object"),
        (lambda _: read_json("{"), "is not JSON"),
    ],
)
def test_other_fields_are_refused(read: Callable[[Fields], Any], word: str) -> None:
    given = {"t": "x", "n": -1.5, "b": True, "zero": 0, "a": [1, 2], "w": ["p"], "e": ""}
    with pytest.raises(BridgeError, match=word) as refusal:
        read(Fields(given))
    assert refusal.value.where == ""


def test_places_are_put_before_one_another() -> None:
    with pytest.raises(BridgeError) as refusal, add_location("file"), add_location(""), add_location("job 7"):
        Fields({}).any("id")
    assert str(refusal.value) == "file: job 7: 'id' is missing"
