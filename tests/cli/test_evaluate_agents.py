"""`bridge evaluate` with agents: beside orders or in place of a log, on what they have not seen."""

import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from cli_commands import file_names, run_bridge, run_ok, run_refused
from trained_agents import UNSEEN

import bridge
from bridge.judge.sequences import compute_sequence_metric
from bridge.learn.agent import play_sequences
from bridge.learn.checkpoint import load
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read

SIZE = ("--sequences", 4, "--length", 64)


def judged(*words: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run_ok("evaluate", *words, *SIZE, "--json"))
    return found


def labels(found: dict[str, Any]) -> list[str]:
    return [policy["name"] for policy in found["policies"]]


@pytest.mark.parametrize("which", ["backfiller", "inspector"])
def test_a_checkpoint_names_log_rules_and_base(which: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(which)
    found = judged(folder)
    assert (found["workload"], found["length"], found["sequences"]) == ("bundled-128", 64, 4)
    assert min(found["starts"]) >= UNSEEN
    base, agent = found["policies"]
    order, backfill = ("fcfs", "easy") if which == "backfiller" else ("sjf", "none")
    assert (base["name"], base["agent"]) == ("fcfs+easy" if which == "backfiller" else "sjf", "")
    assert (agent["name"], agent["agent"]) == (which, str(folder))
    for policy in (base, agent):
        assert (policy["order"], policy["backfill"], policy["protocol"]) == (order, backfill, "standard")
    # the agent's values are those of its own schedules; the base's those of the order alone
    checkpoint = load(folder)
    setup = checkpoint.recipe.setup
    prepared = setup.build_scenario(setup.select(read(resolve("bundled-128"))), checkpoint.recipe.policy())
    played = play_sequences(checkpoint, prepared, np.array(found["starts"]), 64)
    values = [
        compute_sequence_metric(prepared, s, f, "bsld") for s, f in zip(played, found["starts"], strict=True)
    ]
    assert agent["values"] == values != base["values"]
    plain = judged("bundled-128", "--order", order, "--backfill", backfill, "--from", UNSEEN / 3000)
    assert plain["starts"] == found["starts"]
    assert plain["policies"][0]["values"] == base["values"]
    mean = agent["mean"] - base["mean"]
    assert agent["difference"]["mean"] == pytest.approx(mean)


def test_it_ends_with_a_sentence(backfiller: Path) -> None:
    size = ("--sequences", "40", "--length", "16", "--seed", "11")
    out = run_ok("evaluate", backfiller, *size)
    assert "bundled-128: bsld, 40 sequences of 16 jobs, protocol standard" in out
    number = r"[\d,]+\.\d+"
    said = r"(better than|worse than|not distinguishable from)"
    (line,) = [line for line in out.splitlines() if line.startswith("backfiller: ")]
    assert re.fullmatch(
        rf"backfiller: {said} fcfs\+easy: [+-]{number} bsld "
        rf"\(paired 95 % CI -?{number} … -?{number}( t)?, 40 sequences, b = \d+\)",
        line,
    )
    assert out.splitlines()[-1] == line
    agent = json.loads(run_ok("evaluate", backfiller, *size, "--json"))["policies"][1]
    assert f"{agent['difference']['mean']:+,.2f} bsld" in line


def test_waits_have_a_unit(backfiller: Path) -> None:
    out = run_ok("evaluate", backfiller, *SIZE, "--metric", "wait.max")
    assert re.search(r"mean, s ┃ +95 % CI, s ┃ +− base, s ┃ +95 % CI, s ┃ verdict", out)
    assert re.search(r"^backfiller: .* fcfs\+easy: [+-][\d,.]+ s wait.max \(", out, re.MULTILINE)
    assert re.search(r"mean ┃ +95 % CI ┃ +− base ┃ +95 % CI ┃ verdict", run_ok("evaluate", backfiller, *SIZE))


def test_utilisation_has_four_digits_in_the_sentence(backfiller: Path) -> None:
    out = run_ok("evaluate", backfiller, *SIZE, "--metric", "utilisation")
    assert re.search(r"^backfiller: .* fcfs\+easy: [+-]\d\.\d{4} utilisation \(", out, re.MULTILINE)


def test_agents_stand_beside_orders(backfiller: Path, inspector: Path) -> None:
    both = ("--agent", backfiller, "--agent", inspector)
    found = judged("bundled-128", *both, "--order", "fcfs", "--order", "sjf")
    assert labels(found) == ["fcfs+easy", "sjf+easy", "backfiller", "inspector"]
    assert min(found["starts"]) >= UNSEEN
    assert [p["difference"] is None for p in found["policies"]] == [True, False, False, False]
    out = run_ok("evaluate", "bundled-128", *both, *SIZE, "--order", "fcfs", "--order", "sjf")
    last = [line for line in out.splitlines() if re.match("(backfiller|inspector): ", line)]
    assert [line.partition(":")[0] for line in last] == ["backfiller", "inspector"]
    assert all(" fcfs+easy: " in line for line in last)


def test_who_is_judged_and_who_is_the_base(backfiller: Path, inspector: Path) -> None:
    assert labels(judged(backfiller, "--order", "sjf")) == ["fcfs+easy", "backfiller", "sjf+easy"]
    assert labels(judged(backfiller, "--order", "fcfs")) == ["fcfs+easy", "backfiller"]
    assert labels(judged(backfiller, "--agent", backfiller)) == ["fcfs+easy", "backfiller"]
    assert labels(judged("bundled-128", "--agent", backfiller)) == ["fcfs+easy", "backfiller"]
    assert labels(judged("bundled-128", "--agent", inspector)) == ["sjf", "inspector"]


def test_what_an_agent_has_seen_is_left_out_by_default(backfiller: Path) -> None:
    assert min(judged("bundled-128", "--agent", backfiller, "--from", 0)["starts"]) < UNSEEN
    assert min(judged(backfiller, "--from", 0.9)["starts"]) >= 2700
    assert min(judged(backfiller, "--first", 2000)["starts"]) >= UNSEEN  # what it saw is not 60 % of these
    assert "jobs are too few for sequences of 64" in run_refused(
        "evaluate", backfiller, *SIZE, "--first", 1850
    )


def test_judging_on_what_an_agent_has_seen_warns(backfiller: Path) -> None:
    words = ("evaluate", "bundled-128", "--policy", "fcfs+easy", "--agent", backfiller, *SIZE, "--json")
    assert json.loads(run_bridge(*words).out)["warnings"] == []
    told = run_bridge(*words, "--from", 0)
    found = json.loads(told.out)
    n = sum(start < UNSEEN for start in found["starts"])
    (warning,) = found["warnings"]
    assert warning == (
        f"backfiller has learnt on {n} of these 4 sequences: "
        "what it reaches there says little about jobs that it has not seen"
    )
    assert f"bridge: warning: {warning}\n" in told.err
    with pytest.warns(UserWarning, match=f"backfiller has learnt on {n} of these 4 sequences"):
        bridge.evaluate("bundled-128", ["fcfs+easy", str(backfiller)], sequences=4, length=64, part=0.0)


def test_replays_of_what_an_agent_has_seen_warn(backfiller: Path, folder: Path) -> None:
    words = ("replay", "bundled-128", "--first", 200)
    told = run_bridge(*words, "--policy", backfiller, "--out", "own", "--json")
    said = "backfiller has learnt on 200 of these 200 jobs: what it reaches there says little"
    assert f"bridge: warning: {said}" in told.err
    assert "warning" not in run_bridge(*words, "--policy", "fcfs+easy", "--out", "rule", "--json").err
    compared = run_bridge("compare", "rule", "own")
    assert "warning: own has learnt on 200 of these 200 jobs" in compared.err
    lines = gzip.decompress(resolve("bundled-128").read_bytes()).splitlines(keepends=True)
    (folder / "other.swf").write_bytes(b"".join(lines[:-1]))
    assert "warning" not in run_bridge("replay", "other.swf", "--first", 200, "--policy", backfiller).err
    with pytest.warns(UserWarning, match="has learnt on 200 of these 200 jobs"):
        bridge.replay("bundled-128", str(backfiller), first=200)


def test_a_log_is_known_by_its_content(backfiller: Path, folder: Path) -> None:
    bundled = resolve("bundled-128")
    copy, other = folder / f"copy-{bundled.name}", folder / f"other-{bundled.name}"
    shutil.copy(bundled, copy)
    assert min(judged(copy, "--agent", backfiller)["starts"]) >= UNSEEN
    lines = gzip.decompress(bundled.read_bytes()).splitlines(keepends=True)
    other.write_bytes(gzip.compress(b"".join(lines[:-1])))
    found = judged(other, "--agent", backfiller)
    assert found["starts"] == judged(other)["starts"]
    assert min(found["starts"]) < UNSEEN
    run_ok("workload", "convert", bundled, "table.parquet")
    table = pq.read_table("table.parquet")
    pq.write_table(table, "again.parquet", compression="gzip")  # other bytes, the same jobs
    for name in ("table.parquet", "again.parquet"):
        assert min(judged(name, "--agent", backfiller)["starts"]) >= UNSEEN


def test_a_checkpoint_that_knows_the_digest_of_the_logs_file_still_does(
    backfiller: Path, folder: Path
) -> None:
    older = folder / "older"
    shutil.copytree(backfiller, older)
    content = json.loads((older / "agent.json").read_text())
    content["sha256"] = hashlib.sha256(resolve("bundled-128").read_bytes()).hexdigest()
    (older / "agent.json").write_text(json.dumps(content))
    assert judged(older)["starts"] == judged(backfiller)["starts"]
    assert run_ok("train", "--resume", "--out", older)
    content["sha256"] = "0" * 64
    (older / "agent.json").write_text(json.dumps(content))
    assert "the log bundled-128 has changed since" in run_refused("evaluate", older, *SIZE)


def test_mrschs_agents_as_the_zoo_describes(traces: Path) -> None:
    zoo = Path(__file__).parent.parent.parent / "zoo"
    assert "no such file" in run_refused("evaluate", zoo / "mrsch-s4")
    (command,) = re.findall(r"bridge\s+(workload\s+generate[^`]*)`", (zoo / "README.md").read_text())
    assert (traces / "theta_2022.swf.gz").exists()
    run_ok(*command.split())
    for name in ("mrsch-s4", "mrsch-s4-ours"):
        found = judged(zoo / name)
        assert [policy["name"] for policy in found["policies"]] == ["fcfs+easy", name]
        assert found["workload"] == "S4"


def test_another_protocol_is_refused_unless_it_is_wanted(backfiller: Path, schedgym_agent: Path) -> None:
    said = run_refused("evaluate", "bundled-128", "--agent", schedgym_agent, *SIZE)
    assert said.startswith(f"{schedgym_agent}: has learnt under the protocol schedgym, not standard")
    assert "--cross-protocol" in said
    assert "not cqsim" in run_refused("evaluate", backfiller, "--protocol", "cqsim", *SIZE)
    found = judged(backfiller, "--protocol", "cqsim", "--cross-protocol")
    assert [p["protocol"] for p in found["policies"]] == ["cqsim", "cqsim"]
    found = judged(schedgym_agent)  # its own rules need no words
    assert [p["protocol"] for p in found["policies"]] == ["schedgym", "schedgym"]
    assert min(found["starts"]) >= UNSEEN


def test_a_folder_that_is_no_checkpoint_is_refused() -> None:
    Path("empty").mkdir()
    assert run_refused("evaluate", "empty", *SIZE).startswith("empty: is a folder, not a log")
    assert run_refused("evaluate", "bundled-128", "--agent", "empty", *SIZE).startswith(
        "empty: is no checkpoint"
    )
    assert run_refused("evaluate", "bundled-128", "--agent", "gone", *SIZE).startswith(
        "gone: is no checkpoint"
    )


def test_nothing_is_written(backfiller: Path, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in backfiller.iterdir()}
    run_ok("evaluate", backfiller, *SIZE)
    assert {path.name: path.read_bytes() for path in backfiller.iterdir()} == before
    assert file_names(folder) == set()


def test_a_part_without_room_for_a_sequence_is_refused(backfiller: Path) -> None:
    said = run_refused("evaluate", backfiller, "--sequences", 4, "--length", 1300)
    assert "1,200 jobs are too few for sequences of 1300" in said


def test_what_a_command_says_of_a_bad_checkpoint(bad: tuple[Path, str, str]) -> None:
    where, file, what = bad
    for words in (
        ("evaluate", where),
        ("evaluate", "bundled-128", "--agent", where),
        ("run", "--workload", "bundled-128", "--agent", where),
        ("validate", where, "--platform", "sp2-128"),
        ("decide", where),
        ("explain", where),
    ):
        said = run_refused(*words)
        assert said.startswith(f"{where / file}: {what}"), words
        assert file_names(Path()) == {"bad"}


def another_network(text: bytes) -> bytes:
    document = json.loads(text)
    document["recipe"]["actor"]["hidden"] = [3]
    return json.dumps(document).encode()


@pytest.fixture(
    params=[
        ("weights.safetensors", lambda raw: raw[:-100], "weights.safetensors", "is damaged"),
        ("weights.safetensors", None, "weights.safetensors", "is missing"),
        (
            "agent.json",
            lambda raw: raw.replace(b'"format": 1', b'"format": 2'),
            "agent.json",
            "is not a checkpoint of this version",
        ),
        ("agent.json", lambda raw: raw[: len(raw) // 2], "agent.json", "is not JSON"),
        ("agent.json", another_network, "weights.safetensors", "the weights are not of the network"),
    ],
    ids=lambda of: of[-1],
)
def bad(request: pytest.FixtureRequest, backfiller: Path, folder: Path) -> tuple[Path, str, str]:
    """Return a copy of a checkpoint with something wrong, the file to blame, and what is said."""
    changed, change, file, what = request.param
    where = folder / "bad"
    where.mkdir()
    for name in ("agent.json", "weights.safetensors"):
        raw = (backfiller / name).read_bytes()
        if name != changed or change is not None:
            (where / name).write_bytes(change(raw) if name == changed else raw)
    return where, file, what


def test_a_typing_mistake_among_options_is_a_usage_error(backfiller: Path) -> None:
    assert run_bridge("evaluate", backfiller, "--from", 1).status == 2
    assert run_bridge("evaluate", backfiller, "--agents", backfiller).status == 2
