"""Features, licences and dependencies in Slurm's words."""

import pytest

from bridge.cluster.request_texts import (
    Dependency,
    admits,
    parse_constraints,
    parse_dependency,
    parse_licenses,
)


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("", [set()]),
        ("a", [{"a"}]),
        ("a&b", [{"a", "b"}]),
        ("a,b", [{"a", "b"}]),
        ("a|b", [{"a"}, {"b"}]),
        ("a&b|c", [{"a", "b"}, {"c"}]),
        ("(a|b)&c", [{"a", "c"}, {"b", "c"}]),
        ("[rack1|rack2]", [{"rack1"}, {"rack2"}]),
        ("[rack1*2&rack2*4]", [{"rack1", "rack2"}]),
        ("a&(b|(c&d))", [{"a", "b"}, {"a", "c", "d"}]),
        ("a|a", [{"a"}]),
    ],
)
def test_constraints(text: str, choice: list[set[str]]) -> None:
    assert list(map(set, parse_constraints(text))) == choice


@pytest.mark.parametrize("text", ["a&", "(a", "[a", "a)", "|a", "a b", "&", "[a)", "!a"])
def test_no_constraints(text: str) -> None:
    with pytest.raises(ValueError, match="feature"):
        parse_constraints(text)


def test_a_choice_does_not_explode() -> None:
    with pytest.raises(ValueError, match="more than 1000 alternatives"):
        parse_constraints("&".join(["(a|b|c|d)"] * 8))


def test_a_node_is_admitted_by_one_of_the_alternatives() -> None:
    choice = parse_constraints("a&b|c")
    features = [{"a", "b"}, {"a"}, {"c", "x"}, set[str]()]
    assert [admits(choice, own) for own in features] == [True, False, True, False]
    assert admits(parse_constraints(""), set())


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("matlab", {"matlab": 1}),
        ("matlab:2,ansys=3", {"matlab": 2, "ansys": 3}),
        ("matlab@server:2", {"matlab": 2}),
        ("a:1,a:2", {"a": 3}),
        ("a:0", {}),
        ("", {}),
    ],
)
def test_licences(text: str, counts: dict[str, int]) -> None:
    assert parse_licenses(text) == counts


@pytest.mark.parametrize("text", ["a|b", "a:x", ":2", "a:2:3"])
def test_no_licences(text: str) -> None:
    with pytest.raises(ValueError, match="licence"):
        parse_licenses(text)


@pytest.mark.parametrize(
    ("text", "conditions", "any_one"),
    [
        ("", [], False),
        ("afterok:12", [Dependency("afterok", "12")], False),
        ("afterok:12:13_4", [Dependency("afterok", "12"), Dependency("afterok", "13_4")], False),
        ("after:12+5,singleton", [Dependency("after", "12", 300), Dependency("singleton")], False),
        ("afterany:1?afternotok:2", [Dependency("afterany", "1"), Dependency("afternotok", "2")], True),
        ("afterok:12_*", [Dependency("afterok", "12", array=True)], False),
        ("after:12_*+2", [Dependency("after", "12", 120, array=True)], False),
        ("afterok:16(unfulfilled)", [Dependency("afterok", "16")], False),
    ],
)
def test_dependencies(text: str, conditions: list[Dependency], any_one: bool) -> None:
    assert parse_dependency(text) == (tuple(conditions), any_one)


@pytest.mark.parametrize(
    "text", ["aftercorr:1", "afterok", "afterok:", "afterok:1,afterany:2?after:3", "afterok:1+5", "x"]
)
def test_no_dependencies(text: str) -> None:
    with pytest.raises(ValueError):
        parse_dependency(text)
