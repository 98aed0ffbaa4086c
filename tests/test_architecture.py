"""The house plan holds: who may import whom, a module for every command, no example that does not parse."""

import ast
import graphlib
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from subprocess_python import run_python

from bridge.base.plugins import GROUPS
from bridge.cli import main as command_line
from bridge.cli.main import COMMANDS, HEADINGS, cli

ROOT = Path(__file__).parents[1]
#: Modules of `bridge.cli` that are no command.
HELPERS = {*("__init__", "accounting", "completion", "decide_slurm", "main", "options", "terminal")}
#: The pool's wing has its own network and training, predictions of running jobs a network.
LEARNS = [ROOT / "bridge/pool" / f"{name}.py" for name in ("network", "rollout", "training")]
LEARNS += [ROOT / "bridge/prediction/series_network.py"]
PAGES = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/tutorials").glob("*.md")]
#: What ends a command in a shell line.
OPERATORS = {"|", "||", "&&", "&", ";", ">", ">>", "<", "2>"}


def test_every_room_has_its_tests() -> None:
    """What commands do is tested by the commands, in `tests/cli`."""
    rooms = {path.name for path in (ROOT / "bridge").iterdir() if (path / "__init__.py").is_file()}
    rooms |= {f"worlds/{path.parent.name}" for path in (ROOT / "bridge/worlds").glob("*/__init__.py")}
    without = {room for room in rooms if not any((ROOT / "tests" / room).rglob("test_*.py"))}
    assert without == {"commands"}


def test_no_two_test_modules_have_one_name() -> None:
    """Pytest imports each by its name alone, so that a whole suite with two of a name is not collected."""
    names = [
        path.name for path in (ROOT / "tests").rglob("*.py") if path.stem not in ("conftest", "__init__")
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_imports_run_one_way() -> None:
    pytest.importorskip("importlinter", reason="import-linter is not installed")
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = run_python(code, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = re.search(r"Contracts: (\d+) kept, 0 broken", done.stdout)
    assert kept, done.stdout
    assert int(kept[1]) >= 4


def test_help_lists_exactly_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Replay and judge:\n")[2]
    names = re.findall(r"^  (\S+)", listed, re.MULTILINE)
    assert len(names) == len(set(names))
    assert set(names) == set(COMMANDS)


def test_headings_of_the_help_name_commands_each_once() -> None:
    names = [name for group in HEADINGS.values() for name in group]
    assert len(names) == len(set(names))
    assert set(names) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [(["repaly", "x"], "replay"), (["workload", "inof", "x"], "info"), (["workload", "ipmort"], "import")],
)
def test_a_misspelt_command_is_answered_with_the_nearest(
    arguments: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(arguments) == 2
    assert f"Did you mean {nearest}?" in capsys.readouterr().err


def test_a_command_like_none_is_answered_without_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["qqqq"]) == 2
    error = capsys.readouterr().err
    assert "No such command 'qqqq'" in error
    assert "Did you mean" not in error


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_module_and_a_line(name: str) -> None:
    command = getattr(importlib.import_module(f"bridge.cli.{name}"), name)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert COMMANDS[name].endswith(".")
    assert command.help


def test_every_module_of_the_command_line_is_a_command_or_a_helper() -> None:
    modules = {path.stem for path in (ROOT / "bridge/cli").glob("*.py")}
    assert modules - HELPERS <= set(COMMANDS), "add it to COMMANDS in bridge/cli/main.py, or to HELPERS here"
    assert set(COMMANDS) <= modules


def test_no_command_imports_another() -> None:
    for name in COMMANDS:
        text = (ROOT / f"bridge/cli/{name}.py").read_text(encoding="utf-8")
        taken = set(re.findall(r"^\s*(?:from|import) bridge\.cli\.(\w+)", text, re.MULTILINE))
        assert taken <= HELPERS, f"{name} imports {sorted(taken - HELPERS)}"


def test_only_learning_imports_torch() -> None:
    for path in sorted((ROOT / "bridge").rglob("*.py")):
        if "learn" not in path.relative_to(ROOT).parts and path.stem != "train" and path not in LEARNS:
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"^\s*(import|from) torch\b", text, re.MULTILINE), path


def blocks(path: Path) -> Iterator[str]:
    """Yield the lines of a Markdown file's code blocks that are `bridge …` commands."""
    fenced = re.findall(r"^```[a-z]*\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for block in fenced:
        for line in block.replace("\\\n", " ").splitlines():
            words = line.strip().removeprefix("$ ")
            if words.startswith("bridge "):
                yield words


def leaves(command: click.Command, context: click.Context) -> Iterator[click.Command]:
    if not isinstance(command, click.Group):
        yield command
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, context)


