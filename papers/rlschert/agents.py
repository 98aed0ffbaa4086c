"""RLSchert's agents: their recipes, their folders, which of them exist, and the training of others."""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pandas as pd

from bridge.errors import BridgeError
from bridge.learn.algorithms.pool import TEACHER
from bridge.learn.checkpoint import Origin, PoolCheckpoint, load
from bridge.learn.folder import PROGRESS, RESUME, is_checkpoint, sha256_of, versions
from bridge.learn.learner import Assignment
from bridge.learn.recipe import AGENT_TEACHER, PoolRecipe
from bridge.learn.training import train_or_resume
from bridge.policies.rlschert import SETTINGS
from bridge.pool.jobset import JobSet, read_vasp
from bridge.pool.settings import Objective
from papers import store
from papers.rlschert.study import CLAMP, METHODS, SIZE_EPOCHS, TEST
from papers.say import Say, reporting

FILE = "vasp_jobs.csv.gz"


@dataclass(frozen=True)
class Data:
    """Jobs that sequences are drawn from.

    Attributes:
        path: their file, or what made them.
        sha256: of the file, or of the jobs.
        jobs: with their beliefs.
        word: in the names of agents that learnt from them; empty for the logged ones.
    """

    path: Path
    sha256: str
    jobs: JobSet
    word: str = ""


def data_of(path: Path | None) -> Data:
    """Read the logged jobs: a file, or that in ``$BRIDGE_DATA``, or in ``../data`` beside ``$BRIDGE_TRACES``.

    Raises:
        BridgeError: there is none.
    """
    if path is None:
        data, traces = os.environ.get("BRIDGE_DATA"), os.environ.get("BRIDGE_TRACES")
        if not (data or traces):
            raise BridgeError("the logged VASP jobs are needed", remedy=f"Name the file: --data {FILE}")
        path = (Path(data) if data else Path(str(traces)).parent / "data") / FILE
    jobs = read_vasp(path)
    return Data(path, sha256_of(path), jobs)


def digest_of(jobs: JobSet) -> str:
    """Return the SHA-256 of jobs that come from no file: lengths, sizes and beliefs."""
    made = hashlib.sha256(jobs.name.encode())
    for values in (jobs.id, jobs.units, jobs.length, jobs.believed, jobs.beliefs):
        made.update(values.tobytes())
    return made.hexdigest()


@dataclass(frozen=True)
class Pupil:
    """An agent, trained or not.

    Attributes:
        setting: of `policies.rlschert`.
        label: with the oracle clamp, or honest.
        objective: what it is trained for.
        units: size of its pool.
        smoke: so few epochs only; 0 = as many as its recipe says.
    """

    setting: str
    label: str
    objective: str = "slowdown"
    units: int = TEST.units
    smoke: int = 0

    @property
    def recipe(self) -> PoolRecipe:
        """Its recipe; fewer epochs for a smoke row, and for pools of other sizes than the paper's."""
        recipe = SETTINGS[self.setting]
        pool = replace(
            recipe.pool,
            objective=cast(Objective, self.objective),
            units=self.units,
            oracle_clamp=self.label == CLAMP,
        )
        epochs = recipe.training.epochs
        if self.units != TEST.units:
            epochs = min(epochs, SIZE_EPOCHS)
        training = replace(recipe.training, epochs=self.smoke or epochs)
        if self.smoke:
            training = replace(training, lessons=min(training.lessons, self.smoke // 2))
        return replace(recipe, pool=pool, training=training)

    def folder(self, seed: int, data: Data) -> Path:
        """Return where it is kept."""
        words = ["rlschert", data.word, self.setting, "clamp" if self.label == CLAMP else "honest"]
        made_of = store.digest(store.unusual(self.recipe), data.sha256)
        words += [self.objective, str(self.units), made_of, f"s{seed}"]
        return store.WORK / "agents" / "-".join(word for word in words if word)

    def command(self, seed: int, data: Data) -> str:
        """Return what trains it."""
        row = next(m.row for m in METHODS if m.setting == self.setting)
        jobs = f"--jobs {data.word} " if data.word else ""
        which = f'--row "{row}" --label "{self.label}" --objective {self.objective} --seeds {seed}'
        return f"python -m papers rlschert {jobs}{which}"

    def is_trained(self, seed: int, data: Data) -> bool:
        """Tell whether it has been trained as far as its recipe says."""
        folder = self.folder(seed, data)
        done = (folder / RESUME).exists() and (folder / PROGRESS).exists()
        return done and len(pd.read_parquet(folder / PROGRESS)) == self.recipe.training.epochs

    def seeds(self, data: Data) -> list[int]:
        """Return the seeds of which there is a trained one."""
        stem = self.folder(0, data).name.removesuffix("0")
        found = (path.name.removeprefix(stem) for path in (store.WORK / "agents").glob(f"{stem}*"))
        return [seed for seed in sorted(int(s) for s in found if s.isdigit()) if self.is_trained(seed, data)]


def trained(pupil: Pupil, seed: int, data: Data, say: Say) -> PoolCheckpoint:
    """Return an agent, trained as far as its recipe says; a training that broke off goes on.

    An agent that learns to kill is taught by the one beside which the rule kills, of the same seed, pool and
    objective.
    """
    recipe, folder = pupil.recipe, pupil.folder(seed, data)
    if pupil.is_trained(seed, data):
        return load(folder, PoolRecipe)
    teacher = None
    if recipe.training.teacher == AGENT_TEACHER and not is_checkpoint(folder / TEACHER):
        teacher = trained(replace(pupil, setting="rule-kill"), seed, data, say).folder
    jobs, command = data.jobs, pupil.command(seed, data)
    origin = Origin(str(data.path), jobs.name, len(jobs), data.sha256, seed, {}, versions(), command)
    say(f"training {folder.name}")
    given = Assignment(recipe, jobs, origin, folder, teacher=teacher)
    return train_or_resume(given, reporting(recipe, "SAF", say))
