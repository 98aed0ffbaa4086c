"""An experiment: workload, policy, world and platform in one typed object; from TOML files and options."""

import dataclasses
import math
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bridge.errors import BridgeError
from bridge.experiment.profiles import Kind, default_walltime, parse_kind
from bridge.experiment.staging import Staging
from bridge.fast.setup import Setup
from bridge.shipped import shipped
from bridge.workload.walltime import Walltime, walltime

WORLDS = ("fast", "simgrid", "batsim")
#: What a burst-buffer request means to the platform: nothing but the scheduler's booking, or transfers too.
FIDELITIES = ("alloc_only", "io_aware")
PLACEMENTS = ("first-fit", "contiguous", "best-fit", "topology")
#: How the watts that jobs ask for reach the platform: not at all, or as power states of their hosts.
POWERS = ("", "per-job")


@dataclass(frozen=True)
class Detailed:
    """What only the detailed world asks for.

    Attributes:
        platform: a platform file, or the name of one that comes with bridge.
        profile: what jobs do, see `bridge.experiment.profiles`.
        fidelity: ``alloc_only`` (burst buffer is booked only) or ``io_aware`` (jobs stage, too).
        stage_in, stage_out, checkpoints, drain: see `bridge.experiment.staging.Staging`.
        walltime: ``keep``, ``none`` or ``factor:F``; empty = none where jobs contend or stage, else keep.
        placement: which hosts a job gets.
        energy: simulate power (``-E``); the four options below do so by themselves.
        power: ``per-job``: a job's hosts draw what it asks for, see `bridge.batsim.power`; empty: no.
        power_budget: for all compute hosts together, W; 0 = the platform's.
        shutdown_after: how long a host is idle before it is switched off, s; 0 = never.
        dvfs: share of busy hosts up to which jobs run in the slow power state if none waits; 0 = never.
        program: the platform program in place of Batsim from PATH or the embedded model.
        image: a container image whose entry point is Batsim, started with docker.
        options: further options of the platform program.
        startup_timeout, idle_timeout: wall time until it must speak first, or again, s; 0 = for ever.
    """

    platform: str = ""
    profile: str = "delay"
    fidelity: str = "alloc_only"
    stage_in: float = Staging.stage_in
    stage_out: float = Staging.stage_out
    checkpoints: int = Staging.checkpoints
    drain: float = Staging.drain
    walltime: str = ""
    placement: str = "first-fit"
    energy: bool = False
    power: str = ""
    power_budget: float = 0.0
    shutdown_after: float = 0.0
    dvfs: float = 0.0
    program: str = ""
    image: str = ""
    options: tuple[str, ...] = ()
    startup_timeout: float = 300.0
    idle_timeout: float = 3600.0

    @property
    def kind(self) -> Kind:
        """What jobs do, parsed."""
        return parse_kind(self.profile)

    @property
    def staging(self) -> Staging | None:
        """What jobs with a burst-buffer request move, None if their request is booked only."""
        given = Staging(self.stage_in, self.stage_out, self.checkpoints, self.drain)
        if self.fidelity == "io_aware":
            given.check()
            return given
        if given != Staging():
            raise BridgeError(
                "stage_in, stage_out, checkpoints and drain need jobs that stage",
                where=f"fidelity {self.fidelity}",
                remedy="Add the fidelity io_aware, or leave them out.",
            )
        return None

    @property
    def limit(self) -> Walltime:
        """When jobs are killed."""
        usual = "none" if self.dvfs else default_walltime(self.kind, staged=self.staging is not None)
        return walltime(self.walltime or usual)

    @property
    def switches(self) -> bool:
        """Whether hosts change their power state."""
        return bool(self.power or self.shutdown_after or self.dvfs)

    @property
    def powered(self) -> bool:
        """Whether power is simulated."""
        return self.energy or self.switches


