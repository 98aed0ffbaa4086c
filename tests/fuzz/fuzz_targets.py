"""What is fuzzed: every reader of files, names and frames; the seeds of its inputs: `seeds/NAME`."""

import io
import json
import random
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from fuzz_judge import Lost, Reader, complaint, reduced
from mutators import mutate

from bridge.base import plugins
from bridge.base.errors import BridgeError
from bridge.base.files import read_json
from bridge.config import read_toml
from bridge.experiment import job_profiles
from bridge.experiment import spec as experiment
from bridge.forecasting.statefile import document_of, read_state, write_state
from bridge.judge.jobs import read_jobs
from bridge.judge.run import read_run
from bridge.learn.checkpoint import read_agent, read_tensors
from bridge.learn.recipe import Recipe
from bridge.platform.author import platform_xml
from bridge.platform.check import check_platform
from bridge.platform.read import read_platform
from bridge.platform.spec import read_spec
from bridge.policy_name import parse_policy
from bridge.pool.jobset import read_vasp, write_vasp
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.estimators import estimate
from bridge.scheduler.order import compile_feature
from bridge.scheduler.protocol import Policy, Protocol, protocol
from bridge.study.archive import unpack
from bridge.study.reading import read_studies
from bridge.study.store import Store
from bridge.wire import dialects, hosts, zmtp
from bridge.workload import formats, rules
from bridge.workload.accounting.machine import read_machine
from bridge.workload.accounting.source import import_accounting
from bridge.workload.table import Workload
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from bridge.worlds.simgrid import workload as simgrid
from bridge.worlds.slurm import audit

SEEDS = Path(__file__).parent / "seeds"


@dataclass(frozen=True)
class Target:
    """A reader; `form` of its inputs: a key of `mutators.MUTATORS`; `like`: a target that has its seeds."""

    form: str
    read: Reader
    like: str = ""


def _at(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# ---- workloads ---------------------------------------------------------------------------------------------
#: Formats that keep every column of a workload, and its header.
KEEPING = ("csv", "parquet")


def _kept(log: Workload, again: Workload, form: str) -> None:
    if log.digest() != again.digest():
        raise Lost(f"a value, by way of {form}")
    if log.capacity != again.capacity:
        raise Lost(f"the capacity, by way of {form}")
    if list(log.jobs.columns) != list(again.jobs.columns):
        raise Lost(f"the order of the columns, by way of {form}")


def _rewritten(log: Workload, data: bytes, folder: Path) -> None:
    """Write a workload in one format; what is written can be read, and is the same if it keeps all."""
    form = (*formats.FORMATS, *KEEPING)[crc32(data) % (len(formats.FORMATS) + len(KEEPING))]
    path = folder / f"again-{form}{formats.FORMATS[form].suffix}"
    path.unlink(missing_ok=True)
    try:
        formats.write(log, path, form)
    except BridgeError:
        if path.exists():
            raise Lost(f"half a file was left by {form}") from None
        return
    try:
        again = formats.read(path, form)
    except BridgeError as error:
        raise Lost(f"what {form} writes is refused: {error.what[:60]}") from None
    if form in KEEPING:
        _kept(log, again, form)


def _workload(name: str, **options: Any) -> Reader:
    def read(data: bytes, folder: Path) -> object:
        log = formats.read(_at(folder, name, data), **options)
        try:
            SchedulerConfig(nodes=16).select(log)
        finally:
            _rewritten(log, data, folder)
        return log

    return read


def _packed(data: bytes, folder: Path) -> object:
    return formats.read(_at(folder, "log.swf.gz", data))


def _parquet_notes(data: bytes, folder: Path) -> object:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"job_id": [1, 2], "submit": [0, 10], "run": [50, 60], "procs": [4, 8]})
    pq.write_table(table.replace_schema_metadata({b"bridge.workload": data}), folder / "log.parquet")
    return formats.read(folder / "log.parquet")


