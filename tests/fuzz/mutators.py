"""Mutators: seeds in, something hostile out; the same generator state gives the same bytes."""

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

#: Longer inputs are cut off: what matters is what they hold.
LONGEST = 300_000
Mutator = Callable[[random.Random, bytes, Sequence[bytes]], bytes]

#: What stands in place of numbers and words of a text, as text.
HOSTILE = (
    *("0", "-0", "-1", "1", "2.5", "-0.0", "1e-320", "1e15", "92233720368.5", "1e308", "1e400", "-1e9999"),
    *("127", "2147483648", "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775809", "18446744073709551616", "1" + "0" * 40, "9" * 400, "9" * 5000, "1_000", "1,5"),
    *("NaN", "nan", "inf", "-Infinity", "Infinity", "null", "None", "true", "false", "N/A", "Unknown"),
    *(
        "",
        " ",
        "\t",
        "\n",
        "\r",
        "\x00",
        "\x0b",
        "\x1a",
        "\x1f",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\u0663",
    ),
    *("007", "0x10", "+3", "1e5", "12:00:00", "2026-02-30T25:61:61", "-", "--", "..", "../../x", "é", "&x;"),
    *("'", '"', "\\", '"""', "[", "]", "{", "}", "(", ")", "[[", "=", ":", ";", "#", "|", ",", "%", "&", "<"),
    *(">", "n[1-3]", "n[3-1]", "n[1-999999999999]", "[1-2][3-4]", "n[", "4G", "4T", "1e3K", "gres/gpu=2"),
    *(
        "cpu=1e99",
        "module:ATTR",
        "os:system",
        "/",
        "/dev/null",
        "C:\\x",
        "a" * 3000,
        "\\ud800",
        "<!--",
        "]]>",
    ),
)
#: The same, as values of a document.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2.5, -0.0, 1e300, 10**18, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**25),
    *(10**300, 1e-320, 92233720368.5, 1e15, "", " ", "1", "-1", "1e400", "nan", "inf", "é\u2028", "\x00"),
    *("\ud800", "a" * 3000, "../../x", "/", "module:ATTR", "0-3", "3-0", "w0!1", "n[1-3]", [], {}, [[]]),
    *([None], [1, "a"], [1.5] * 40, {"a": 1}, {"": {}}, {"set": True, "infinite": False, "number": 3}),
    {"number": 10**25, "set": True},
)
_HERE = "@here@"
#: Texts of numbers that `json.dumps` does not write.
_RAW = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e9999",
    "9" * 400,
    "9" * 5000,
    "1E+2",
    "-0",
    "01",
    "0.1e",
    "tru",
)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][\w.-]*")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="surrogatepass")


# ---- of any bytes ------------------------------------------------------------------------------------------
def flip_bits(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Flip a few bits."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16)) if raw else 0):
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def set_bytes(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8)) if raw else 0):
        raw[rng.randrange(len(raw))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, 10, 13, 34, rng.randrange(256)))
    return bytes(raw)


