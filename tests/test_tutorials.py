"""What README and the tutorials tell a reader to type works as written, with fewer epochs and sequences."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from trained_agents import CONFIG

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
#: What would take minutes takes seconds.
SHORTER = {
    r"(bridge train --fast \S+) --epochs \d+": r"\1 --config shorter.toml",
    r"^(bridge evaluate agents/(?!.*--sequences).*)$": r"\1 --sequences 4",
    r"epochs=\d+": "epochs=1",
    r"--sequences \d+": "--sequences 4",
    r"sequences=\d+": "sequences=4",
    r"--first \d+": "--first 60",
    # as plain Python, sooner than the kernels of actions compile
    r"^(bridge bound .*--actions) --length \d+": r"NUMBA_DISABLE_JIT=1 \1 --length 32",
}
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps(page: Path) -> list[tuple[str, str]]:
    """Return (language, text) of a page's code that is to be run, or written to a file, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCE.finditer(text):
        kind, code = match[1], match[2]
        file = re.search(r"`(\w+\.py)`:\s*$", text[: match.start()])
        if file is not None:
            found.append((file[1], code))
        elif kind in ("sh", "python"):
            found.append((kind, code))
        elif kind == "toml":  # "Write `mine.toml`:" stands before it
            named = re.findall(r"`([\w.-]+\.toml)`", text[: match.start()])
            found.append((named[-1], code))
    return found


def shorter(code: str) -> str:
    for pattern, replacement in SHORTER.items():
        code = re.sub(pattern, replacement, code, flags=re.MULTILINE)
    return code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_works_as_written(page: Path, tmp_path: Path) -> None:
    if page.stem in ("both-worlds", "ci") or page.name == "README.md":
        pytest.importorskip("zmq")
        if subprocess.run(
            [sys.executable, "-m", "bridge.cli.main", "simgrid", "--simgrid-version"],
            capture_output=True,
            check=False,
        ).returncode:
            pytest.skip("SimGrid is not here: apt install python3-simgrid")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "shorter.toml").write_text(CONFIG)
    bridge = tmp_path / "bin" / "bridge"
    bridge.parent.mkdir()
    bridge.write_text(f'#!/bin/sh\nexec {sys.executable} -m bridge.cli.main "$@"\n')
    bridge.chmod(0o755)
    python = bridge.with_name("python")
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    surroundings = os.environ | {"PATH": f"{bridge.parent}:{os.environ['PATH']}", "PYTHONPATH": paths}
    ran = 0
    for kind, code in steps(page):
        if kind.endswith((".toml", ".py")):
            (tmp_path / kind).write_text(code)
            continue
        lines = [line for line in code.splitlines() if not line.startswith("make ")]
        text = shorter("\n".join(lines))
        command = ["sh", "-euc", text] if kind == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(
            command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        ran += 1
    assert ran
