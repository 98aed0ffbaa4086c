"""The functions of `import bridge`. They return data frames and plain objects."""

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.base.cache import shipped_agents
from bridge.base.errors import BridgeError
from bridge.base.plugins import Typed
from bridge.base.progress import SILENT, ProgressReporter
from bridge.base.suggestions import did_you_mean
from bridge.commands.request import CommandBackend, CommandRequest, scheduler, scheduler_for
from bridge.config import from_tables
from bridge.config.fields import fields_of
from bridge.experiment.spec import DETAILED, Detailed, Experiment, Sampling, parse, policy_fields
from bridge.learn.checkpoint_files import SEED, WORKLOADS
from bridge.policy_name import PolicyName, parse_policy, refuse_twice, typed_policy
from bridge.pool.settings import EvaluationOptions, PoolConfig
from bridge.worlds.fast.scheduler_config import SchedulerConfig

if TYPE_CHECKING:
    import gymnasium
    import pandas as pd

    from bridge.cluster.description import Cluster
    from bridge.commands.predict import PredictResult
    from bridge.forecasting.state import MachineState
    from bridge.judge.run import Run
    from bridge.learn.checkpoint import Agent
    from bridge.workload.table import Workload
    from bridge.worlds.batsim.result import ProcessResult
#: Fields of a setup and of a platform that a decision process heeds.
_DECIDE = frozenset(
    {"backfill", "candidate_order", "cluster", "estimator", "first", "energy", "placement", "platform"}
)
__all__ = [
    "decide",
    "evaluate",
    "fidelity",
    "forecast",
    "load_agent",
    "make_env",
    "predict",
    "read_cluster",
    "read_workload",
    "replay",
    "train",
    "validate",
]


def read_workload(log: str | PathLike[str], malformed: str = "refuse") -> "Workload":
    """Read a log as a table of jobs, all records included.

    Args:
        log: a file (SWF, CSV, Parquet, Batsim's JSON), a bundled or a fetched workload.
        malformed: lines that are no record: ``refuse`` the log, or ``drop`` the lines and count them.

    Returns:
        The workload. ``jobs`` is a data frame with one row per record and SWF's columns (times in seconds,
        -1 = unknown), ``capacity`` the machine (resource → amount, empty if the log does not state it),
        ``header`` the header's fields, ``tally`` the records that were dropped or repaired, by reason.

    Raises:
        BridgeError: there is no such log, or it cannot be read; it says which line, and what to do.
    """
    from bridge.workload.catalogue import read_log

    if malformed not in ("refuse", "drop"):
        raise BridgeError("is unknown", where=f"malformed={malformed!r}", remedy="Choose refuse or drop.")
    return read_log(_named(log, "a log"), malformed)


def read_cluster(cluster: str | PathLike[str]) -> "Cluster":
    """Read the description of a site.

    Args:
        cluster: a ``cluster.toml``, a ``slurm.conf``, or the name of a cluster that comes with bridge.

    Returns:
        The cluster: its ``nodes``, ``partitions``, ``qos``, ``accounts``, ``users``, ``licenses``,
        ``reservations`` and ``calendar`` (tuples of plain records), one ``priority``, one ``scheduler``.

    Raises:
        BridgeError: there is no such cluster, it cannot be read, or it contradicts itself.
    """
    from bridge.cluster import source

    return source.read_cluster(_named(cluster, "a cluster"))


