"""A study's record is opened, not trusted: no key of it becomes a path but the digest of a cell."""

from pathlib import Path

import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.study.archive import unpack
from bridge.study.store import Store

GOOD = "0123456789abcdef"


def a_record(path: Path, *keys: str) -> Path:
    common = {"row": "SJF", "made_of": "{}", "metrics": "[]", "logs": "{}", "test.name": "own"}
    pd.DataFrame([{"key": key, **common} for key in keys]).to_parquet(path)
    return path


@pytest.mark.parametrize(
    "key",
    [
        "{outside}/precious",
        "../../precious",
        "../cells/../../precious",
        "0123456789abcde/",
        GOOD.upper(),
        GOOD[:-1] + "\x00",
        GOOD + "\n",
        GOOD[:-1] + "١",  # a digit, but not one of a digest
        GOOD + "0",
        "",
    ],
)
def test_only_the_digest_of_a_cell_becomes_a_path(tmp_path: Path, key: str) -> None:
    precious = tmp_path / "precious.json"
    precious.write_text("mine")
    store = Store(tmp_path / "store")
    path = a_record(tmp_path / "record.parquet", GOOD, key.format(outside=tmp_path))
    with pytest.raises(BridgeError, match="is no digest of a cell") as caught:
        unpack(path, store)
    assert caught.value.where == str(path)
    assert precious.read_text() == "mine"
    assert store.done() == set()  # nor is anything else of such a file taken


def test_a_right_record_is_taken(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    unpack(a_record(tmp_path / "record.parquet", GOOD), store)
    assert store.done() == {GOOD}
    assert (store.cell(GOOD) or {})["row"] == "SJF"
