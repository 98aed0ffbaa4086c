"""Does what a case says through the command line, and returns what is to stay as it is, as plain data."""

import contextlib
import csv
import hashlib
import io
import json
import math
import shlex
import socket
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import zmq
from golden_cases import POOL_AGENTS, ROOT, SESSIONS, THREE_RESOURCES, TRAININGS, TWO_RESOURCES, rules_of

from bridge.cli.main import main

#: The floats' relative tolerance: sums may be made in another order on another machine.
TOLERANCE = 1e-9
PATIENCE_MS = 60_000


def command(*words: str) -> str:
    """Run `bridge` with these words and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = main(list(words))
    assert status == 0, f"bridge {' '.join(words)}: exit status {status}"
    return printed.getvalue()


def write_workloads(folder: Path) -> None:
    """Write the workloads of several resources."""
    words = ("workload", "generate", "mrsch", "--base", "bundled-128", "--seed", "1")
    for setting in (TWO_RESOURCES, THREE_RESOURCES):
        command(*words, "--setting", setting, "--out", str(folder / f"{setting}.parquet"))


def judged_and_replayed(agent: str, workload: str, folder: Path) -> dict[str, Any]:
    """Return what an agent of the zoo is worth on four sequences, and how it schedules 300 jobs."""
    path = str(ROOT / "zoo" / agent)
    words = ("--sequences", "4", "--length", "128", "--seed", "11", "--json")
    said = json.loads(command("evaluate", workload, "--agent", path, *rules_of(agent), *words))
    kept = ("mean", "ci95", "difference", "verdict", "values", "oracle")
    out = folder / agent
    command(
        *("run", "--workload", workload, "--agent", path, "--cross-protocol", "--first", "300"),
        *("--on", "fast", "--out", str(out)),
    )
    return {
        "starts": said["starts"],
        "policies": [{key: policy[key] for key in kept} for policy in said["policies"]],
        "schedule": schedule(out),
        "metrics": json.loads((out / "metrics.json").read_text()),
    }


def schedule(run: Path) -> dict[str, Any]:
    """Return a run's start and end times: their digest, and the first."""
    with (run / "jobs.csv").open(newline="") as file:
        rows = [(row["job_id"], row["starting_time"], row["finish_time"]) for row in csv.DictReader(file)]
    text = "\n".join(map(",".join, rows))
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "first": [list(row) for row in rows[:8]]}


def judged_on_pool(agent: str) -> dict[str, Any]:
    """Return what an agent of the pool, and SAF with both kill rules, are worth on four sequences."""
    folder = str(POOL_AGENTS[agent])
    words = "--data synthetic --policy saf --kill none --kill rule --sequences 4 --seed 5 --json"
    said = json.loads(command("evaluate", folder, *shlex.split(words)))
    kept = ("slowdown", "completion_time", "kills", "lost_steps", "sequences")
    return {"policies": [{key: policy[key] for key in kept} for policy in said["policies"]]}


def trained(name: str, folder: Path) -> list[dict[str, Any]]:
    """Train an agent for two epochs, in a folder of all trainings, and return what is noted of each epoch."""
    words, config = TRAININGS[name]
    (folder / "tiny.toml").write_text(config)
    with contextlib.chdir(folder):
        command("train", *words, "--config", "tiny.toml", "--threads", "1", "--out", f"trained-{name}")
    rows = pq.read_table(folder / f"trained-{name}" / "progress.parquet").to_pylist()
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def session(name: str) -> list[dict[str, Any]]:
    """Return the messages of a session, in turn the platform's and the decision process's."""
    case, frames = SESSIONS[name], []
    fake = case.peer()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"

    def play() -> None:
        with zmq.Context() as context, context.socket(zmq.REQ) as wire:
            wire.setsockopt(zmq.LINGER, 0)
            wire.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
            wire.connect(address)

            def ask(frame: bytes) -> bytes:
                wire.send(frame)
                reply = wire.recv()
                frames.extend((frame, reply))
                return reply

            fake.run(ask)

    peer = threading.Thread(target=play)
    peer.start()
    policy = str(ROOT / case.policy) if "/" in case.policy else case.policy
    try:
        command("decide", policy, *case.words, "--socket", address, "--strict")
    finally:
        peer.join()
    assert not fake.deadlocked
    return [json.loads(frame) for frame in frames]


def differences(golden: Any, here: Any, tolerance: float = TOLERANCE, where: str = "") -> list[str]:
    """Return where two pieces of data differ: floats by more than the tolerance, the rest at all.

    A hundredth of it is the absolute tolerance: a mean of terms of size one that cancel is no more exact.
    Keys that only ``here`` has are no difference: a metric may be added.
    """
    if isinstance(golden, float) and isinstance(here, int | float) and not isinstance(here, bool):
        same = math.isclose(golden, here, rel_tol=tolerance, abs_tol=tolerance / 100) or (
            math.isnan(golden) and math.isnan(here)
        )
        return [] if same else [f"{where}: {here!r}, not {golden!r}"]
    if type(golden) is not type(here):
        return [f"{where}: {here!r}, not {golden!r}"]
    if isinstance(golden, dict):
        gone = [f"{where}.{key}: is missing" for key in golden if key not in here]
        both = [key for key in golden if key in here]
        return gone + [
            text for key in both for text in differences(golden[key], here[key], tolerance, f"{where}.{key}")
        ]
    if isinstance(golden, list):
        if len(golden) != len(here):
            return [f"{where}: {len(here)} items, not {len(golden)}"]
        pairs = enumerate(zip(golden, here, strict=True))
        return [text for k, (a, b) in pairs for text in differences(a, b, tolerance, f"{where}[{k}]")]
    return [] if golden == here else [f"{where}: {here!r}, not {golden!r}"]