def _parquet_columns(data: bytes, folder: Path) -> object:
    """Read a Parquet file whose columns are those of a JSON document."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pa.table(json.loads(data))
        pq.write_table(table, folder / "log.parquet")
    except (
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
        OverflowError,
        RecursionError,
        pa.ArrowException,
    ):
        return None  # no file comes of it
    return _workload("log.parquet")((folder / "log.parquet").read_bytes(), folder)


# ---- accounting --------------------------------------------------------------------------------------------
def _accounting(form: str) -> Reader:
    def read(data: bytes, folder: Path) -> object:
        zone = UTC if len(data) % 2 else ZoneInfo("Europe/Berlin")
        log = import_accounting(str(_at(folder, "accounting.txt", data)), form, zone)
        _rewritten(log, data, folder)
        return log

    return read


def _machine(data: bytes, folder: Path) -> object:
    machine = read_machine(_at(folder, "slurm.conf", data))
    return machine.capacity(), [machine.capacity(name) for name in machine.partitions]


# ---- platforms, experiments, studies -----------------------------------------------------------------------
def _platform(data: bytes, folder: Path) -> object:
    path = _at(folder, "platform.xml", data)
    findings = check_platform(path)
    for finding in findings:
        if len(finding.message) > 2000:
            raise Lost("a finding of more than 2000 characters")
    return findings, read_platform(path)


def _platform_toml(data: bytes, folder: Path) -> object:
    return platform_xml(read_spec(_at(folder, "platform.toml", data)))


def _experiment(data: bytes, folder: Path) -> object:
    path = _at(folder, "experiment.toml", data)
    made = experiment.parse(experiment.read_document(path), str(path))
    made.check()
    if experiment.parse(made.as_dict(), str(path)) != made:
        raise Lost("an experiment as TOML has it")
    return made.command(), made.seeded()


def _study(data: bytes, folder: Path) -> object:
    return read_studies(_at(folder, "study.toml", data))


def _record(data: bytes, folder: Path) -> object:
    """Unpack a record whose lines are a JSON document; nothing outside the store changes."""
    try:
        lines = json.loads(data)
        pd.DataFrame(lines).to_parquet(folder / "record.parquet")
    except Exception:
        return None  # no file comes of it
    beside = folder / "beside.json"
    beside.write_text("{}")
    try:
        return unpack(folder / "record.parquet", Store(folder / "store"))
    finally:
        left = {path.name for path in (folder / "store" / "cells").iterdir()}
        for path in (folder / "store" / "cells").iterdir():
            path.unlink()
        if beside.read_text() != "{}" or any(len(name) != len("0123456789abcdef.json") for name in left):
            raise Lost("a file outside the store, or a cell whose key is none")


def _cell(data: bytes, folder: Path) -> object:
    store = Store(folder / "store")
    _at(store.folder / "cells", "0123456789abcdef.json", data)
    try:
        return store.cell("0123456789abcdef")
    finally:
        (store.folder / "cells" / "0123456789abcdef.json").unlink(missing_ok=True)


# ---- runs, states, agents ----------------------------------------------------------------------------------
@cache
def _jobs_parquet() -> bytes:
    out = io.BytesIO()
    read_jobs(SEEDS / "jobs" / "csv").to_parquet(out)
    return out.getvalue()


def _run(name: str) -> Reader:
    def read(data: bytes, folder: Path) -> object:
        texts = {
            "run.toml": b"format = 1\noracle = false\n[capacity]\nnodes = 4\n[config]\n",
            "metrics.json": b"{}",
        }
        for own, content in {**texts, "jobs.parquet": _jobs_parquet(), name: data}.items():
            _at(folder, own, content)
        return read_run(folder)

    return read


def _jobs(data: bytes, folder: Path) -> object:
    return read_jobs(_at(folder, "jobs.csv", data))


def _state(data: bytes, folder: Path) -> object:
    state = read_state(_at(folder, "state.json", data))
    write_state(state, folder / "again.json")
    if document_of(read_state(folder / "again.json")) != document_of(state):
        raise Lost("a state that was written")
    return state


def _agent(data: bytes, folder: Path) -> object:
    recipe, origin = read_agent(Path(_at(folder, "agent.json", data)).parent)
    if isinstance(recipe, Recipe):
        recipe.encoder.compile(origin.constants)
    return recipe


def _weights(data: bytes, folder: Path) -> object:
    return read_tensors(_at(folder, "weights.safetensors", data))


@dataclass(frozen=True)
class _Deciding:
    policy: Policy
    protocol: Protocol
    decider: Any = None
    window: int = 128


def _audit(data: bytes, folder: Path) -> object:
    path = _at(folder, "audit.jsonl", data)
    return audit.policy_of(path), audit.replay(path, _Deciding(Policy("sjf", "easy"), protocol("standard")))


def _pool_jobs(data: bytes, folder: Path) -> object:
    jobs = read_vasp(_at(folder, "jobs.csv", data))
    write_vasp(folder / "again.csv", jobs)
    again = read_vasp(folder / "again.csv")
    for name in ("id", "length", "believed", "units", "beliefs"):
        if not np.array_equal(getattr(jobs, name), getattr(again, name)):
            raise Lost(f"the pool's {name}")
    return jobs


# ---- names and expressions ---------------------------------------------------------------------------------
#: Looking for installed packages is slow, and they stay as they are.
_installed = cache(plugins.installed)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


def _named(read: Reader) -> Reader:
    """Return what reads a name for which installed packages are looked through."""

    def read_named(data: bytes, folder: Path) -> object:
        with mock.patch.object(plugins, "installed", _installed):
            return read(data, folder)

    return read_named


def _policy(data: bytes, _folder: Path) -> object:
    name = parse_policy(_text(data))
    if name.agent or name.plugin or name.kill:
        return name
    return compile_policy(Policy(name.order, name.backfill or "easy"), protocol("standard"))


def _feature(data: bytes, _folder: Path) -> object:
    return compile_feature(_text(data), {"longest": 3.0}, 2)


def _estimator(data: bytes, _folder: Path) -> object:
    lengths = np.array([10, 20, 30], np.int64) * 1_000_000
    return estimate(_text(data), lengths, lengths, columns={"guess": np.array([1.0, 2.0, 3.0])})


def _word(data: bytes, _folder: Path) -> object:
    text, values = _text(data), []
    for parse in (job_profiles.parse_kind, rules.walltime, formats.format_of, hosts.parse):
        try:
            values.append(parse(text))
        except BridgeError as error:
            values.append(error)
        except ValueError as error:
            if parse is not hosts.parse:
                raise
            values.append(error)
    for value in values:
        if isinstance(value, BridgeError) and len(str(value)) > 2000:
            raise value
    return values


# ---- the wire ----------------------------------------------------------------------------------------------
def _message(name: str, *, reply: bool) -> Reader:
    def read(data: bytes, _folder: Path) -> object:
        dialect = dialects.codec(name, registers=True)
        if reply:
            said: Any = dialect.decode_reply(data, 1)
            again: Any = dialect.decode_reply(dialect.encode(said), 1)
        else:
            said = dialect.decode(data, 1)
            again = dialect.decode(dialect.encode_message(said), 1)
        if said != again:
            raise Lost("what a message says")
        return said

    return read


def _frames(data: bytes, _folder: Path) -> object:
    """Give a stranger's bytes to a connection, in pieces."""
    ours, theirs = socket.socketpair()
    connection = zmtp.Connection(ours)
    messages = []
    try:
        theirs.setblocking(False)
        for k in range(0, min(len(data), 60_000), 97):
            theirs.send(data[k : k + 97])
            messages += connection.messages()
            if not connection.open:
                break
            theirs.recv(1 << 16) if k % 5 == 0 else None
    except OSError:
        pass
    finally:
        connection.close()
        theirs.close()
    return messages


