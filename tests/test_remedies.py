"""Remedies can be followed: every command that a message names is one, and those without blanks run."""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from test_architecture import ROOT, parse

#: What stands for a part that only the user knows.
BLANK = "BLANK"
#: Commands that take long, or change more than the folder that they run in.
NOT_RUN = ("bridge replay", "bridge train", "bridge workload fetch")


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of all string literals but docstrings; a part that is computed is a blank."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else BLANK for part in node.values)
            yield node.lineno, "".join(map(str, parts))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs | inside:
            yield node.lineno, node.value


def commands() -> list[tuple[str, str]]:
    """Return (place, command) of all `bridge …` and `pip install …` that our messages name."""
    found = []
    for path in sorted((ROOT / "bridge").rglob("*.py")):
        for line, text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(ROOT)}:{line}"
            found += [(place, words) for words in re.findall(r"`((?:bridge|pip install) [^`]+)`", text)]
            found += [(place, words) for words in re.findall(r"(?<!`)(pip install [^`\n]+)", text)]
            if re.fullmatch(r"bridge [a-z]+( [\w-]+)*", text):
                found.append((place, text))
    return found


def filled_in(command: str) -> str:
    command = re.sub(r"\[[A-Z][^\]]*\]", "", command.split(" > ")[0])
    return re.sub(r"…|\b[A-Z][A-Z_]+(\.\w+)?\b", BLANK, command)


def test_commands_in_messages_parse() -> None:
    wrong = []
    for place, command in commands():
        if not command.startswith("bridge "):
            continue
        try:
            parse(filled_in(command))
        except click.exceptions.Exit:  # --help
            pass
        except (click.ClickException, AssertionError) as error:
            said = error.format_message() if isinstance(error, click.ClickException) else str(error)
            if not said.startswith(
                ("Missing argument", "Missing option", "File", "Directory", "Option '--config' requires")
            ):
                wrong.append(f"{place}: {command}: {said}")
    assert not wrong, "\n".join(wrong)


def test_commands_without_blanks_run(tmp_path: Path) -> None:
    ran = set()
    for _, command in commands():
        whole = filled_in(command) == command and BLANK not in command and len(command.split()) > 2
        if whole and command.startswith("bridge ") and not command.startswith(NOT_RUN) and command not in ran:
            ran.add(command)
            words = [sys.executable, "-m", "bridge.cli.main", *shlex.split(command)[1:]]
            done = subprocess.run(
                words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
            )
            assert done.returncode in (0, 2) and "No such" not in done.stderr, (command, done.stderr)
    assert "bridge workload list" in ran


def test_packages_that_are_to_be_installed_are_the_project_s() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8").lower()
    named = [words for _, words in commands() if re.match(r"pip install [^-.]", words)]
    assert named
    for words in named:
        for name in shlex.split(words.partition("pip install ")[2].replace("'", "")):
            package = re.match(r"\w[\w-]*", name)
            if extra := re.fullmatch(r"hpc-bridge\[(\w+)\]", name):  # what is installed gets an extra
                assert f"\n{extra[1]} = [" in declared, words
                continue
            assert "hpc-bridge" not in name, words  # there is no release
            assert package is None or BLANK in name or f'"{package[0].lower()}' in declared, words
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        assert not re.search(r"pip install '?hpc-bridge", page.read_text(encoding="utf-8")), page