def replay(log: str | PathLike[str], policy: str = "fcfs+easy", **options: Any) -> "Run":
    """Replay a log under one policy in the fast world.

    Args:
        log: a file (SWF, CSV, Parquet, Batsim's JSON), a bundled or a fetched workload.
        policy: as everywhere: ``sjf+easy``, an expression, an agent's folder, ``module:ATTR``.
        options: ``protocol``, ``preset``, ``estimator``, ``cancelled``, ``nodes``, ``first``, ``rebase``,
            ``cluster``, ``candidate_order``, ``seed``, ``threshold`` (s), ``malformed``, ``dependencies``:
            those of `bridge replay`; ``backfill`` where the policy names an order alone.

    Returns:
        The run. ``jobs`` is a data frame with one row per job (times in seconds, Batsim's columns),
        ``metrics`` a dictionary such as ``wait.mean`` (s) and ``bsld.mean``, ``capacity`` the machine,
        ``oracle`` whether true run times were read.

    Raises:
        BridgeError: a file, a name or an option is wrong; it says which, and what to do.
    """
    from bridge.experiment.prepare import prepare_experiment
    from bridge.experiment.run import run_fast

    workload = _named(log, "a log")
    _refuse_unknown_options(
        "replay",
        options,
        (SchedulerConfig,),
        ("seed", "threshold", "malformed", "dependencies", "cross_protocol"),
    )
    name = _policy(policy)
    _refuse_parts("replay", [name], options)
    fields = {**options, **policy_fields(name)}
    experiment = parse({"workload": workload}, "replay", fields)
    experiment.check()
    task = prepare_experiment(experiment)
    for text in task.warnings:
        warnings.warn(text, stacklevel=2)
    return run_fast(task, _Warner())


def evaluate(
    log: "str | PathLike[str] | Agent[Any]", policies: Sequence[str] | str = (), **options: Any
) -> "pd.DataFrame":
    """Judge policies on the same sequences of consecutive jobs, each played on an idle machine.

    Args:
        log: a log; or an agent (or its folder), which is then judged on jobs that it has not seen, against
            the same order without it.
        policies: names; the first is the base that the others are compared with.
        options: of `bridge evaluate`: ``sequences``, ``length``, ``seed``, ``metric``, ``protocol``, ….

    Returns:
        One row per policy, its index the name: ``mean`` of the metric, its 95 % interval ``low`` … ``high``;
        the paired ``difference`` to the base with ``difference_low`` … ``difference_high``; ``verdict``
        (better, worse, not distinguishable); ``oracle``. `attrs` has what was played and, under
        ``values``, every sequence's value. On the time-stepped pool: ``slowdown``, ``completion_time``
        (steps), ``kills``.

    Raises:
        BridgeError: a file, a name or an option is wrong; it says which, and what to do.
    """
    import pandas as pd

    _refuse_unknown_options(
        "evaluate",
        options,
        (SchedulerConfig, Sampling, EvaluationOptions, PoolConfig),
        ("cross_protocol", "malformed", "dependencies", "data"),
    )
    for name in {"order", "backfill", "estimator"} & {*options}:  # of these there may be several
        options[name] = (options[name],) if isinstance(options[name], str) else tuple(options[name])
    names = [policies] if isinstance(policies, str) else list(policies)
    text = _named(getattr(log, "folder", log), "a log or an agent")
    request = CommandRequest(
        tuple(map(_policy, names)),
        str(shipped_agents().get(text, text)),
        options,
    )
    entry = scheduler_for(request)
    _refuse(entry, "evaluate", options)
    document = entry.evaluate(request, SILENT).document
    for text in document.get("warnings", ()):
        warnings.warn(text, stacklevel=2)
    table = pd.DataFrame([_row(one) for one in document["policies"]]).set_index("policy")
    table.attrs = {key: value for key, value in document.items() if key != "policies"}
    table.attrs["values"] = {one["name"]: one["values"] for one in document["policies"] if "values" in one}
    return table


