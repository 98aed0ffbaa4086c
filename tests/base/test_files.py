"""The one way into files: limits, encodings and places of errors, whoever reads."""

import gzip
from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.base.files import read_json, read_text


def refused(path: Path, content: bytes) -> BridgeError:
    path.write_bytes(content)
    with pytest.raises(BridgeError) as caught:
        read_json(path, unique=True)
    return caught.value


def test_json(tmp_path: Path) -> None:
    path = tmp_path / "plain.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": [1, 2.5, "\\u00e9"]}')
    assert read_json(path) == {"a": [1, 2.5, "é"]}
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_json(packed) == read_json(path)


@pytest.mark.parametrize(
    ("content", "what", "line"),
    [
        (b'{"a":\n 1,}', "is no JSON (", ":2"),
        (b'{"a":\n "\xff"}', "is not UTF-8 text", ":2"),
        (b"[" * 100_000, "nested deeper", ""),
        (b"9" * 5000, "out of range", ""),
        (b"1e9999", "out of range", ""),
        (b"NaN", "NaN is not a JSON number", ""),
        (b'"\\udfff"', "half a surrogate pair", ""),
        (b'{"a": 1, "a": 2}', "stands twice", ""),
        (b"", "the file is empty", ""),
    ],
)
def test_what_is_no_json(tmp_path: Path, content: bytes, what: str, line: str) -> None:
    error = refused(tmp_path / "bad.json", content)
    assert what in error.what
    assert error.where == f"{tmp_path / 'bad.json'}{line}"


def test_a_long_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * 100)
    assert read_text(path, 100) == "x" * 100
    with pytest.raises(BridgeError, match="longer than 99 bytes"):
        read_text(path, 99)


@pytest.mark.parametrize(
    ("name", "what"), [("nowhere", "no such file"), (".", "is a folder"), ("a\0b", "cannot be read")]
)
def test_what_is_no_file(tmp_path: Path, name: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what):
        read_text(tmp_path / name)