def examples() -> list[tuple[str, str]]:
    """Return (where it stands, command) of README, docs and the help of every command."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [(page.name, line) for page in pages if page.exists() for line in blocks(page)]
    with click.Context(cli, help_option_names=["-h", "--help"]) as context:
        for command in leaves(cli, context):
            lines = map(str.strip, (command.help or "").splitlines())
            found += [(f"help of {command.name}", line) for line in lines if line.startswith("bridge ")]
    return found


def parse(line: str) -> None:
    """Parse a command line without running it; click raises if a word is wrong."""
    words = shlex.split(line, comments=True)[1:]
    end = next((k for k, word in enumerate(words) if word in OPERATORS), len(words))
    words = words[:end]
    command: click.Command = cli
    context = click.Context(cli, info_name="bridge", help_option_names=["-h", "--help"])
    while isinstance(command, click.Group):
        if not words and command.invoke_without_command:
            return
        name, *words = words
        inner = command.get_command(context, name)
        assert inner is not None, f"no command {name!r}"
        command = inner
        context = click.Context(command, parent=context, info_name=name)
    command.make_context(command.name, list(words), parent=context)


def test_examples_parse() -> None:
    wrong = []
    for where, line in examples():
        try:
            parse(line)
        except (click.ClickException, AssertionError) as error:
            said = error.format_message() if isinstance(error, click.ClickException) else str(error)
            wrong.append(f"{where}: {line}: {said}")
    assert not wrong, "\n".join(wrong)


def test_examples_are_found_and_wrong_ones_noticed() -> None:
    if not (ROOT / "README.md").exists():
        pytest.skip("there is no README yet")
    assert len([where for where, _ in examples() if where == "README.md"]) >= 5
    assert [line for where, line in examples() if where == "help of replay"]
    with pytest.raises(click.ClickException):
        parse("bridge replay log.swf --nosuch")
    with pytest.raises(AssertionError):
        parse("bridge nosuch")


def test_every_file_of_tests_has_a_name_of_its_own() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert sorted(names) == sorted(set(names)), "pytest imports test modules by their bare names"


def test_no_file_imports_in_a_circle() -> None:
    files = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in (ROOT / "bridge").rglob("*.py")}
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}

    def imported(path: Path) -> set[str]:
        found = set()
        for node in ast.walk(
            ast.parse(path.read_text(encoding="utf-8"))
        ):  # those for types, those within functions
            if isinstance(node, ast.ImportFrom) and node.module:
                inside = [f"{node.module}.{alias.name}" for alias in node.names]
                found |= {one if one in files else node.module for one in inside}
        return found & files.keys()

    order = graphlib.TopologicalSorter({name: imported(path) for name, path in files.items()})
    order.prepare()  # raises CycleError, which names the circle


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Debian 12's Python (3.11.2) matches `(...)*+` wrongly; `(?>(?:...)*)` says the same."""
    strings = (
        (path, node.value)
        for path in (ROOT / "bridge").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    assert [(path, text) for path, text in strings if re.search(r"\)[*+?]\+", text)] == []


def test_the_least_click_is_one_whose_choices_have_a_type() -> None:
    """`click.Choice[str]` ends click 8.1 with a TypeError, in every command that has a choice."""
    declared = re.search(r'"click>=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    typed = any(
        "click.Choice[" in path.read_text(encoding="utf-8") for path in (ROOT / "bridge").rglob("*.py")
    )
    assert declared is not None
    assert not typed or (int(declared[1]), int(declared[2])) >= (8, 2)


def test_pages_name_files_that_are_there() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/tutorials").glob("*.md"),
    ]
    named = {
        (page.name, path)
        for page in pages
        for path in re.findall(
            r"\b(?:bridge|policies|papers|tests)/[\w/]+\.(?:py|toml)\b", page.read_text("utf-8")
        )
    }
    assert len(named) > 20
    assert [(page, path) for page, path in sorted(named) if not (ROOT / path).exists()] == []


def test_dotted_names_of_pages_can_be_imported() -> None:
    dotted = re.compile(r"`(bridge(?:\.[a-z_0-9]+)+)(?:\.[A-Z]\w*)?[`(]")
    named = {name for page in PAGES for name in dotted.findall(page.read_text("utf-8"))}
    assert len(named) > 20
    missing = []
    for name in sorted(named - {*GROUPS.values(), "bridge.algorithms", "bridge.networks"}):
        package, _, last = name.rpartition(".")
        place = ROOT.joinpath(*name.split("."))
        if place.is_dir() or place.with_suffix(".py").exists():
            continue
        if not hasattr(importlib.import_module(package), last):
            missing.append(name)
    assert missing == []