def fidelity(
    log: str | PathLike[str], policy: Sequence[str] | str = "fcfs+easy", **options: Any
) -> dict[str, Any]:
    """Compare the starts that a log records with those of replays, job by job.

    Args:
        log: a log whose records have waits.
        policy: a name, or several; ``recorded`` is what happened.
        options: of `bridge fidelity`: ``begin`` and ``until`` (parts of the log, 0 … 1), ``window`` (jobs),
            ``runs``, ``estimator``, ``protocol``, ``nodes``, ….

    Returns:
        What ``bridge fidelity --json`` prints. Of one policy at the top, of several under ``policies``, each
        with its ``name``: ``replayed`` (metrics), ``bias``, ``wasserstein`` (s), ``wasserstein_relative``,
        ``log_mae``, ``rank_correlation``, ``within`` (s → share), ``behind`` (the same beside the null, with
        verdicts), ``groups``, ``disagreements``. For all: ``recorded`` (metrics), ``null``, ``textbook``,
        ``unexplained`` and ``waiting`` (shares of the recorded waiting).

    Raises:
        BridgeError: a file, a name or an option is wrong, or the log does not say when its jobs started.
    """
    from bridge.commands.fidelity import fidelity as compare
    from bridge.commands.fidelity_config import FidelityConfig

    _refuse_unknown_options("fidelity", options, (SchedulerConfig, FidelityConfig), ("malformed",))
    names = [policy] if isinstance(policy, str) else refuse_twice(policy)
    request = CommandRequest(tuple(map(_policy, names)), _named(log, "a log"), options)
    _refuse_parts("fidelity", request.policies, options)
    if "backfill" in options:
        remedy = f"Write it behind the policy's name, as in sjf+{options['backfill']}."
        raise BridgeError("is a part of the policy's name", where="fidelity: backfill", remedy=remedy)
    return compare(request, SILENT).document


def train(
    policy: str = "rlbackfilling",
    workload: str | PathLike[str] = "",
    out: str | PathLike[str] = "",
    **options: Any,
) -> "Agent[Any]":
    """Train an agent in the fast world, or go on with a training that stopped.

    Args:
        policy: what is trained, see `bridge policies`; or ``module:ATTR``.
        workload: the log that it learns from, by default ``bundled-128``; of the time-stepped pool a job set
            (CSV), by default synthetic jobs.
        out: the agent's folder, by default ``agents/POLICY-sSEED``; one that holds the same training is
            gone on with, bit for bit.
        options: of `bridge train`: ``setting``, ``order``, ``backfill``, ``epochs``, ``seed``, ….

    Returns:
        The agent, with the weights that did best on validation sequences.

    Raises:
        BridgeError: an option is wrong, or ``out`` holds another training.
    """
    from bridge.commands.train import recipe_for, start_or_resume
    from bridge.learn import checkpoint
    from bridge.learn.registry import find_recipe

    more = ("setting", "seed", "epochs", "algorithm", "malformed", "device", "threads", "teacher")
    _refuse_unknown_options("train", options, (SchedulerConfig, PoolConfig), more)
    policy = Typed(policy)
    if "algorithm" in options:
        options["algorithm"] = Typed(options["algorithm"])
    entry = scheduler(find_recipe(policy, options.get("setting", "")).scheduler)
    _refuse(entry, "train", options)
    recipe = recipe_for(policy, options)
    options = {"seed": SEED, **options}
    folder = Path(out) if str(out) else Path("agents") / f"{recipe.name}-s{options['seed']}"
    start_or_resume(entry, recipe, str(workload) or WORKLOADS[entry.name], folder, options).run()
    return checkpoint.load_any(folder)


def load_agent(folder: str | PathLike[str]) -> "Agent[Any]":
    """Load a trained agent of either scheduler; nothing of it is executed.

    Args:
        folder: an agent's folder, or ``zoo/NAME`` for one that comes with bridge.

    Returns:
        The agent: ``recipe`` (features, networks, rules; its ``scheduler`` is ``event`` or ``pool``),
        ``origin`` (log, seed, versions), its network ``actor``.

    Raises:
        BridgeError: there is none, or its files are damaged.
    """
    from bridge.learn import checkpoint

    name = _named(folder, "an agent's folder")
    return checkpoint.load_any(shipped_agents().get(name, Path(name)))


