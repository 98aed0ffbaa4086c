"""The lint's verdict on a file is SimGrid's own: recorded cases, and random mutants of good platforms."""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from platform_helpers import CORPUS, SHIPPED
from platform_mutants import POOLS, mutants
from simgrid_available import needs_simgrid

from bridge.platform.check import check_platform
from bridge.platform.findings import findings_of_simgrid, verdict

HEAD = (
    "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
    '<platform version="4.1">\n'
)
RECORDED = tomllib.loads(Path(__file__).with_name("verdicts.toml").read_text("utf-8"))
CASES = [
    (name, said, text.replace("HEAD", HEAD, 1).encode())
    for said, cases in RECORDED.items()
    for name, text in cases.items()
]


def disagreements(names: Sequence[str], texts: Sequence[bytes], folder: Path) -> list[str]:
    """Where SimGrid and the lint differ."""
    paths = [folder / f"{number}.xml" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    found = []
    refusals = findings_of_simgrid(paths, timeout=60)
    for name, path, text, refusal in zip(names, paths, texts, refusals, strict=True):
        lint = check_platform(path, data=text)
        if (verdict(lint) == "refuses") != (refusal is not None):
            said = refusal.message if refusal else [f"{f.code}: {f.message}" for f in lint]
            found.append(f"{name}: lint {verdict(lint)}, {said}")
    return found


@pytest.mark.parametrize(("name", "said", "data"), CASES, ids=[name for name, *_ in CASES])
def test_recorded_verdicts(name: str, said: str, data: bytes) -> None:
    findings = check_platform("case.xml", data=data)
    assert verdict(findings) == said, (name, findings)


@needs_simgrid
def test_the_records_are_what_simgrid_says(tmp_path: Path) -> None:
    assert disagreements([name for name, *_ in CASES], [data for *_, data in CASES], tmp_path) == []


@needs_simgrid
def test_a_few_mutants(tmp_path: Path) -> None:
    bases = [path for path in SHIPPED.glob("*.xml") if path.stat().st_size < 50_000]
    names, texts = zip(*mutants(7, 60, [*bases, *CORPUS.glob("good_*.xml")]), strict=True)
    assert disagreements(names, texts, tmp_path) == []


@needs_simgrid
@pytest.mark.slow
@pytest.mark.parametrize("seed", [101, 102, 103])
def test_a_thousand_mutants_of_the_shipped_platforms(seed: int, tmp_path: Path) -> None:
    names, texts = zip(*mutants(seed, 1000, sorted(SHIPPED.glob("*.xml"))), strict=True)
    assert disagreements(names, texts, tmp_path) == []


@needs_simgrid
@pytest.mark.slow
def test_a_thousand_mutants_of_the_corpus(tmp_path: Path) -> None:
    names, texts = zip(*mutants(104, 1000, sorted(CORPUS.glob("[gnw]*.xml"))), strict=True)
    assert disagreements(names, texts, tmp_path) == []


def pieces() -> st.SearchStrategy[str]:
    """Text made of what platform files are made of."""
    words = [word for pool in POOLS.values() for word in pool if isinstance(word, str)]
    return st.lists(st.sampled_from([*words, "<", ">", "/>", '="', '" ', "<zone ", HEAD]), max_size=30).map(
        "".join
    )


@given(pieces() | st.text(), st.booleans())
@example('<host id="n" speed="1f,1f"><prop id="wattage_per_state" value="1"/></host>' * 2, True)
@settings(max_examples=300, deadline=None)
def test_no_text_makes_the_lint_crash(text: str, inside: bool) -> None:
    if inside:
        text = f'{HEAD}<zone id="root" routing="Full">{text}</zone></platform>'
    for finding in check_platform("garbage.xml", data=text.encode("utf-8", "surrogatepass")):
        assert 1 <= finding.line <= text.count("\n") + 1
        finding.message.encode()  # can be printed


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_no_bytes_make_the_lint_crash(data: bytes) -> None:
    check_platform("garbage.xml", data=HEAD.encode() + data)


def test_a_wrong_host_beside_others_on_one_line() -> None:
    """Mistakes are told apart by element, not by line."""
    good = (CORPUS / "good_power.xml").read_text()
    bad = good.replace("60:70:120", "60:x:120").replace('"2:3:4"', '"2:3:x"')
    many = [f.code for f in check_platform("lines.xml", data=bad.encode())]
    one = [f.code for f in check_platform("line.xml", data=bad.replace("\n", " ").encode())]
    assert {"wattage-format", "sleep-pstates"} <= set(many)
    assert sorted(many) == sorted(one)


def test_a_long_value_is_shown_shortened() -> None:
    host = f'<host id="a" speed="1Gf"><prop id="role" value="{"c" * 5000}"/></host>'
    text = f'{HEAD}<zone id="root" routing="Full">{host}</zone></platform>'
    found = check_platform("long.xml", data=text.encode())
    assert "ccc…" in "".join(finding.message for finding in found)
    assert max(len(finding.message + finding.remedy) for finding in found) < 800


def test_every_mistake_of_one_line_is_found() -> None:
    """Two hosts on one line, each with mistakes of its own kind."""
    hosts = "".join(
        f'<host id="{name}" speed="1Gf"><prop id="{key}" value="{value}"/></host>'
        for name, key, value in [
            ("master_host", "wattage_per_state", "0:0:0"),
            ("a", "role", "cook"),
            ("b", "role", "smith"),
            ("c", "wattage_per_state", "1"),
            ("d", "wattage_per_state", "2"),
            ("e", "sleep_pstates", "x"),
        ]
    )
    text = f'{HEAD}<zone id="root" routing="None">{hosts}</zone></platform>'
    found = [
        f.message.split("'")[1] for f in check_platform("x.xml", data=text.encode()) if "host '" in f.message
    ]
    assert set("abcde") <= set(found)


def test_deep_nesting_is_refused_in_words() -> None:
    deep = "".join(f'<zone id="z{number}" routing="Full">' for number in range(20_000)) + "</zone>" * 20_000
    codes = [f.code for f in check_platform("deep.xml", data=(HEAD + deep + "</platform>").encode())]
    assert "xml-depth" in codes
    assert sys.getrecursionlimit() < 20_000