@dataclass(frozen=True)
class Experiment:
    """Everything that decides a run, but for the versions of the programs.

    Attributes:
        workload: a file, a bundled workload or a fetched log.
        on: ``fast``, ``simgrid`` (the embedded platform model) or ``batsim``.
        seed: of the estimator ``noisy(P)``, the only thing that is drawn at random.
        threshold: of the bounded slowdown, s.
        malformed: refuse or drop lines of the log that are no record.
        agent: a checkpoint that decides; its order and backfilling take the setup's place.
        cross_protocol: let it decide under a protocol that it did not learn under.
        setup: policy, rules and selection of jobs, as in `bridge replay`.
        detailed: the rest.
    """

    workload: str
    on: str = "fast"
    seed: int = 0
    threshold: float = 10.0
    malformed: str = "refuse"
    agent: str = ""
    cross_protocol: bool = False
    setup: Setup = field(default_factory=Setup)
    detailed: Detailed = field(default_factory=Detailed)

    def check(self) -> None:
        """Refuse what can be seen to be wrong without reading any file.

        Raises:
            BridgeError: an unknown word, or a rule that the detailed world does not have.
        """
        _one_of("on", self.on, WORLDS)
        _one_of("placement", self.detailed.placement, PLACEMENTS)
        _one_of("fidelity", self.detailed.fidelity, FIDELITIES)
        _one_of("malformed", self.malformed, ("refuse", "drop"))
        _one_of("cancelled", self.setup.cancelled, ("", "keep", "drop"))
        if not (math.isfinite(self.threshold) and self.threshold > 0):
            raise BridgeError(
                "is no number of seconds above 0", where=f"threshold {self.threshold}", remedy="Name one."
            )
        self.setup.rules()
        _ = self.detailed.kind, self.detailed.staging, self.detailed.limit
        self._check_power()
        if self.on == "fast":
            return
        if not self.detailed.platform:
            raise BridgeError(
                "the detailed world needs a platform",
                where=f"--on {self.on}",
                remedy="Give --platform FILE.xml; `bridge platform new` makes one.",
            )
        if self.setup.protocol != "standard":
            raise BridgeError(
                "the detailed world has the standard protocol only: one pass per instant",
                where=f"protocol {self.setup.protocol!r}",
                remedy="Use --on fast for the other protocols.",
            )
        if self.detailed.image and (self.on != "batsim" or self.detailed.program):
            raise BridgeError(
                "an image is one way to start Batsim, a program another",
                where=f"image {self.detailed.image!r}",
                remedy="Give --image with --on batsim and without --program.",
            )

    def _check_power(self) -> None:
        detailed = self.detailed
        _one_of("power", detailed.power, POWERS)
        for name, value, most in (
            ("power_budget", detailed.power_budget, math.inf),
            ("shutdown_after", detailed.shutdown_after, math.inf),
            ("dvfs", detailed.dvfs, 1.0),
        ):
            if not (0 <= value <= most and math.isfinite(value)):
                raise BridgeError(
                    "is no number from 0" + (" to 1" if most == 1 else " up"),
                    where=f"{name} {value}",
                    remedy="See docs/power.md.",
                )
        if detailed.power and detailed.dvfs:
            raise BridgeError(
                "a host's power states are for power per job or for DVFS, not for both",
                where=f"power {detailed.power!r}, dvfs {detailed.dvfs}",
                remedy="Leave one of them out.",
            )
        if detailed.power and not detailed.platform:
            raise BridgeError(
                "needs the platform whose hosts say what a job can draw",
                where=f"power {detailed.power!r}",
                remedy="Give --platform.",
            )
        if detailed.power and self.setup.protocol != "standard":
            raise BridgeError(
                "only the standard protocol has power per job, like the detailed world",
                where=f"protocol {self.setup.protocol!r}",
                remedy="Leave out power, or use the standard protocol.",
            )

    def seeded(self) -> Setup:
        """Return the setup with the experiment's seed in ``noisy(P)``."""
        name = self.setup.estimator.replace(" ", "")
        if name.startswith("noisy(") and "," not in name and self.seed:
            return dataclasses.replace(self.setup, estimator=f"{name[:-1]}, {self.seed})")
        return self.setup

    def as_dict(self) -> dict[str, Any]:
        """Return the experiment as TOML has it: only what is not the default."""
        return {
            name: value
            for name, value in _unlike(self, Experiment("")).items()
            if value != {} or name == "workload"
        }

    def command(self) -> str:
        """Return the `bridge run` command line of this experiment."""
        words = ["bridge", "run", "--workload", self.workload]
        for name, value in flat(self.as_dict()).items():
            if name == "workload":
                continue
            option = "--" + name.replace("_", "-").replace("candidate-order", "backfill-order")
            if name == "options":
                words += [f"--option={text}" for text in value]
            elif isinstance(value, bool):
                words.append(option if value else f"--no-{option[2:]}")
            else:
                words += [option, str(value)]
        return shlex.join(words)


def _unlike(this: Any, default: Any) -> dict[str, Any]:
    """Return the fields that differ, nested objects as dicts."""
    found: dict[str, Any] = {}
    for part in dataclasses.fields(this):
        value, usual = getattr(this, part.name), getattr(default, part.name)
        if dataclasses.is_dataclass(value):
            found[part.name] = _unlike(value, usual)
        elif value != usual:
            found[part.name] = list(value) if isinstance(value, tuple) else value
    return found


