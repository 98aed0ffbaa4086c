"""Jobs of a log as Slurm's schedulers see them, from what they ask of a cluster."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bridge.base.arrays import Flags
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.limits import Limits, Qos
from bridge.cluster.reasons import (
    NEVER_FITS,
    PARTITION_INACTIVE,
    RESERVATION_NOT_ALLOWED,
    Scope,
    reason_of_limit,
)
from bridge.cluster.request_texts import parse_constraints, parse_licenses
from bridge.scheduler.cluster_state import AFTER, AFTER_ANY, AFTER_NOT_OK, AFTER_OK, SINGLETON
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.masks import mask_of
from bridge.scheduler.slurm.request_words import parts_named
from bridge.scheduler.slurm.site import Site, SlurmPart
from bridge.scheduler.state import SECOND
from bridge.workload.requests import MILLI
from bridge.workload.select import Jobs
from bridge.worlds.fast.cluster_arrays import ClusterArrays
from bridge.worlds.fast.cluster_rules import account_of, qos_of, user_of

_KINDS = {AFTER: "after", AFTER_ANY: "afterany", AFTER_OK: "afterok", AFTER_NOT_OK: "afternotok"}
#: Time limits are whole minutes, s.
_MINUTE = 60


def reasons_of_refusals(cluster: Cluster) -> Iterator[str]:
    """Yield what jobs of a cluster may be refused for when they are submitted."""
    yield from (PARTITION_INACTIVE, NEVER_FITS, RESERVATION_NOT_ALLOWED)
    of_qos = ("max_wall", "max_submit_jobs_per_user", "max_submit_jobs_per_account", "grp_submit_jobs")
    of_assoc = ("max_wall", "max_submit_jobs", "grp_submit_jobs")
    scopes: tuple[tuple[Scope, tuple[str, ...], Sequence[Limits]], ...] = (
        ("QOS", of_qos, cluster.qos),
        ("Assoc", of_assoc, (*cluster.accounts, *cluster.users)),
    )
    for scope, names, tables in scopes:
        yield from (reason_of_limit(scope, name) for name in names)
        for table in tables:
            for kind in ("max_tres_per_job", "min_tres_per_job"):
                yield from (reason_of_limit(scope, kind, name) for name in getattr(table, kind))


class LogJobs:
    """Makes the jobs of a log, each when it is submitted.

    Attributes:
        ids: [n] Slurm's ids, in the order of submission; tasks of an array have one.
    """

    def __init__(self, jobs: Jobs, arrays: ClusterArrays, site: Site, epoch: int) -> None:
        self.jobs, self.arrays, self.site, self.epoch = jobs, arrays, site, epoch
        self.requests = arrays.requests
        self.limits = (-(-jobs.request // (_MINUTE * SECOND)) * _MINUTE).tolist()
        self.ids, self.tasks = self._number()
        self._masks: dict[str, int] = {"": 0}
        self._whose: dict[tuple[int, ...], dict[str, Any]] = {}
        requests = self.requests
        names = (requests.partition, requests.user, requests.account, requests.qos)
        self._names = list(zip(*(column.code.tolist() for column in names), strict=True))
        self._amounts = [
            column.tolist() for column in (requests.nodes, requests.tasks, requests.cores, requests.memory)
        ]
        self._is_plain = self._find_plain().tolist()

    def _find_plain(self) -> Flags:
        """Return which jobs ask for nothing but nodes, cores and memory for some time."""
        requests, first = self.requests, self.arrays.conditions.first
        is_plain = (requests.gpus <= 0) & (requests.begin < 0) & (requests.hold_until < 0)
        is_plain &= (requests.array_id < 0) & (requests.array_limit == 0) & (first[1:] == first[:-1])
        for column in (
            *(requests.licenses, requests.reservation, requests.nodelist, requests.exclude),
            requests.constraints,
        ):
            is_empty = np.array([not text for text in (*column.texts, "")], np.bool_)
            is_plain &= is_empty[column.code]  # -1: none
        return is_plain

    def _number(self) -> tuple[list[int], list[int]]:
        ids, tasks = [], []
        arrays: dict[int, list[int]] = {}  # of each its id, and its next task
        for number, array in enumerate(self.requests.array_id.tolist(), start=1):
            if array < 0:
                ids.append(number)
                tasks.append(-1)
                continue
            its = arrays.setdefault(array, [number, 0])
            ids.append(its[0])
            tasks.append(its[1])
            its[1] += 1
        return ids, tasks

    def make(self, j: int) -> SlurmJob:
        """Return job `j`; BridgeError: it asks for what the protocol does not have."""
        requests = self.requests
        job = SlurmJob(
            id=self.ids[j],
            key=j,
            limit=max(self.limits[j], _MINUTE),
            exclusive=bool(requests.exclusive[j] == 1),
            requeue=bool(requests.may_requeue[j]),
            name=requests.job_name.of(j),
            **self._of_user(j),
            **self._size(j),
        )
        if not self._is_plain[j]:
            begin, hold = int(requests.begin[j]), int(requests.hold_until[j])
            fields: dict[str, Any] = {
                "task": self.tasks[j],
                "array_most": int(requests.array_limit[j]),
                "begin": self.epoch - (-begin // SECOND) if begin >= 0 else 0,
                "reservation": requests.reservation.of(j),
                "licenses": parse_licenses(requests.licenses.of(j)),
                "held": hold >= 0 and hold > int(self.jobs.submit[j]),
                "gres": self._gpus(j, *(column[j] for column in self._amounts[:2])),
            }
            job = replace(job, **fields, **self._places(j), **self._conditions(j))
        return job

    def _of_user(self, j: int) -> dict[str, Any]:
        """Return a job's partitions, user, association and QOS."""
        requests, key = self.requests, self._names[j]
        if key not in self._whose:
            site, cluster = self.site, self.arrays.cluster
            parts = self._parts(j)
            user = user_of(cluster, parts[0].name, requests, j)
            account = account_of(requests, j, user) or "root"
            qos = qos_of(cluster, requests, j, user) or "normal"
            site.qos.setdefault(qos, Qos(name=qos))
            name = requests.user.of(j)
            assoc = site.user_of(name, account)
            self._whose[key] = {"user": name, "assoc": assoc, "qos": qos, "parts": parts}
        return self._whose[key]

    def _parts(self, j: int) -> tuple[SlurmPart, ...]:
        names = [text.strip() for text in self.requests.partition.of(j).split(",")]
        stated = [name for name in names if name in self.site.part_index]
        return parts_named(stated, self.site) or (self.site.default_part,)

    def _size(self, j: int) -> dict[str, Any]:
        nodes, tasks, cores, memory = (column[j] for column in self._amounts)
        cores = max(cores, 1)
        fields: dict[str, Any] = {"cpus_per_task": cores}
        if tasks > 0:
            fields |= {"min_nodes": nodes or 1, "max_nodes": nodes or tasks, "tasks": tasks}
            fields["min_cpus"] = max(tasks * cores, nodes)
            if memory >= 0:
                fields["memory_cpu"] = max(-(-memory // cores), 1)
        else:
            fields |= {"min_nodes": nodes, "max_nodes": nodes, "tasks": nodes, "min_cpus": nodes * cores}
            fields["node_cpus"] = cores
            if memory >= 0:
                fields["memory_node"] = max(memory, 1)
        return fields

    def _gpus(self, j: int, nodes: int, tasks: int) -> dict[str, int]:
        amount = int(self.requests.gpus[j])
        if amount <= 0:
            return {}
        if tasks > 0 and nodes > 0 and tasks % nodes == 0:
            amount *= tasks // nodes
        elif tasks > 0:
            raise self._odd(j, "asks for GPUs of each task, and not for nodes with equally many tasks",
                            "State gpus_per_node and nodes.")  # fmt: skip
        if amount % MILLI:
            raise self._odd(j, "asks for a part of a GPU", "Ask for whole ones.")
        kind = self.requests.gpu_type.of(j)
        return {f"gpu:{kind}" if kind else "gpu": amount // MILLI}

    def _odd(self, j: int, what: str, remedy: str) -> BridgeError:
        where = f"{self.jobs.name}, job {self.jobs.id[j]}"
        return BridgeError(f"{what}, which the protocol slurm does not have", where=where, remedy=remedy)

    def _places(self, j: int) -> dict[str, Any]:
        requests = self.requests
        fields: dict[str, Any] = {
            "required": self._mask(requests.nodelist.of(j)),
            "excluded": self._mask(requests.exclude.of(j)),
        }
        if text := requests.constraints.of(j):
            fields |= {"features": tuple(parse_constraints(text)), "one_feature": "[" in text}
        return fields

    def _mask(self, text: str) -> int:
        if text not in self._masks:
            table = self.arrays.classes.table
            names = [table.names[int(n)] for n in table.indices([text])[0]]
            self._masks[text] = mask_of(self.site.index[name] for name in names)
        return self._masks[text]

    def _conditions(self, j: int) -> dict[str, Any]:
        conditions = self.arrays.conditions
        first, last = int(conditions.first[j]), int(conditions.first[j + 1])
        if first == last:
            return {}
        rows = [row for row in conditions.records[first:last] if row.kind != SINGLETON]
        parents = [
            (
                _KINDS[int(row.kind)],
                ((self.ids[row.parent] if row.parent >= 0 else -1, int(row.delay) // (60 * SECOND)),),
            )
            for row in rows
        ]
        return {
            "dependencies": tuple(dict.fromkeys(parents)),
            "any_dependency": bool(conditions.any_is_enough[j]),
            "singleton": bool(conditions.is_singleton[j]),
        }
