"""Installed policies: ours are found, broken packages are told and disturb nobody, nothing imports torch."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from subprocess_python import run_python

from bridge.base.errors import BridgeError
from bridge.learn.registry import find_recipe, policies, recipe_of
from bridge.pool.recipe import PoolRecipe

#: Installs a package by (name, entry points, module's text).
Install = Callable[[str, str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name: str, points: str, text: str = "") -> None:
        info = tmp_path / f"{name}-2.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
        (info / "entry_points.txt").write_text(f"[bridge.policies]\n{points}\n")
        (tmp_path / f"{name}.py").write_text(text)

    return make


def test_ours_are_there() -> None:
    found = policies()
    assert {"rlbackfilling", "rlscheduler", "schedinspector"} <= set(found)
    for name in ("rlbackfilling", "rlscheduler", "schedinspector"):
        assert found[name].error == ""
        assert list(found[name].settings)[:2] == ["recommended", "paper"]
        assert found[name].package.startswith("hpc-bridge")


def test_listing_imports_no_torch() -> None:
    code = (
        "import sys; from bridge.learn.registry import policies; found = policies()\n"
        "assert found and not any(p.error for p in found.values() if p.package.startswith('hpc-bridge'))\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_settings() -> None:
    assert recipe_of("rlbackfilling").setting == "recommended"
    assert recipe_of("rlbackfilling", "paper").setup.protocol == "schedgym"


def test_policies_of_both_schedulers() -> None:
    found = policies()["rlschert"]
    assert (found.error, next(iter(found.settings))) == ("", "recommended")
    assert (
        find_recipe("rlschert", "kill") == recipe_of("rlschert", "kill", PoolRecipe) == found.settings["kill"]
    )
    assert find_recipe("mrsch") == recipe_of("mrsch")
    with pytest.raises(
        BridgeError, match="decides for the time-stepped pool, not for the event-driven scheduler"
    ):
        recipe_of("rlschert")
    with pytest.raises(
        BridgeError, match="decides for the event-driven scheduler, not for the time-stepped pool"
    ):
        recipe_of("mrsch", "", PoolRecipe)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("rlbackfiling", ""),
            ["unknown policy", "Did you mean rlbackfilling?", "rlscheduler, rlschert, schedinspector"],
        ),
        (("nosuch", ""), ["unknown policy", "Installed: "]),
        (("rlbackfilling", "papr"), ["no such setting", "Did you mean paper?", "recommended, paper"]),
    ],
)
def test_unknown_names_come_with_the_list(words: tuple[str, str], said: list[str]) -> None:
    with pytest.raises(BridgeError) as error:
        recipe_of(*words)
    assert all(text in str(error.value) for text in said), str(error.value)


GOOD = """
from dataclasses import replace
from bridge.policies.rlbackfilling import PAPER
SETTINGS = {"mine": replace(PAPER, name="good", setting="mine")}
"""


def test_a_third_partys_package_is_listed_like_ours(install: Install) -> None:
    install("good", "good = good:SETTINGS", GOOD)
    assert policies()["good"].package == "good 2.0"
    assert recipe_of("good").setting == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1/0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("SETTINGS = (", "SyntaxError"),
        ("OTHER = 1", "AttributeError"),
        ("SETTINGS = 3", "is no mapping of settings to recipes"),
        ("SETTINGS = {}", "is no mapping of settings to recipes"),
        ("SETTINGS = {'a': 3}", "the setting 'a' is no Recipe but a int"),
        (GOOD.replace('"good"', '"bad"'), "calls itself bad/mine, not bad_one/mine"),
        (
            GOOD.replace('"good", setting="mine"', '"bad_one", setting="mine", test_from=2.0'),
            "the setting 'mine': test_from cannot be 2.0",
        ),
        (
            GOOD.replace("rlbackfilling", "rlschert").replace(
                '"good", setting="mine"', '"bad_one", setting="mine", most_kills=-1'
            ),
            "the setting 'mine': most_kills cannot be -1",
        ),
    ],
)
def test_a_broken_package_is_told_and_disturbs_nobody(install: Install, text: str, said: str) -> None:
    install("bad_one", "bad_one = bad_one:SETTINGS", text)
    sys.modules.pop("bad_one", None)
    found = policies()
    assert said in found["bad_one"].error
    assert found["rlbackfilling"].error == ""
    with pytest.raises(BridgeError, match="the policy is broken") as error:
        recipe_of("bad_one")
    assert "bad_one 2.0" in error.value.remedy


def test_two_packages_with_one_name_are_ambiguous(install: Install) -> None:
    install("first", "same = first:SETTINGS", GOOD.replace('"good"', '"same"'))
    install("second", "same = second:SETTINGS", GOOD.replace('"good"', '"same"'))
    found = policies()["same"]
    assert (found.package, found.settings) == ("first 2.0, second 2.0", {})
    assert "uninstall one" in found.error
