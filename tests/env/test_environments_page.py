"""What the pages of environments show runs, block after block, as a reader would; their tables are true."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium", reason="gymnasium is not installed")
pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed (pip install sb3-contrib)")

from env_checker import COMPILED

from bridge.cli.main import main
from bridge.env.register import ENVIRONMENTS

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


PAGES = {
    "pick": "bridge/Pick-v0",
    "backfill": "bridge/Backfill-v0",
    "pick-and-backfill": "bridge/PickAndBackfill-v0",
    "inspect": "bridge/Inspect-v0",
    "preempt": "bridge/Preempt-v0",
    "trial": "bridge/Trial-v0",
    "pick-or-kill": "bridge/PickOrKill-v0",
}


def _marked(name: str) -> list[pytest.MarkDecorator]:
    return COMPILED if name in ("bridge/Preempt-v0", "bridge/Trial-v0") else []


@pytest.mark.parametrize(
    ("page", "name"), [pytest.param(page, name, marks=_marked(name), id=name) for page, name in PAGES.items()]
)
def test_the_page_of_an_environment_is_true(page: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PAGE.parent / "environments" / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    exec(compile(code, page, "exec"), names)
    env = names["env"]
    assert env.spec.id == name
    assert f"`Discrete({env.action_space.n})`" in text
    assert f"shape `{env.observation_space.shape}`" in text
    if name in ENVIRONMENTS:
        columns = re.findall(r"^\| (\d+) \| (.+?): `(.+?)` \| (−?[01]) (?:…|or) 1 \|", text, re.M)
        encoder = env.unwrapped.task.encoder
        assert [(name, text) for _, name, text, _ in columns] == list(encoder.columns.items())
        low, high = env.observation_space.low[0], env.observation_space.high[0]
        assert [int(least.replace("−", "-")) for *_, least in columns] == low.astype(int).tolist()
        assert (high <= 1.0).all()
    if page == "inspect":
        assert capsys.readouterr().out == "0.0\n"
