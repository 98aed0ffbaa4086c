"""The examples of the page of classes run; every class that a tutorial imports is on it."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("gymnasium", reason="gymnasium is not installed")

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reference" / "learning.md"


def test_every_example_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert len(blocks) > 9
    for text in blocks:
        names: dict[str, Any] = {}
        exec(compile(text, PAGE.name, "exec"), names)


def test_every_class_that_a_tutorial_imports_is_described() -> None:
    described = set(re.findall(r"^::: [\w.]*\.(\w+)$", PAGE.read_text(encoding="utf-8"), re.M))
    described |= {"Reward"}  # bridge.learn.recipe has it, too
    imported = {
        name.strip()
        for page in (*(DOCS / "tutorials").glob("*.md"), DOCS / "environments.md")
        for names in re.findall(r"^from bridge[\w.]* import (.+)$", page.read_text(encoding="utf-8"), re.M)
        for name in names.split(",")
    }
    assert {"Encoder", "UserPolicy"} <= imported
    assert imported - described == set()