def make_env(name: str = "bridge/Backfill-v0", **options: Any) -> "gymnasium.Env[Any, Any]":
    """Make a Gymnasium environment of the scheduler's decisions.

    Args:
        name: ``bridge/Pick-v0``, ``bridge/Backfill-v0``, ``bridge/PickAndBackfill-v0``,
            ``bridge/Inspect-v0`` or ``bridge/PickOrKill-v0``.
        options: such as ``workload``, ``order``, ``length`` (jobs an episode), ``encoder``, ``reward``.
    """
    import gymnasium

    return gymnasium.make(name, **options)


def validate(
    policies: Sequence[str] | str,
    workload: str | PathLike[str] = "",
    platform: str | PathLike[str] = "",
    out: str | PathLike[str] = "",
    on: str = "simgrid",
    **options: Any,
) -> dict[str, Any]:
    """Run policies in the fast world and on a detailed platform, and measure how far both worlds agree.

    Args:
        policies: a name, or several.
        workload: a log; by default the one that the first agent was trained on.
        platform: a platform file (XML), or a shipped platform such as ``sp2-128``.
        out: a new folder for ``validation.json`` and all runs; by default nothing is written.
        on: the detailed world: ``simgrid``, ``batsim`` or ``batsim5``.
        options: of `bridge validate`: ``profile``, ``first``, ``protocol``, ``energy``, ``tolerance``;
            ``baseline`` (`--against`), the file of an earlier outcome; ….

    Returns:
        What ``bridge validate --json`` prints: ``policies`` with the metrics of both worlds, ``inputs``, and
        ``problems``, a list of sentences about what is beyond the tolerance. In a test, assert that it is
        empty.

    Raises:
        BridgeError: an input cannot work, ``out`` exists already, or a simulation failed.
    """
    more = ("tolerance", "baseline", "data")
    _refuse_unknown_options(
        "validate", options, (Experiment, SchedulerConfig, Detailed, PoolConfig, EvaluationOptions), more
    )
    names = [policies] if isinstance(policies, str) else list(policies)
    if not names:
        raise BridgeError("no policy is named", where="validate", remedy="Name one, such as sjf+easy.")
    if on not in DETAILED:
        remedy = f"Choose {', '.join(DETAILED)}."
        raise BridgeError("is no detailed world", where=f"on={on!r}", remedy=remedy)
    tolerance = options.get("tolerance")
    if tolerance is not None and not (isinstance(tolerance, int | float) and tolerance >= 0):
        raise BridgeError("is no number from 0", where=f"tolerance={tolerance!r}", remedy="Such as 1e-6.")
    folder = Path(out) if str(out) else None
    if folder is not None and folder.exists():
        raise BridgeError("exists already", where=str(folder), remedy="Name a new folder.")
    if "baseline" in options:
        options["baseline"] = Path(_named(options["baseline"], "a baseline"))
    for key, value in (("workload", workload), ("platform", platform)):
        if str(value):
            options[key] = _named(value, f"a {key}")
    request = CommandRequest(tuple(map(_policy, names)), typed=options)
    _refuse_parts("validate", request.policies, options)
    entry = scheduler_for(request)
    _refuse(entry, "validate", options)
    output = entry.validate(request, on, folder, SILENT)
    document: dict[str, Any] = json.loads(json.dumps({**output.document, "problems": output.problems}))
    return document


