"""Names hold: no participles, a class has one home, docstrings name what there is."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("bridge", "policies", "papers")
#: They say that something happened, not what a thing is.
BANNED = frozenset(
    ["told", "found", "said", "asked", "shown", "given", "known", "made", "drawn", "seen", "begun"]
)
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def names_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node.lineno


@pytest.mark.parametrize("room", ROOMS)
def test_no_name_is_a_participle(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in FILES
        if path.relative_to(ROOT).parts[0] == room
        for name, line in names_of(ast.parse(path.read_text(encoding="utf-8")))
        if name.strip("_").lower() in BANNED
    ]
    assert wrong == []


@pytest.mark.parametrize("room", ["tests", "benchmarks"])
def test_no_helper_of_the_tests_is_named_by_a_participle(room: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name.strip("_").lower() in BANNED
    ]
    assert wrong == []


def test_a_class_name_has_one_home() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        if path.is_symlink() or "policies" in path.parts[len(ROOT.parts) + 1 :]:
            continue  # bridge/policies is a link to policies/
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def told(x, *, seen=1): pass", {"told", "x", "seen"}),
        ("self.given = a.known", {"given"}),
        ("import x as drawn", {"drawn"}),
        ("for found in y: pass", {"found"}),
        ("print(made, begun=1)", set()),
    ],
)
def test_names_are_what_is_bound(text: str, names: set[str]) -> None:
    assert {name for name, _ in names_of(ast.parse(text))} == names


@cache
def names_in(module: Path) -> set[str]:
    return {name for name, _ in names_of(ast.parse(module.read_text(encoding="utf-8")))}


def is_there(reference: str) -> bool:
    """Tell whether there is such a module, and in it the names behind it."""
    parts, place = reference.split("."), ROOT
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    module = place / "__init__.py"
    if parts and (place / f"{parts[0]}.py").is_file():
        module = place / f"{parts.pop(0)}.py"
    return set(parts) <= names_in(module)


def test_docstrings_and_comments_name_what_there_is() -> None:
    reference = re.compile(r"`(bridge(?:\.\w+){2,})`")
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in FILES
        for name in reference.findall(path.read_text(encoding="utf-8"))
        if not is_there(name)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("reference", "there"),
    [
        ("bridge.judge.metrics", True),
        ("bridge.judge.metrics.compute_metrics", True),
        ("bridge.judge.metrics.level", False),
        ("bridge.judge.nothing", False),
        ("bridge.worlds.fast.replay.Schedule", True),
    ],
)
def test_references_are_looked_up(reference: str, there: bool) -> None:
    assert is_there(reference) is there
