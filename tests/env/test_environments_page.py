"""What docs/environments.md shows runs: commands and Python, block after block, as a reader would."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")
pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed (pip install sb3-contrib)")

from bridge.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    ran = {"sh": 0, "python": 0}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, PAGE.name, "exec"), names)
            ran["python"] += 1
        for line in text.splitlines():
            if language == "sh" and line.startswith("bridge "):
                assert main(shlex.split(line)[1:]) == 0
                ran["sh"] += 1
    assert ran == {"sh": 1, "python": 7}
    said = capsys.readouterr().out
    assert re.search(r"^\{'used\[0\]': .*, 'used\[1\]': .*, 'goal\[0\]': .*, 'goal\[1\]': .*\}$", said, re.M)
    assert names["shape"].resources == 2
    assert names["env"].observation_space["context"].shape == (34 * 3 + 4,)
    assert names["model"].num_timesteps == 64
