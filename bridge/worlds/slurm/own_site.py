"""The state of Slurm's own schedulers, as the protocol `slurm` has it, from what a running Slurm tells."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bridge.base.errors import BridgeError
from bridge.cluster.imported import mending
from bridge.cluster.slurm_site import import_slurm_text
from bridge.scheduler.slurm.backfill_pass import backfill_pass
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.main_pass import main_pass
from bridge.scheduler.slurm.masks import mask_of
from bridge.scheduler.slurm.settings import require_modelled, settings_of
from bridge.scheduler.slurm.site import Site
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.install import configuration
from bridge.worlds.slurm.own_jobs import COMPLETING, OwnJob, slurm_job

#: Settings of `scontrol show config` that decide which job starts where.
_SETTINGS = (
    *(
        "ClusterName",
        "SelectType",
        "SelectTypeParameters",
        "SchedulerType",
        "SchedulerParameters",
        "KillWait",
    ),
    *("OverTimeLimit", "DefMemPerCPU", "DefMemPerNode", "PreemptType", "PreemptMode", "GresTypes", "Epilog"),
)
_WHERE = "scontrol show"


def read_own_site(client: Client) -> Site:
    """Return the site of a running Slurm; BridgeError names the setting that is not modelled."""
    stated = configuration(client)
    if {"limits", "safe", "all"} & {*stated.get("accountingstorageenforce", "").lower().split(",")}:
        remedy = "Predict on a cluster without them."
        raise BridgeError("limits are enforced, which no prediction reads", where=_WHERE, remedy=remedy)
    values = {name: stated.get(name.lower(), "") for name in _SETTINGS}
    values = {name: re.sub(r" (?:sec|min)$", "", value) for name, value in values.items() if value}
    for name, value in values.items():
        require_modelled(name.lower(), value, _WHERE)
    texts = [client.call("scontrol", "-o", "show", kind) for kind in ("node", "partition", "lic")]
    text = "\n".join([*(f"{name}={value}" for name, value in values.items()), *texts])
    if "ReservationName=" in client.call("scontrol", "-o", "show", "reservation"):
        raise BridgeError("has advance reservations, which no prediction reads", where=_WHERE)
    whole = {name.lower(): value for name, value in values.items()}
    with mending(_WHERE):
        return Site(import_slurm_text(text, Path(_WHERE)).cluster, settings_of(whole), _WHERE)


@dataclass
class OwnQueue:
    """Jobs that wait, and jobs that have nodes, by their labels."""

    site: Site
    waiting: dict[str, OwnJob] = field(default_factory=dict)
    running: dict[str, OwnJob] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site, jobs: Mapping[str, OwnJob]) -> "OwnQueue":
        """Return the queue of one reading."""
        waiting = {label: one for label, one in jobs.items() if one.is_waiting}
        return cls(site, waiting, {label: one for label, one in jobs.items() if one.nodes})

    def leave_out_unmodelled(self) -> None:
        """Leave out waiting jobs that ask for what the protocol does not have."""
        for label, one in self.waiting.items():
            try:
                slurm_job(_as_waiting(one), self.site, 0)
            except ValueError as error:
                self.waiting[label] = replace(one, left_out=str(error))

    def copy(self) -> "OwnQueue":
        return OwnQueue(self.site, dict(self.waiting), dict(self.running))

    def submit(self, name: str, nodes: int, walltime: float, user: str, partition: str, now: int) -> None:
        """Add a job that waits behind all others for whole nodes."""
        number = 1 + max((one.number for one in (*self.waiting.values(), *self.running.values())), default=0)
        fields = {
            "UserId": f"{user or 'root'}(0)",
            "Partition": partition,
            "Priority": "1",
            "Reason": "None",
            "NumNodes": f"{nodes}-{nodes}",
            "NumTasks": str(nodes),
            "OverSubscribe": "NO",
            "TimeLimit": f"00:{max(math.ceil(walltime / 60), 1)}:00",
        }
        self.waiting[name] = OwnJob(name, number, -1, "PENDING", fields, 0, 0, now, {}, "")

    def start(self, one: OwnJob) -> None:
        """Take a job that has waited as one that has its nodes."""
        self.waiting.pop(one.label, None)
        self.running[one.label] = replace(one, state="RUNNING")

    def predict(self, now: int, by: str) -> dict[str, frozenset[str]]:
        """Return what a pass of the main or the backfill scheduler would start now, and where."""
        slurm, labels = self.controller()
        if by == "main":
            main_pass(slurm, now, full=True)
        else:
            backfill_pass(slurm, now)
        names = [node.name for node in self.site.nodes]
        return {
            labels[job.key]: frozenset(name for n, name in enumerate(names) if job.nodes >> n & 1)
            for job, _ in slurm.started
        }

    def controller(self) -> tuple[Controller, dict[int, str]]:
        """Return the state of Slurm's schedulers, and the labels of jobs by their keys.

        BridgeError: a job asks for what the protocol does not have. Jobs that are `left_out` do not wait.
        """
        slurm = Controller(self.site)
        labels: dict[int, str] = {}
        everyone = [*self.running.values(), *(one for one in self.waiting.values() if not one.left_out)]
        everyone.sort(key=lambda one: (one.number, one.task))
        for key, one in enumerate(everyone):
            runs = one.label in self.running
            with mending(f"job {one.label}"):
                job = slurm_job(one if runs else _as_waiting(one), self.site, key)
            labels[key] = one.label
            slurm.submit(job, one.submit)
            job.priority, job.priorities = int(one.text("Priority") or 0), {}
            if not runs:
                continue
            nodes = mask_of(self.site.index[name] for name in one.cores)  # one of several partitions
            part = next((part for part in job.parts if not nodes & ~part.mask), job.parts[0])
            cores = {self.site.index[name]: cpus for name, cpus in one.cores.items()}
            slurm.adopt(job, part, cores, one.start)
            job.end = one.end
            if one.state == COMPLETING:
                slurm.finish(job, one.end)
                job.nodes = mask_of(self.site.index[name] for name in one.nodes)
                slurm.nodes_freed(nodes & ~job.nodes)
        slurm.line.is_valid = 0
        slurm.started.clear()
        slurm.ended.clear()
        return slurm, labels


def _as_waiting(one: OwnJob) -> OwnJob:
    """Return a job as it waited, though it has been read only since it runs."""
    return one if one.is_waiting else replace(one, fields=one.fields | {"Reason": "None"})
