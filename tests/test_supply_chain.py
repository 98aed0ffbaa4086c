"""What others make is named exactly: actions and CI's packages by digest; and no image runs as root."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text()
#: Installed by itself, before all others.
TORCH = "torch"


def locked() -> dict[str, list[str]]:
    """Return the versions of each package in the lock, by name: one for each range of Pythons."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", LOCK, re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(version)
    return found


def test_actions_are_named_by_the_digest_of_a_commit() -> None:
    used = [
        line
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert used
    for line in used:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v[0-9.]+$", line), line


def test_every_package_of_the_lock_has_digests() -> None:
    entries = [entry for entry in re.split(r"^(?=[a-z0-9])", LOCK, flags=re.MULTILINE) if "==" in entry]
    assert len(entries) > 100
    for entry in entries:
        assert re.fullmatch(r"[^\n]+ \\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n)+", entry), entry


def test_the_lock_has_all_that_is_asked_for_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = [
        Requirement(text) for text in (*project["dependencies"], *(t for e in extras.values() for t in e))
    ]
    have = locked()
    for one in asked:
        name = canonicalize_name(one.name)
        if name not in (TORCH, "hpc-bridge"):
            assert have.get(name), f"{one} is not in the lock: make lock"
            assert all(Version(version) in one.specifier for version in have[name]), f"{one}: make lock"
    assert not [name for name in have if name == TORCH or name.startswith(("nvidia-", "cuda-", "triton"))]


def test_ci_installs_the_lock() -> None:
    assert "LOCK: requirements.lock" in (ROOT / ".github" / "workflows" / "test.yml").read_text()


def test_the_image_runs_as_a_user_who_cannot_change_it() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["bridge"]
    assert not [line for line in lines if re.search(r"chmod .*[ao]\+[rX]*w", line)]


def test_the_image_s_last_stage_has_no_pip_and_no_sources() -> None:
    last = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert "COPY --from=build /opt/bridge /opt/bridge" in last
    assert not re.search(r"\bpip\b|/src|python3-venv", last)
