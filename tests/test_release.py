"""What a release says of itself is the same everywhere."""

import re
import tomllib
from pathlib import Path

from bridge.base.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = {
        PROJECT["version"],
        *re.findall(r"^version: (.*)$", citation, re.MULTILINE),
        *re.findall(r"^  version: (.*)$", recipe, re.MULTILINE),
        re.findall(r"^## (\S+)", changes, re.MULTILINE)[0],
    }
    assert versions == {__version__}


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    recipe = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    needed = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    assert needed == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
