"""Options made of a settings dataclass: type, bounds, help, headings, and what was typed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner

from bridge.config import Constraint, Count, Share
from bridge.config.fields import attributes
from bridge.config.options import Command, given_on_command_line, group, options


@dataclass(frozen=True)
class Rules:
    """The rules.

    Attributes:
        order: of the queue, ``fcfs`` or
            another one.
        share, nodes: how much, and how many. They are
            numbers.
        energy: whether it is simulated
        keep: jobs that never ran.
        words: more; may be repeated.
        pair: both.
        file: a path.
        hidden: nothing.
    """

    order: Annotated[str, Constraint(choices=("fcfs", "sjf"), metavar="ORDER")] = "fcfs"
    share: Share = 0.5
    nodes: Count | None = None
    energy: bool = False
    keep: Literal["", "keep", "drop"] = ""
    words: tuple[str, ...] = ()
    pair: tuple[Share, Share] = (0.0, 1.0)
    file: Annotated[Path | None, Constraint(option="--input -i", group="Files")] = None
    hidden: Annotated[int, Constraint(option="-")] = 0


@click.command(cls=Command)
@options(Rules, heading="Rules", keep=Constraint(help="What else."))
@group("Other things", click.option("--plain"), click.option("--more"))
@click.option("--last", help="Of all.")
@click.pass_context
def command(ctx: click.Context, /, **_: Any) -> None:
    click.echo(repr(given_on_command_line(ctx, Rules)))
    click.echo(sorted(given_on_command_line(ctx)))


def run(*words: str) -> str:
    done = CliRunner().invoke(command, words)
    return done.output


def test_only_what_was_typed() -> None:
    assert run() == "{}\n[]\n"
    assert run("--order", "sjf", "--plain", "x") == "{'order': 'sjf'}\n['order', 'plain']\n"
    out = run("--no-energy", "--pair", "0", "0.5", "--words", "a", "--words", "b", "-i", "f", "--nodes", "3")
    assert out.splitlines()[0] == (
        "{'nodes': 3, 'energy': False, 'words': ('a', 'b'), 'pair': (0.0, 0.5), 'file': PosixPath('f')}"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--order", "lcfs"), "'lcfs' is not one of 'fcfs', 'sjf'"),
        (("--share", "1.5"), "1.5 is not in the range 0<=x<=1"),
        (("--nodes", "0"), "0 is not in the range x>=1"),
        (("--keep", "all"), "'all' is not one of 'keep', 'drop'"),
        (("--hidden", "1"), "No such option"),
    ],
)
def test_bounds_and_choices(words: tuple[str, ...], said: str) -> None:
    assert said in run(*words)


def test_help_is_the_docstring_s_under_headings() -> None:
    out = " ".join(run("--help").split())
    assert "Rules: --order ORDER Of the queue, fcfs or another one. [default: fcfs]" in out
    assert "--share FLOAT RANGE How much, and how many. They are numbers. [default: 0.5]" in out
    assert "--energy / --no-energy Whether it is simulated." in out
    assert "[keep|drop] What else." in out
    assert out.index("Files: -i, --input PATH A path.") > out.index("Rules:")
    assert "Other things: --plain TEXT --more TEXT Options: --last TEXT Of all. --help" in out


def test_attributes_of_a_docstring() -> None:
    assert attributes(Rules)["nodes"] == "how much, and how many. They are numbers."


def test_headings_fold_until_all_is_asked_for() -> None:
    @click.command(cls=Command, folds={"Long": ("a",), "Gone": ()})
    @group("Long", click.option("--a", help="Of one."), click.option("--b", help="Of two."))
    @group("Gone", click.option("--c", help="Of three."))
    @click.option("--d", help="Of four.")
    def folded(**values: object) -> None:
        click.echo(sorted(values))

    def options_of(flag: str) -> list[str]:
        return re.findall(r"--[\w-]+", CliRunner().invoke(folded, [flag]).output)

    assert options_of("--help") == ["--a", "--d", "--help-all", "--help"]
    assert options_of("--help-all") == ["--a", "--b", "--c", "--d", "--help-all", "--help"]
    assert "Show all options, 2 more: Long, Gone." in CliRunner().invoke(folded, ["--help"]).output
    assert CliRunner().invoke(folded, ["--b", "1"]).output == "['a', 'b', 'c', 'd']\n"