def cut(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Leave out a part, or everything from somewhere on."""
    begin = rng.randint(0, len(data))
    end = rng.choice((len(data), min(len(data), begin + rng.choice((1, 2, 5, 50)))))
    return data[:begin] + data[end:]


def repeat(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Repeat a part, a few times or very often."""
    begin = rng.randint(0, len(data))
    end = min(len(data), begin + rng.choice((1, 3, 20, 200)))
    return data[:end] + data[begin:end] * rng.choice((1, 1, 2, 10, 300)) + data[end:]


def splice(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Put the beginning of one seed and the end of another together."""
    other = rng.choice(seeds)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def insert_hostile(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    place = rng.randint(0, len(data))
    return data[:place] + _encoded(rng.choice(HOSTILE)) + data[place:]


def recode(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Write the text in another encoding, or with other line ends."""
    text = data.decode("utf-8", errors="replace")
    way = rng.choice(
        ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "crlf", "cr", "no end")
    )
    if way in ("crlf", "cr"):
        return data.replace(b"\n", b"\r\n" if way == "crlf" else b"\r")
    return data.rstrip(b"\n") if way == "no end" else text.encode(way, errors="replace")


# ---- of text -----------------------------------------------------------------------------------------------
def replace_token(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Put something hostile in place of a number or a word."""
    tokens = [*rng.choice((_NUMBER, _NUMBER, _WORD)).finditer(data)]
    if not tokens:
        return insert_hostile(rng, data, ())
    token = rng.choice(tokens)
    return data[: token.start()] + _encoded(rng.choice(HOSTILE)) + data[token.end() :]


def swap_tokens(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Put one token of a text in place of another."""
    tokens = [*_NUMBER.finditer(data), *_WORD.finditer(data)]
    if not tokens:
        return data
    token, other = rng.choice(tokens), rng.choice(tokens)
    return data[: token.start()] + other[0] + data[token.end() :]


def shuffle_lines(rng: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Repeat, leave out, move or import a line."""
    lines = data.split(b"\n")
    k, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    way = rng.randrange(4)
    if way == 0:
        lines[to:to] = [lines[k]] * rng.choice((1, 2, 50))
    elif way == 1:
        del lines[k]
    elif way == 2:
        lines[k], lines[to] = lines[to], lines[k]
    else:
        lines.insert(to, rng.choice(rng.choice(seeds).split(b"\n")))
    return b"\n".join(lines)


def nest(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Insert brackets that nest deeply, closed or not."""
    opening, closing = rng.choice(
        ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"<a>", b"</a>"), (b"-", b""))
    )
    depth = rng.choice((5, 90, 101, 1000, 30_000))
    place = rng.randint(0, len(data))
    return data[:place] + opening * depth + b"1" + closing * depth * rng.randrange(2) + data[place:]


# ---- of JSON -----------------------------------------------------------------------------------------------
def _holders(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of everything in a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [pair for key in keys for pair in ((value, key), *_holders(value[key]))]


def _changed(rng: random.Random, holders: list[tuple[Any, Any]]) -> str:
    """Change one value in its container; return a text that has to stand in place of `_HERE`, if any."""
    container, key = rng.choice(holders)
    way = rng.randrange(8)
    if way == 0:
        del container[key]
    elif way == 1:
        other, place = rng.choice(holders)
        container[key] = copy.deepcopy(other[place])
    elif way == 2 and isinstance(container, dict):
        container[str(rng.choice(HOSTILE))] = container.pop(key)
    elif way == 3 and isinstance(container, list):
        container += container[key : key + 1] * rng.choice((1, 2, 40))
    elif way == 4:
        container[key] = [container[key]] if rng.random() < 0.5 else {"a": container[key]}
    elif way == 5:
        container[key] = str(container[key]) if not isinstance(container[key], str) else 7
    elif way == 6:
        container[key] = _HERE
        return rng.choice(_RAW)
    else:
        container[key] = copy.deepcopy(rng.choice(VALUES))
    return ""


def change_json(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Change some values of a document, or of one of its lines; nothing if another mutator broke it."""
    try:
        return _with_changes(rng, data)
    except RecursionError:
        return data


def _with_changes(rng: random.Random, data: bytes) -> bytes:
    lines = [data]
    try:
        values = [json.loads(data)]
    except ValueError:
        lines = data.split(b"\n")
        try:
            values = [json.loads(line) if line else None for line in lines]
        except ValueError:
            return data
    k = rng.randrange(len(values))
    raw = ""
    for _ in range(rng.choice((1, 1, 2, 3))):
        if (holders := _holders(values[k])) and not raw:
            raw = _changed(rng, holders)
    if values[k] is not None:
        text = json.dumps(values[k], ensure_ascii=rng.random() < 0.5)
        lines[k] = _encoded(text.replace(f'"{_HERE}"', raw) if raw else text)
    return b"\n".join(lines)


def repeat_key(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    pairs = [*re.finditer(rb'"[^"\\]*":\s*(?:-?[\d.]+|"[^"\\]*")', data)]
    if not pairs:
        return data
    pair = rng.choice(pairs)
    return data[: pair.end()] + b", " + rng.choice((pair, rng.choice(pairs)))[0] + data[pair.end() :]


# ---- of TOML -----------------------------------------------------------------------------------------------
def change_toml(rng: random.Random, data: bytes, _seeds: Sequence[bytes]) -> bytes:
    """Give a key another value, another name, or a table a second time."""
    lines = data.split(b"\n")
    settings = [k for k, line in enumerate(lines) if b"=" in line]
    if not settings:
        return data
    k = rng.choice(settings)
    name, _, value = lines[k].partition(b"=")
    ways = (
        name + b"= " + _encoded(json.dumps(rng.choice(VALUES))),
        name + b"= " + _encoded(rng.choice(HOSTILE)),
        _encoded(rng.choice(HOSTILE)) + b" =" + value,
        name.rstrip() + b".a =" + value,
        name + b"= [" + value + b"]",
        name + b"= { a =" + value + b" }",
        name + b"= 1979-05-27T07:32:00Z",
        b"[" + name.strip() + b"]",
        b"[[" + name.strip() + b"]]",
    )
    lines[k] = rng.choice(ways)
    return b"\n".join(lines)


_BYTES: tuple[Mutator, ...] = (flip_bits, set_bytes, cut, repeat, splice, insert_hostile)
_TEXT: tuple[Mutator, ...] = (
    *_BYTES,
    *(replace_token,) * 6,
    swap_tokens,
    shuffle_lines,
    shuffle_lines,
    nest,
    recode,
)
#: By the form of a target's inputs.
MUTATORS: dict[str, tuple[Mutator, ...]] = {
    "bytes": _BYTES,
    "text": _TEXT,
    "json": (*_TEXT, *(change_json,) * 12, repeat_key),
    "toml": (*_TEXT, *(change_toml,) * 8),
}


def mutate(rng: random.Random, seeds: Sequence[bytes], form: str) -> bytes:
    data = rng.choice(seeds)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        data = rng.choice(MUTATORS[form])(rng, data, seeds)[:LONGEST]
    return data