def predict(
    log: str | PathLike[str],
    model: str = "trees",
    *,
    malformed: str = "refuse",
    cluster: str | PathLike[str] = "",
    **options: Any,
) -> "PredictResult":
    """Predict the run time of every job of a log, from jobs that had ended when it was submitted.

    Args:
        log: a log, as for `read_workload`.
        model: ``trees``, ``forest`` (whole distributions) or ``history`` (the user's last two runs).
        malformed: as for `read_workload`.
        cluster: a site; jobs without a requested time have that of their partition.
        options: of `bridge predict`: ``column``, ``every``, ``memory``, ``quantile``, ``seed``,
            ``with_columns``, ``outcome``.

    Returns:
        The result. ``workload.jobs[column]`` has the predictions, seconds; ``accuracies`` compares them and
        the requested times with the run times; ``write(path)`` writes a log for the estimator
        ``predicted(COLUMN)``.

    Raises:
        BridgeError: a file, a name or an option is wrong; it says which, and what to do.
    """
    from bridge.commands.predict import PredictConfig, with_times_of
    from bridge.commands.predict import predict as predict_workload

    config = from_tables(PredictConfig, {"model": model, **options}, "predict")
    workload = read_workload(log, malformed)
    if str(cluster):
        workload = with_times_of(workload, _named(cluster, "a cluster"))
    return predict_workload(workload, config, SILENT)


def decide(policy: str, socket: str = "tcp://127.0.0.1:28000", **options: Any) -> "ProcessResult":
    """Decide for one simulation of Batsim, or of its embedded stand-in; returns when it has ended.

    Args:
        policy: a rule or an agent, named as everywhere.
        socket: where to bind; Batsim connects to it.
        options: of `bridge decide`: ``estimator``, ``placement``, ``platform``, ``energy``, ….

    Returns:
        What was decided, and how the simulation ended.

    Raises:
        BridgeError: the policy or the socket cannot be used.
    """
    from bridge.worlds.batsim.endpoint import Endpoint

    more = ("resources", "storage", "strict", "workload", "cross_protocol")
    _refuse_unknown_options("decide", options, (SchedulerConfig, Detailed, PoolConfig), more)
    first = options.pop("startup_timeout", Detailed.startup_timeout)
    again = options.pop("idle_timeout", Detailed.idle_timeout)
    request = CommandRequest((_policy(policy),), typed=options)
    _refuse_parts("decide", request.policies, options)
    fields = {*fields_of(SchedulerConfig), *fields_of(Detailed)}
    if idle := sorted(fields.intersection(options) - _DECIDE):
        what = f"{', '.join(idle)}: of no effect where Batsim says which jobs and hosts there are"
        remedy = f"Leave it out. There are {', '.join(sorted(_DECIDE))}."
        raise BridgeError(what, where="decide", remedy=remedy)
    entry = scheduler_for(request)
    _refuse(entry, "decide", options)
    process, _ = entry.decide(request)
    with Endpoint(socket, startup_timeout=first, idle_timeout=again) as endpoint:
        return process.run(endpoint)


def forecast(
    state: "MachineState | str | PathLike[str]",
    at: float | None = None,
    *,
    job: Sequence[str] | str = (),
    submit: str = "",
    policy: str = "",
    futures: int = 100,
    seed: int = 0,
) -> "pd.DataFrame":
    """Forecast when waiting jobs will start.

    Args:
        state: a state, the file of one (`bridge state` writes it, and other programs may), or a run folder.
        at: of a run folder: the time of the state, seconds on the run's clock.
        job: only these waiting jobs.
        submit: instead, a job that one might submit: ``NODES:WALLTIME`` such as ``64:2h``.
        policy: order and backfilling, such as ``saf+easy``, if not the state's own.
        futures: how many are played.
        seed: of the run times that are drawn: the same seed, the same forecast.

    Returns:
        One row per job, its index the id; times in seconds on the state's clock, NaN for never:
        ``submitted``, ``median``, the 50 % interval ``low50`` … ``high50``, the 90 % interval ``low90`` …
        ``high90``, and ``reserved``, the start if all jobs ran as long as they request.

    Raises:
        BridgeError: the state, a name or a number is wrong; it says which, and what to do.
    """
    import pandas as pd

    from bridge.forecasting.run_state import load_state
    from bridge.forecasting.starts import forecast as of_state
    from bridge.forecasting.state import MachineState
    from bridge.forecasting.whatif import parse_job, with_job

    present = load_state(state, at, policy) if isinstance(state, str | PathLike) else state
    if not isinstance(present, MachineState):
        raise TypeError(f"a forecast needs a state, the file of one or a run folder, not {present!r:.60}")
    wanted = [job] if isinstance(job, str) else [*job]
    if submit:
        present = with_job(present, *parse_job(submit))
        wanted = [present.id[-1]]
    starts = of_state(present, policy=policy, futures=futures, seed=seed, jobs=wanted)
    columns = ("job", "submitted", "low90", "low50", "median", "high50", "high90", "reserved")
    return pd.DataFrame(starts.rows(), columns=columns).set_index("job").astype("float64")