def _simgrid(data: bytes, folder: Path) -> object:
    return simgrid.load("w0", str(_at(folder, "workload.json", data)))


def _events(data: bytes, folder: Path) -> object:
    return simgrid.load_events(str(_at(folder, "events.txt", data)), forward_unknown=len(data) % 2 == 0)


def _json(data: bytes, folder: Path) -> object:
    return read_json(_at(folder, "any.json", data), unique=len(data) % 2 == 0)


def _toml(data: bytes, folder: Path) -> object:
    return read_toml(_at(folder, "any.toml", data))


TARGETS: Mapping[str, Target] = {
    "swf": Target("text", _workload("log.swf")),
    "swf-dropping": Target("text", _workload("log.swf", malformed="drop"), "swf"),
    "swf-packed": Target("bytes", _packed),
    "csv": Target("text", _workload("log.csv")),
    "parquet": Target("bytes", _workload("log.parquet")),
    "parquet-columns": Target("json", _parquet_columns),
    "parquet-notes": Target("json", _parquet_notes),
    "batsim": Target("json", _workload("log.json")),
    "batsim5": Target("json", _workload("log.json")),
    "pool-jobs": Target("text", _pool_jobs),
    "sacct": Target("text", _accounting("sacct")),
    "sacct-json": Target("json", _accounting("sacct")),
    "jobcomp": Target("text", _accounting("jobcomp")),
    "machine": Target("text", _machine),
    "platform-xml": Target("text", _platform),
    "platform-toml": Target("toml", _platform_toml),
    "experiment": Target("toml", _experiment),
    "study": Target("toml", _study),
    "study-record": Target("json", _record),
    "study-cell": Target("json", _cell),
    "audit": Target("json", _audit),
    "state": Target("json", _state),
    "agent": Target("json", _agent),
    "weights": Target("bytes", _weights),
    "run": Target("toml", _run("run.toml")),
    "run-metrics": Target("json", _run("metrics.json")),
    "jobs": Target("text", _jobs),
    "policy": Target("text", _named(_policy)),
    "feature": Target("text", _named(_feature)),
    "estimator": Target("text", _named(_estimator)),
    "word": Target("text", _word),
    "messages4": Target("json", _message("batsim4", reply=False)),
    "replies4": Target("json", _message("batsim4", reply=True)),
    "messages5": Target("json", _message("batsim5", reply=False)),
    "replies5": Target("json", _message("batsim5", reply=True)),
    "zmtp": Target("bytes", _frames),
    "simgrid": Target("json", _simgrid, "batsim"),
    "events": Target("json", _events),
    "json": Target("json", _json, "batsim"),
    "toml": Target("toml", _toml, "experiment"),
}


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    folder = SEEDS / (TARGETS[name].like or name)
    return tuple(path.read_bytes() for path in sorted(folder.iterdir()))


def warm_up(name: str, folder: Path) -> int:
    """Read a target's seeds: modules are imported and kernels compiled; returns how many gave a value."""
    values = 0
    for seed in seeds(name):
        with suppress(BridgeError, Lost):
            TARGETS[name].read(seed, folder)
            values += 1
    return values


def generated(name: str, number: int) -> bytes:
    return mutate(random.Random(f"{name} {number}"), seeds(name), TARGETS[name].form)


def outcomes(name: str, first: int, last: int, folder: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of each input of a target, and what is wrong; a kind of fault once, reduced."""
    target, kinds = TARGETS[name], set()
    for number in range(first, last):
        data = generated(name, number)
        if (fault := complaint(target.read, data, folder)) in kinds:
            fault = ""
        if fault:
            kinds.add(fault)
            data = reduced(target.read, data, folder)
            (folder / "reduced").write_bytes(data)
            fault = f"{fault}: {data[:200]!r}"
        yield number, fault
