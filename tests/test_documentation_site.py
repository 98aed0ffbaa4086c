"""The documentation site: every link of it leads somewhere, the list of commands reads as `--help` does."""

import re
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from bridge.cli.main import COMMANDS, cli

hooks = pytest.importorskip("mkdocs_hooks", reason="mkdocs is not installed")


def page_of(command: click.Command) -> str:
    return "\n".join(hooks.describe_command(command, click.Context(command, info_name="tool")))


def test_a_link_to_no_file_and_one_to_no_heading_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.html").write_text(
        '<h2 id="here">x</h2> <a href="../a.html">a</a> <a href="#no">n</a>'
    )
    (tmp_path / "a.html").write_text(
        '<a href="sub/b.html#here">ok</a> <a href="sub/">folder</a> <a href="sub/b.html#gone">gone</a>'
        '<img src="none.svg"> <a href="https://example.org/x">out</a> Sentinel.UNSET'
    )
    assert hooks.find_problems(tmp_path) == [
        "a.html: Sentinel.UNSET",
        "a.html: none.svg leads to no file",
        "a.html: sub/ leads to no file",
        "a.html: sub/b.html#gone leads to no heading",
        "sub/b.html: #no leads to no heading",
    ]


def test_files_outside_docs_are_named_by_their_path() -> None:
    text = "[x](../examples/own_rules.py) [y](batsim.md) [z](../README.md) [n](../nosuch.py)"
    assert hooks.outside_links("policies.md", text) == {"examples/own_rules.py": "../examples/own_rules.py"}


def test_a_command_is_described_with_its_options_and_examples() -> None:
    @click.command(
        params=[
            click.Option(["--size"], type=int, help="How [many] of a|b."),
            click.Option(["--secret"], hidden=True),
        ]
    )
    def tool() -> None:
        """Do a *thing*.

        \b
        Examples:
          tool --size 3
          tool
        """

    assert page_of(tool).splitlines() == [
        "",
        r"Do a \*thing\*.",
        "",
        "Examples:",
        "",
        "```sh",
        "tool --size 3",
        "tool",
        "```",
        "",
        "",
        "```text",
        "tool [OPTIONS]",
        "```",
        "",
        "| Options | |",
        "|---|---|",
        r"| `--size INTEGER` | How \[many\] of a\|b. |",
        "| `--help` | Show this message and exit. |",
    ]


def test_every_command_has_its_heading_and_no_default_is_an_object() -> None:
    page = page_of(cli)
    headings = re.findall(r"^## tool (\S+) ", page, re.MULTILINE)
    assert headings == list(COMMANDS)
    assert hooks.UNWANTED not in page
    assert "### tool workload info " in page


def test_a_page_of_results_leads_back_to_the_list_of_all() -> None:
    def complete(uri: str) -> str:
        return str(hooks.on_page_markdown("# Title\n", SimpleNamespace(file=SimpleNamespace(src_uri=uri))))

    assert complete("results/one.md") == "# Title\n\n\n[All results](README.md)\n"
    assert complete("results/README.md") == complete("concepts.md") == "# Title\n"