class _Warner(ProgressReporter):
    """Turns what a run warns of into Python's warnings."""

    def warn(self, texts: Iterable[str]) -> None:
        for text in texts:
            warnings.warn(text, stacklevel=4)


def _named(value: object, what: str) -> str:
    """Return a name or a path as text; whatever else is no name."""
    if not isinstance(value, str | PathLike):
        raise TypeError(f"{what} is given by its name or path, not by {type(value).__name__} {value!r:.60}")
    return str(value)


def _policy(name: object) -> PolicyName:
    """Return the policy that a call names; what may be code of the caller's own."""
    return parse_policy(typed_policy(_named(name, "a policy")))


def _refuse_unknown_options(
    where: str, options: Iterable[str], kinds: Iterable[type], more: Iterable[str]
) -> None:
    """Refuse options that would be ignored; what is a group of options has no name among them."""
    fields = {name: field for kind in kinds for name, field in fields_of(kind).items()}
    names = sorted({name for name, field in fields.items() if not is_dataclass(field.hint)} | {*more})
    for name in options:
        if name not in names:
            remedy = f"{did_you_mean(name, names)}There are {', '.join(names)}."
            raise BridgeError(f"unknown option {name!r}", where=where, remedy=remedy)


def _refuse(entry: CommandBackend, command: str, options: Iterable[str]) -> None:
    """Refuse options that mean nothing to the scheduler whose policy it is."""
    names = sorted(entry.unsupported_options(command, {*options}))
    if names:
        raise BridgeError(f"{entry.title} has no {', '.join(names)}", where=command, remedy="Leave it out.")


def _refuse_parts(where: str, policies: Iterable[PolicyName], options: Iterable[str]) -> None:
    """Refuse options beside a policy whose name, or agent, has that part already: they would be ignored."""
    for policy in policies:
        parts = {"order", "agent"}
        if policy.agent or policy.plugin:
            parts |= {"backfill", "candidate_order", "action", "blocked"}
        parts |= {part for part in ("backfill", "action") if getattr(policy, part)}
        if twice := sorted(parts & {*options}):
            verb = "is a part" if len(twice) == 1 else "are parts"
            remedy = "Leave it out, or write another policy, such as sjf+easy."
            what = f"{', '.join(twice)} {verb} of the policy {policy.text!r}"
            raise BridgeError(what, where=where, remedy=remedy)


def _row(one: dict[str, Any]) -> dict[str, Any]:
    """Return one policy's entry of an evaluation as a row; the pool's has its own numbers."""
    if "policy" in one:
        own = {key: value for key, value in one.items() if key not in ("policy", "kill", "sequences")}
        return {"policy": f"{one['policy']}+{one['kill']}", **own}
    interval, difference = one["ci95"] or {}, one["difference"] or {}
    return {
        "policy": one["name"],
        "mean": one["mean"],
        "low": interval.get("low"),
        "high": interval.get("high"),
        "difference": difference.get("mean"),
        "difference_low": difference.get("low"),
        "difference_high": difference.get("high"),
        "verdict": one["verdict"],
        "oracle": one["oracle"],
    }
