"""Plug-ins: installed, registered, or typed as module:ATTR; nothing else is ever loaded."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.base.plugins import Typed
from bridge.base.suggestions import did_you_mean


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_registered", {})


def installed(monkeypatch: pytest.MonkeyPatch, **points: str) -> None:
    """Let a package have installed these orders: name -> module:ATTR."""
    found = tuple(EntryPoint(name, value, "bridge.orders") for name, value in points.items())
    monkeypatch.setattr(plugins, "installed", lambda group: [*found] if group == "bridge.orders" else [])


def test_installed_rules_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, lightest="operator:neg", broken="no_such_module:x")
    assert plugins.names("order") == ("broken", "lightest")
    assert plugins.names("backfill") == ()
    found = plugins.find("order", "lightest")
    assert callable(found)
    assert found(3) == -3
    assert plugins.find("order", "heaviest") is None
    assert plugins.find("backfill", "lightest") is None
    with pytest.raises(
        BridgeError, match="the order is broken: no_such_module:x: ModuleNotFoundError"
    ) as caught:
        plugins.find("order", "broken")
    assert caught.value.where == "broken"


def test_a_registered_rule_comes_before_an_installed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, lightest="operator:neg")
    plugins.register("order", "lightest", "-t*n")
    assert plugins.find("order", "lightest") == "-t*n"


def test_code_is_loaded_where_it_is_typed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "typed_rules.py").write_text("class Mine:\n    order = '-t'\n")
    monkeypatch.chdir(tmp_path)
    assert plugins.find("order", "typed_rules:Mine.order") is None
    with pytest.raises(BridgeError, match=r"a file cannot load\n.*line: --order typed_rules:Mine"):
        plugins.load_reference("typed_rules:Mine.order", "--order")
    with pytest.raises(BridgeError, match="is code of your own, which a file cannot load"):
        plugins.load_reference(Typed(" typed_rules:Mine.order").strip())  # whatever is made of it is a text
    assert "typed_rules" not in sys.modules
    assert plugins.allow_reference("order", Typed("typed_rules:Mine.order")) == "typed_rules:Mine.order"
    assert plugins.find("order", "typed_rules:Mine.order") == "-t"
    assert (
        plugins.allow_reference("order", Typed("(w/t)**3*n")) == "(w/t)**3*n"
    )  # no code, and nothing happens
    for text, why in {
        "nowhere_at_all:x": "ModuleNotFoundError",
        "typed_rules:Mine.x": "AttributeError",
    }.items():
        with pytest.raises(BridgeError, match=why) as caught:
            plugins.allow_reference("order", Typed(text))
        assert caught.value.where == text


def test_every_group_of_ours_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "scheduling.md").read_text()
    for group in plugins.GROUPS.values():
        assert f"`{group}`" in text


@pytest.mark.parametrize(
    ("word", "nearest"), [("sfj", "sjf"), ("srff", "srf"), ("frs", "srf"), ("conservativ", "conservative")]
)
def test_letters_in_another_order_are_nearest(word: str, nearest: str) -> None:
    assert did_you_mean(word, ("srf", "sjf", "conservative")) == f"Did you mean {nearest}? "


def test_a_word_like_none_has_no_hint() -> None:
    assert did_you_mean("xyz", ("srf", "sjf")) == ""
