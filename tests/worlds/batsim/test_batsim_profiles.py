"""Profiles of a simulation: their storage, and whether they are known, whatever they are composed of."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import events as ev
from bridge.worlds.batsim.profiles import JobProfiles, steps

IO = {"type": "parallel_homogeneous_pfs", "storage": "bb", "bytes_to_read": 1}


def profiles_of(**profiles: Any) -> JobProfiles:
    storage = (ev.HostInfo(1, "bb"), ev.HostInfo(2, "pfs"))
    return JobProfiles(ev.SimulationBegins(0, (ev.HostInfo(0, "a"),), storage, profiles={"w": profiles}), {})


def composed(*names: Any) -> dict[str, Any]:
    return {"type": "composed", "seq": list(names)}


def job(profile: str) -> ev.JobSubmitted:
    return ev.JobSubmitted(0, "w!1", 1, 0, None, profile)


def test_a_profile_is_known_with_all_its_parts() -> None:
    delay = {"type": "delay", "delay": 1}
    profiles = profiles_of(all=composed("d", "inner", "d"), inner=composed("io"), d=delay, io=IO)
    assert profiles.get("w", "all")["seq"] == ["d", "inner", "d"]
    assert profiles.composed("w", "all") and profiles.composed("w", "inner")
    assert profiles.get("w", "d") == delay and not profiles.composed("w", "d")
    assert profiles.storage_of(job("all")) == ({"bb": 1}, "")
    assert profiles.get("w", "none") == {} == profiles.get("x", "d")


@pytest.mark.parametrize(
    "profiles",
    [
        {"p": composed("p")},
        {"p": composed("q"), "q": composed("p")},
        {"p": composed("missing")},
        {"p": composed([], {}, 3)},
        {f"p{k or ''}": composed(f"p{k + 1}") for k in range(5000)},
    ],
)
def test_what_is_composed_of_itself_or_of_nothing_is_not_known(profiles: dict[str, Any]) -> None:
    assert profiles_of(**profiles).get("w", "p") == {}
    assert profiles_of(**profiles).storage_of(job("p")) == (None, "")


def test_parts_of_parts_are_followed_once() -> None:
    """Each level names the next one twice: a million paths, but 20 profiles."""
    doubled = {f"p{k or ''}": composed(f"p{k + 1}", f"p{k + 1}") for k in range(19)} | {"p19": IO}
    assert list(steps(doubled["p"], doubled.get)) == [IO]
    assert profiles_of(**doubled).get("w", "p") == doubled["p"]


NAMES = st.sampled_from(["p", "q", "r", "io", "?"]) | st.none() | st.integers()


@given(
    st.dictionaries(st.sampled_from(["p", "q", "r"]), st.lists(NAMES, max_size=4) | st.integers(), min_size=1)
)
def test_any_composition_ends(parts: dict[str, Any]) -> None:
    profiles = {name: {"type": "composed", "seq": seq} for name, seq in parts.items()}
    made = profiles_of(io=IO, **profiles).get("w", "p")
    assert not made or made == profiles["p"]
    uses = (
        any(step is IO for step in steps(profiles["p"], {"io": IO, **profiles}.get))
        if "p" in parts
        else False
    )
    assert profiles_of(io=IO, **profiles).storage_of(job("p")) == ({"bb": 1} if uses else None, "")
