"""What an operator does: `scontrol` and `scancel`, carried out on the state of a site."""

import re
import shlex

from bridge.cluster.slurm_values import node_names
from bridge.scheduler.slurm.advance import Advance
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import PENDING, RUNNING, SlurmJob
from bridge.scheduler.slurm.masks import bits, mask_of
from bridge.worlds.fast.slurm.requests import Names, minutes_of

#: Flags of reservations that need no rule of their own.
_SILENT = {
    "MAINT",
    "FLEX",
    "IGNORE_JOBS",
    "PURGE_COMP",
    "SPEC_NODES",
    "OVERLAP",
    "ALL_NODES",
    "NO_HOLD_JOBS_AFTER",
}
_SILENT |= {"NO_HOLD_JOBS_AFTER_END", "ANY_NODES"}


#: What may be said of reservations.
_OF_RESERVATIONS = frozenset(
    (
        *("reservationname", "reservation", "starttime", "endtime", "duration", "flags", "nodes", "nodecnt"),
        *("partitionname", "users", "users+", "users-", "accounts", "accounts+", "accounts-"),
    )
)


class Operator:
    """Carries commands out; ValueError: one is not known."""

    def __init__(self, slurm: Controller, names: Names, epoch: int) -> None:
        self.slurm, self.names, self.epoch = slurm, names, epoch

    def run(self, command: str, now: int) -> None:
        words = shlex.split(command)
        if words[:1] == ["scancel"]:
            for job in self._jobs(words[-1]):
                self.slurm.cancel(job, now)
            return
        if len(words) < 2 or words[0] != "scontrol":
            raise ValueError(f"{command[:60]!r} is no command that is known here")
        verb, rest = words[1].lower(), words[2:]
        jobs = {"suspend", "resume", "hold", "uhold", "release", "requeue", "requeuehold", "top"}
        if verb in jobs:
            for text in rest:
                for job in self._jobs(text):
                    self._on_job(verb, job, now)
        elif verb == "update":
            self._update(dict(word.split("=", 1) for word in rest if "=" in word), now)
        elif verb in ("create", "delete"):
            self._reservation(verb, [word for word in rest if word.lower() != "reservation"], now)
        elif verb not in ("reconfigure", "ping", "show"):
            raise ValueError(f"scontrol {verb} is not known here")

    def _jobs(self, text: str) -> list[SlurmJob]:
        match = re.fullmatch(r"%?([\w.-]+?)%?(?:_(\d+))?", text.strip())
        if not match:
            raise ValueError(f"{text[:40]!r} names no job")
        number = self.names.ids.get(match[1], -1)
        jobs = self.slurm.by_id.get(number, [])
        return [job for job in jobs if match[2] is None or job.task == int(match[2])]

    def _on_job(self, verb: str, job: SlurmJob, now: int) -> None:
        slurm = self.slurm
        if verb == "suspend":
            slurm.suspend(job, now)
        elif verb == "resume":
            slurm.resume(job, now)
            slurm.priorities.next_basic -= 1
        elif verb in ("hold", "uhold"):
            if job.state == PENDING:
                job.held, job.priority, job.priorities = True, 0, {}
        elif verb == "release":
            if job.state == PENDING:
                job.held, job.priority = False, 0
                slurm.rows.write(job)
                slurm.priorities.submit(job, now)
        elif verb in ("requeue", "requeuehold"):
            if job.state == RUNNING:
                slurm.requeue(job, now, "requeued")
            job.held = job.held or verb == "requeuehold"
        elif verb == "top":
            self._top(job)

    def _top(self, job: SlurmJob) -> None:
        """Put a job before the others of its user, which keep their order."""
        others = [one for one in self.slurm.pending.values() if one.user == job.user and one.priority]
        others = [one for one in others if one is not job]
        highest = max((one.priority for one in others), default=0)
        if job.state != PENDING or highest <= job.priority:
            return
        job.priority = highest
        job.priorities = {}
        for one in others:
            one.priority -= 1
            one.priorities = {}

    def _update(self, pairs: dict[str, str], now: int) -> None:
        settings = {name.lower(): value for name, value in pairs.items()}
        if "nodename" in settings:
            self._node(settings, now)
        elif "partitionname" in settings:
            self._partition(settings)
        elif "reservationname" in settings or "reservation" in settings:
            self._reservation("update", [f"{name}={value}" for name, value in pairs.items()], now)
        elif "jobid" in settings:
            for job in self._jobs(settings.pop("jobid")):
                self._job(job, settings, now)
        else:
            raise ValueError(f"scontrol update of {', '.join(pairs)} is not known here")

    def _node(self, settings: dict[str, str], now: int) -> None:
        mask = mask_of(self._node_index(name) for name in node_names(settings["nodename"]))
        state = settings.get("state", "").upper()
        slurm = self.slurm
        if state in ("DRAIN", "FAIL"):
            slurm.drained |= mask
        elif state == "DOWN":
            slurm.down |= mask
            for job in list(slurm.running.values()):
                if job.nodes & mask:
                    slurm.requeue(job, now, "node failed")
        elif state in ("RESUME", "IDLE", "UNDRAIN"):
            slurm.drained &= ~mask
            slurm.down &= ~mask
        elif state:
            raise ValueError(f"State={state} of a node is not known here")
        if "weight" in settings:
            for n in bits(mask):
                slurm.site.weights[n] = int(settings["weight"])
            slurm.forget_fits()

    def _node_index(self, name: str) -> int:
        if name not in self.slurm.site.index:
            raise ValueError(f"there is no node {name}")
        return self.slurm.site.index[name]

    def _partition(self, settings: dict[str, str]) -> None:
        part = self.slurm.site.part_index.get(settings["partitionname"])
        if part is None:
            raise ValueError(f"there is no partition {settings['partitionname']}")
        part.version += 1
        for name, value in settings.items():
            none = value.upper() in ("INFINITE", "UNLIMITED")
            if name == "maxtime":
                part.max_time = None if none else minutes_of(value)
            elif name == "maxnodes":
                part.max_nodes = None if none else int(value)
            elif name == "minnodes":
                part.min_nodes = int(value)
            elif name == "state":
                part.state = value.lower()
            elif name != "partitionname":
                raise ValueError(f"{name}= of a partition is not known here")

    def _job(self, job: SlurmJob, settings: dict[str, str], now: int) -> None:
        slurm = self.slurm
        for name, value in settings.items():
            job.forget()
            if name == "timelimit":
                old, job.limit = job.limit, minutes_of(value)
                if job.state == RUNNING:
                    job.end += job.limit - old
                    slurm.limits_due = 0
            elif name == "nice":
                change = int(value) - job.nice
                job.nice = int(value)
                if slurm.priorities.is_basic and job.state == PENDING and job.priority:
                    job.priority -= change
                else:
                    slurm.priorities.refresh(job, now)
            elif name == "priority":
                job.priority, job.held, job.priorities = int(value), value == "0", {}
            elif name in ("partition", "partitionname"):
                job.parts = tuple(slurm.site.part_index[one] for one in value.split(","))
                slurm.priorities.refresh(job, now)
            elif name == "qos":
                slurm.ledger.submit(job, -1)
                job.qos = value
                slurm.ledger.submit(job)
                slurm.priorities.refresh(job, now)
            elif name in ("numnodes", "minnodes"):
                low, _, high = value.partition("-")
                job.min_nodes, job.max_nodes = int(low), int(high or low)
                job.min_cpus = max(job.min_cpus, job.min_nodes) if job.cpus_per_task == 1 else job.min_cpus
            elif name in ("dependency", "starttime", "eligibletime"):
                if value:
                    raise ValueError(f"scontrol update JobId {name}= is not known here")
                job.dependencies, job.singleton = (), False
            elif name == "requeue":
                job.requeue = value not in ("0", "no")
            elif name not in ("comment", "name", "jobname"):
                raise ValueError(f"scontrol update JobId {name}= is not known here")

    # --- advance reservations

    def _reservation(self, verb: str, words: list[str], now: int) -> None:
        settings = {name.lower(): value for name, _, value in (word.partition("=") for word in words)}
        name = (
            settings.get("reservationname")
            or settings.get("reservation")
            or f"resv{len(self.slurm.reservations)}"
        )
        if verb == "delete":
            self.slurm.reservations.pop(name, None)
            return
        old = self.slurm.reservations.get(name) if verb == "update" else None
        start = (
            self._instant(settings["starttime"], now)
            if "starttime" in settings
            else (old.start if old else now)
        )
        if "endtime" in settings:
            end = self._instant(settings["endtime"], now)
        elif "duration" in settings:
            end = start + minutes_of(settings["duration"])
        else:
            end = old.end if old else start + 365 * 86_400
        if unknown := settings.keys() - _OF_RESERVATIONS:
            raise ValueError(f"{', '.join(sorted(unknown))}= of a reservation is not modelled")
        flags = {word.split("=")[0].upper() for word in re.split(r"[,+]", settings.get("flags", "")) if word}
        if unknown := flags - _SILENT:
            raise ValueError(f"Flags={', '.join(sorted(unknown))} of a reservation is not modelled")
        one = old or Advance(name, start, end, 0)
        one.start, one.end = start, end
        if flags:
            one.maint, one.flex = "MAINT" in flags, "FLEX" in flags
            one.ignore_jobs = "IGNORE_JOBS" in flags
        one.nodes = self._nodes(settings, one) or one.nodes
        if not one.ignore_jobs and verb == "create" and not one.maint:
            busy = [
                job for job in self.slurm.running.values() if job.nodes & one.nodes and job.end > one.start
            ]
            if busy:
                return  # refused: a running job reaches into it
        one.admission = one.admission.changed(settings)
        one.every_node = one.nodes == self.slurm.site.all_nodes
        self.slurm.reservations[name] = one

    def _nodes(self, settings: dict[str, str], one: Advance) -> int:
        text = settings.get("nodes", "")
        within = self.slurm.site.all_nodes
        if part := settings.get("partitionname"):
            within = self.slurm.site.part_index[part].mask
        if text.upper() == "ALL":
            return within
        if text:
            return mask_of(self._node_index(name) for name in node_names(text))
        if count := settings.get("nodecnt"):
            busy = 0
            for job in self.slurm.running.values():
                if job.end > one.start:
                    busy |= job.nodes
            free = [*bits(within & ~busy), *bits(within & busy)]
            return mask_of(free[: int(count)])
        return 0

    def _instant(self, text: str, now: int) -> int:
        if match := re.fullmatch(r"@(-?\d+(?:\.\d+)?)", text):
            return self.epoch + int(float(match[1]))
        if match := re.fullmatch(r"now(?:\+(\d+)(second|minute|hour|day)?s?)?", text):
            unit = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}[match[2] or "second"]
            return now + int(match[1] or 0) * unit
        raise ValueError(f"{text[:40]!r} is no instant that is known here")
