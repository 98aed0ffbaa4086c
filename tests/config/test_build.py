"""Settings from plain data: tables, bounds, choices, what is refused and in which words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from bridge.base.errors import BridgeError
from bridge.config import (
    Constraint,
    Count,
    Positive,
    Share,
    command_line,
    from_tables,
    merged,
    parse_toml,
    read_toml,
    spell,
    to_tables,
    verify,
)


@dataclass(frozen=True)
class Layer:
    width: Count
    shares: tuple[Share, Share] = (0.0, 1.0)


@dataclass(frozen=True)
class Adam:
    rate: Positive = 1e-3


@dataclass(frozen=True)
class Plain:
    steps: Count = 5


METHODS: dict[str, type[Any]] = {"adam": Adam, "plain": Plain}


def no_slash(text: str) -> None:
    if "/" in text:
        raise ValueError("a name has no slash")


@dataclass(frozen=True)
class Whole:
    """Something whole.

    Attributes:
        name: what it is called; ``-`` and `such`
            go on here.
        seed, other: numbers.
    """

    name: Annotated[str, Constraint(parse=no_slash)]
    seed: int = 0
    other: int | None = None
    threshold: float = 10.0
    order: Annotated[str, Constraint(choices=lambda: ("fcfs", "sjf"))] = "fcfs"
    rule: Annotated[str, Constraint(choices=("easy",), open=True)] = "easy"
    kind: Literal["mlp", "cnn", ""] = "mlp"
    layers: tuple[Layer, ...] = ()
    hidden: tuple[Count, ...] = (32, 16)
    speed: Annotated[tuple[str, ...], Constraint(single=True)] = ()
    first: Layer = field(default_factory=lambda: Layer(3))
    maybe: Layer | None = None
    constants: Mapping[str, float] = field(default_factory=dict)
    path: Path = Path("x")
    label: int | str = ""
    method: Annotated[str, Constraint(choices=lambda: METHODS)] = "adam"
    settings: Annotated[Any, Constraint(made_of=lambda known: METHODS[known["method"]])] = Adam()


FULL = {
    "name": "a",
    "seed": 3,
    "threshold": 5,
    "order": "sjf",
    "rule": "my:RULE",
    "kind": "cnn",
    "layers": [{"width": 4}, {"width": 5, "shares": [0, 0.5]}],
    "hidden": [1],
    "speed": "1Gf",
    "first": {"shares": [0.5, 1]},
    "maybe": {"width": 1},
    "constants": {"x": 1},
    "method": "plain",
    "settings": {"steps": 7},
}


def test_everything_there_is() -> None:
    made = from_tables(Whole, FULL, "e.toml")
    assert made == Whole(
        "a",
        3,
        threshold=5.0,
        order="sjf",
        rule="my:RULE",
        kind="cnn",
        layers=(Layer(4), Layer(5, (0.0, 0.5))),
        hidden=(1,),
        speed=("1Gf",),
        first=Layer(3, (0.5, 1.0)),
        maybe=Layer(1),
        constants={"x": 1.0},
        method="plain",
        settings=Plain(7),
    )
    assert isinstance(made.threshold, float) and isinstance(made.first.shares[1], float)
    assert from_tables(Whole, to_tables(made), "again") == made
    assert from_tables(Whole, to_tables(made, Whole("")), "again") == made
    verify(made, "made in Python")


def test_what_is_the_default_is_left_out() -> None:
    made = Whole("a", first=Layer(3, (0.5, 1.0)), path=Path("y"))
    assert to_tables(made, Whole("")) == {"name": "a", "first": {"shares": [0.5, 1.0]}, "path": "y"}
    assert "other" not in to_tables(made)


def test_what_is_not_there_is_the_base_s() -> None:
    base = Whole("b", seed=9, first=Layer(8), settings=Adam(0.5))
    assert from_tables(Whole, {"first": {"shares": [0, 0]}}, "e", base) == Whole(
        "b", seed=9, first=Layer(8, (0.0, 0.0)), settings=Adam(0.5)
    )
    assert from_tables(Whole, {"method": "plain", "settings": {}}, "e", base).settings == Plain()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "e.toml: name is missing\n  Add it: a text."),
        ({"nam": "a"}, "e.toml: unknown field 'nam'\n  Did you mean name? Known: name, seed"),
        ({"first": {"widht": 1}}, "unknown field 'widht' in first\n  Did you mean width?"),
        ({"first": 3}, "e.toml: first is no table\n  Write [first]."),
        ({"layers": {"width": 1}}, "layers cannot be"),
        ({"layers": [{}]}, "layers[0].width is missing"),
        ({"layers": [{"width": 0}]}, "layers[0].width cannot be 0\n  Write a whole number at least 1."),
        ({"seed": True}, "seed cannot be True\n  Write a whole number."),
        ({"seed": 1.5}, "seed cannot be 1.5"),
        ({"threshold": "x"}, "threshold cannot be 'x'\n  Write a number."),
        ({"threshold": float("nan")}, "threshold cannot be nan"),
        ({"threshold": 10**400}, "threshold cannot be 1000"),
        ({"order": "xyz"}, "order cannot be 'xyz'\n  Write one of 'fcfs', 'sjf'."),
        ({"kind": "rnn"}, "kind cannot be 'rnn'\n  Write one of 'mlp', 'cnn', ''."),
        ({"hidden": [0]}, "hidden[0] cannot be 0"),
        ({"hidden": 3}, "hidden cannot be 3\n  Write a list, each a whole number."),
        ({"speed": 3}, "speed[0] cannot be 3"),
        ({"first": {"shares": [0.1]}}, "first.shares cannot be [0.1]\n  Write a list of 2"),
        (
            {"first": {"shares": [0, 1.5]}},
            "first.shares[1] cannot be 1.5\n  Write a number at least 0 and at",
        ),
        ({"constants": {"x": "y"}}, "constants.x cannot be 'y'"),
        ({"name": "a/b"}, "name cannot be 'a/b': a name has no slash"),
        ({"settings": {"rate": 0}}, "settings.rate cannot be 0.0\n  Write a number above 0."),
        ({"method": "plain", "settings": {"rate": 1}}, "unknown field 'rate' in settings"),
        ({"other": None, "seed": None}, "seed cannot be None"),
        (3, "e.toml: this is no table\n  Its fields: name, seed"),
        ({"label": 1.5}, "label cannot be 1.5\n  Write a whole number or a text."),
    ],
)
def test_what_does_not_fit_is_refused_by_file_and_key(document: Any, said: str) -> None:
    if isinstance(document, dict) and document and "nam" not in document:
        document = {"name": "a"} | document
    with pytest.raises(BridgeError) as error:
        from_tables(Whole, document, "e.toml")
    assert said in str(error.value)


def test_objects_made_in_python_are_held_to_the_same() -> None:
    with pytest.raises(BridgeError, match=r"recipe: first.width cannot be 0"):
        verify(Whole("a", first=Layer(0)), "recipe")


def test_tables_over_tables() -> None:
    expected = {"a": {"b": 5, "c": 2}, "d": {"e": 1}}
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5}, "d": {"e": 1}}) == expected


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"a = 1\nb = x", "e.toml:2: not valid TOML: Invalid value"),
        (b"a = 1\nb = '\xe9'", "e.toml:2: not valid TOML: no text in UTF-8"),
        (b"a = " + b"9" * 5000, "e.toml: not valid TOML: Exceeds the limit"),
        (b"a = " + b"[" * 100_000, "e.toml: not valid TOML: nested too deep"),
    ],
)
def test_files_that_are_no_toml(raw: bytes, said: str) -> None:
    with pytest.raises(BridgeError) as error:
        parse_toml(raw, "e.toml")
    assert str(error.value).startswith(said)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="cannot be read"):
        read_toml(tmp_path / "none.toml")
    (tmp_path / "e.toml").write_text("a = 1")
    assert read_toml(tmp_path / "e.toml") == {"a": 1}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ["--x-y"]),
        (False, ["--no-x-y"]),
        (("a", "-b"), ["--x-y=a", "--x-y=-b"]),
        (0.5, ["--x-y", "0.5"]),
    ],
)
def test_an_option_with_its_value(value: Any, words: list[str]) -> None:
    assert spell("--x-y", value) == words


def test_a_command_line_is_as_a_shell_reads_it() -> None:
    assert command_line("study run", "my file", "--seeds", "1") == "bridge study run 'my file' --seeds 1"