def flat(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment's document without its tables: every field has a name of its own."""
    found = {name: value for name, value in document.items() if name not in _TABLES}
    for table in _TABLES:
        found |= document.get(table, {})
    return found


_TABLES: dict[str, Any] = {"setup": Setup, "detailed": Detailed}
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "int | None": (int,),
    "bool | None": (bool,),
    "tuple[str, ...]": (list, tuple),
}


def overlay(document: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with options put over it, each in the table that has a field of its name."""
    made = {**document}
    for name, value in options.items():
        table = next((t for t, of in _TABLES.items() if name in _fields(of)), None)
        if table is None:
            made[name] = value
        else:
            inner = made.get(table, {})
            made[table] = {**(inner if isinstance(inner, Mapping) else {}), name: value}
    return made


def _fields(of: Any) -> dict[str, tuple[type, ...]]:
    """Return the plain fields of a dataclass and the types that their values may have."""
    found = {}
    for part in dataclasses.fields(of):
        if part.name not in _TABLES:
            text = part.type.__name__ if isinstance(part.type, type) else str(part.type)
            found[part.name] = _KINDS.get(text, (str,))
    return found


def parse(document: Mapping[str, Any], where: str) -> Experiment:
    """Return the experiment of a TOML document or of options.

    Args:
        document: as `Experiment.as_dict` gives it.
        where: the file, for errors.

    Raises:
        BridgeError: an unknown or missing field, or one of another type.
    """
    top = {name: value for name, value in document.items() if name not in _TABLES}
    tables = {name: document.get(name, {}) for name in _TABLES}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise BridgeError("is no table", where=f"{where}, {name}", remedy=f"Write [{name}].")
    parts = {
        name: made(**_checked(tables[name], made, f"{where}, [{name}]")) for name, made in _TABLES.items()
    }
    checked = _checked(top, Experiment, where)
    if not checked.get("workload"):
        raise BridgeError(
            "no workload is named", where=where, remedy='Add workload = "…", a file or a name, or --workload.'
        )
    return Experiment(**checked, **parts)


def _checked(table: Mapping[str, Any], of: Any, where: str) -> dict[str, Any]:
    known = _fields(of)
    found: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            tables = ", ".join(f"[{t}]" for t in _TABLES) if of is Experiment else ""
            more = f" and the tables {tables}" if tables else ""
            raise BridgeError(
                f"unknown field {name!r}", where=where, remedy=f"Known: {', '.join(known)}{more}."
            )
        kinds = known[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BridgeError(
                f"{name} = {value!r} is no {' or '.join(kind.__name__ for kind in kinds)}",
                where=where,
                remedy="See docs/experiments.md.",
            )
        if isinstance(value, (list, tuple)):
            if not all(isinstance(word, str) for word in value):
                raise BridgeError(f"{name} holds what is no text", where=where, remedy='Write ["-x", "…"].')
            found[name] = tuple(value)
        else:
            found[name] = float(cast(float, value)) if float in kinds else value
    return found


def read_document(path: Path) -> dict[str, Any]:
    """Return a TOML file's experiment, its workload, agent and platform found from the file's own folder.

    Raises:
        BridgeError: the file is missing or no TOML.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BridgeError(
            f"cannot be read ({error.strerror})", where=str(path), remedy="Check the path."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BridgeError(f"not valid TOML: {error}", where=str(path), remedy="Mend the file.") from error
    detailed = document.get("detailed")
    for table, name in ((document, "workload"), (document, "agent"), (detailed, "platform")):
        if isinstance(table, dict) and isinstance(table.get(name), str):
            beside = path.parent / table[name]
            if table[name] and beside.exists():
                table[name] = str(beside)
    return document


def platform_file(name: str) -> Path:
    """Return the file of a platform: a path, or the name of one that comes with bridge.

    Raises:
        BridgeError: it is neither.
    """
    path = Path(name)
    if path.is_file():
        return path
    known = shipped("platforms", ".xml")
    if name in known:
        return known[name]
    raise BridgeError(
        "is neither a platform file nor the name of one that comes with bridge",
        where=f"platform {name!r}",
        remedy=f"There are: {', '.join(known)}." if known else "Check the path.",
    )


def _one_of(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise BridgeError(f"unknown {what}", where=repr(value), remedy=f"Choose {', '.join(known)}.")
