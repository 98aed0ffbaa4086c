"""Stored names of fields (`Of.key`) stand in files, records, digests and options; code has its own."""

from dataclasses import dataclass, field
from typing import Annotated

import click
import pytest
from click.testing import CliRunner

from bridge.base.errors import BridgeError
from bridge.config.convert import from_tables, to_arguments, to_tables
from bridge.config.fields import Constraint, Count, fields_of, record_of
from bridge.config.options import given_on_command_line, options
from bridge.study.cells import digest, non_default_fields


@dataclass(frozen=True)
class Inner:
    """A table inside.

    Attributes:
        rate: a share.
    """

    rate: Annotated[float, Constraint(gt=0, key="lr")] = 0.5


@dataclass(frozen=True)
class Outer:
    """A setting.

    Attributes:
        max_epochs: where it ends at the latest.
    """

    max_epochs: Annotated[Count, Constraint(key="longest")] = 3
    inner: Inner = field(default_factory=Inner)
    plain_name: int = 1


@dataclass(frozen=True)
class Before:
    """`Outer` before its fields were renamed."""

    longest: Count = 3
    inner: dict[str, float] = field(default_factory=dict)
    plain_name: int = 1


def test_a_document_has_the_stored_names() -> None:
    document = {"longest": 7, "inner": {"lr": 0.25}}
    assert from_tables(Outer, document, "here") == Outer(max_epochs=7, inner=Inner(rate=0.25))
    assert to_tables(Outer(7, Inner(0.25)), Outer()) == document
    assert record_of(Outer(7)) == {"longest": 7, "inner": {"lr": 0.5}, "plain_name": 1}


def test_an_instance_stands_for_its_table() -> None:
    assert from_tables(Outer, Outer(9, Inner(0.1)), "here") == Outer(9, Inner(0.1))
    assert from_tables(Outer, {"inner": Inner(0.1)}, "here", Outer(8)) == Outer(8, Inner(0.1))


def test_the_name_in_code_is_no_stored_name() -> None:
    with pytest.raises(BridgeError, match="unknown field 'max_epochs'") as error:
        from_tables(Outer, {"max_epochs": 7}, "here")
    assert "longest" in str(error.value)
    with pytest.raises(BridgeError, match="longest cannot be 0"):
        from_tables(Outer, {"longest": 0}, "here")


def test_digests_are_those_of_the_stored_names() -> None:
    assert non_default_fields(Outer(7)) == non_default_fields(Before(7)) == {"longest": 7}
    assert digest(non_default_fields(Outer(7))) == digest(non_default_fields(Before(7)))


def test_options_have_the_stored_names() -> None:
    assert to_arguments(Outer(7), Outer()) == ["--longest", "7"]

    @click.command
    @options(Outer)
    @click.pass_context
    def command(context: click.Context, **_: object) -> None:
        click.echo(given_on_command_line(context, Outer))

    result = CliRunner().invoke(command, ["--longest", "5"])
    assert result.output == "{'longest': 5}\n"
    assert "Where it ends at the latest." in CliRunner().invoke(command, ["--help"]).output
    assert list(fields_of(Outer)) == ["longest", "inner", "plain_name"]
