"""One way to name a policy: what a name means, and what is none."""

import re
from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.policy_name import PolicyName, combine_names, parse_policy, refuse_twice
from bridge.scheduler.protocol import Policy


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "order", "backfill", "kill"),
    [
        ("sjf", "sjf", "", ""),
        ("sjf+easy", "sjf", "easy", ""),
        ("wfp3+none", "wfp3", "none", "none"),
        ("(w/t)**3*n", "(w/t)**3*n", "", ""),
        ("(w/t)**3*n+conservative", "(w/t)**3*n", "conservative", ""),
        ("s + t*n", "s + t*n", "", ""),
        ("w", "w", "", ""),
        ("saf+rule", "saf", "", "rule"),
        ("tetris*", "tetris*", "", ""),
        ("tetris*+rule", "tetris*", "", "rule"),
    ],
)
def test_rules_and_heuristics(text: str, order: str, backfill: str, kill: str) -> None:
    assert parse_policy(text) == PolicyName(text, order, backfill, kill)


@pytest.mark.parametrize(
    ("text", "only"),
    [
        *(("sjf", False), ("saf+none", False), ("sjf+easy", False), ("w+t", False)),
        *(("saf+rule", True), ("tetris", True), ("random", True)),
    ],
)
def test_what_only_the_pool_has(text: str, only: bool) -> None:
    assert parse_policy(text).only_pool is only


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("sjf", Policy("sjf", "conservative", "saf")),
        ("sjf+none", Policy("sjf", "none", "saf")),
        *((text, None) for text in ("saf+rule", "tetris", "my.module:POLICY", "zoo/sem-theta")),
    ],
)
def test_the_policy_of_a_rule(text: str, policy: Policy | None) -> None:
    name = parse_policy(text)
    assert name.is_rule == (policy is not None)
    if policy is not None:
        assert name.policy("conservative", "saf") == policy


def test_agents_and_plug_ins(folder: Path) -> None:
    for name in ("agents/mine", "sjf", "other"):
        (folder / name).mkdir(parents=True)
    assert parse_policy("agents/mine").agent == "agents/mine"
    assert parse_policy("other").agent == "other"
    assert parse_policy("sjf").order == "sjf"  # a folder of that name is no agent's
    (folder / "sjf/agent.json").touch()
    assert parse_policy("sjf").agent == "sjf"
    assert parse_policy("zoo/sem-theta").agent.endswith("zoo/sem-theta")
    assert parse_policy("my.module:POLICY") == PolicyName("my.module:POLICY", plugin="my.module:POLICY")


@pytest.mark.parametrize("text", ["", " ", "sjf+", "sjf+hard", "saf+rules", "gone", "agents/gone", "../x"])
def test_what_is_no_policy(text: str) -> None:
    with pytest.raises(BridgeError, match="is no policy and no folder of a trained agent"):
        parse_policy(text)


def test_names_of_several() -> None:
    assert combine_names(("fcfs", "sjf"), ("easy", "none", "easy")) == [
        *("fcfs+easy", "fcfs+none", "sjf+easy", "sjf+none")
    ]
    assert refuse_twice(["a", "b"]) == ["a", "b"]
    with pytest.raises(BridgeError, match="named twice"):
        refuse_twice(["a", "b", "a"])


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("sfj", "sjf"),
        ("sjf+esay", "sjf+easy"),
        ("saf+rul", "saf+rule"),
        ("zoo/rlbackfiling-lublin-1", "zoo/rlbackfilling-lublin-1"),
    ],
)
def test_a_misspelt_policy_is_answered_with_the_nearest(text: str, nearest: str) -> None:
    with pytest.raises(BridgeError, match=re.escape(f"Did you mean {nearest}?")):
        parse_policy(text)
