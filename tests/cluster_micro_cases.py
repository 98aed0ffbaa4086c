"""Small cases of clusters with answers by hand, one or more for each thing that holds a job back or moves it.

Times are seconds; a case is as `cluster_reference` describes it. Jobs run and ask for 10 s on one node where
nothing else is said. Every scheduler of clusters can be tried on them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Start (None: never) and nodes of each job.
Answers = list[tuple[int | None, list[int]]]
NEVER: tuple[None, list[int]] = (None, [])

ROWS = (
    *("partition", "overlap", "unknown partition", "QOS limit", "account limit", "MaxNodes", "MaxTime"),
    *("feature", "memory", "GPUs", "cores", "licence", "after", "afterok", "afterany", "afternotok"),
    *("singleton", "? and ,", "DOWN node", "array limit", "begin", "hold", "exclusive partition"),
    *("exclusive job", "weight", "mixed"),
)
#: Two nodes of four cores; a job on both, one on one.
TWO_NODES: dict[str, Any] = {
    "nodes": [{"cores": 4}, {"cores": 4}],
    "partitions": {"p": {"nodes": [0, 1], "exclusive": True}},
    "jobs": [
        {"submit": 0, "run": 100, "request": 100, "partitions": ["p"], "nodes": 2},
        {"submit": 10, "run": 30, "request": 30, "partitions": ["p"], "nodes": 1},
    ],
}


@dataclass(frozen=True)
class MicroCase:
    """A case, what each job's start and nodes are, and why jobs wait that never start.

    Attributes:
        row: what it is about, of `ROWS`.
        answers: with EASY.
        answers_none: without backfilling, where they differ.
        reasons: the last reason of jobs, by their place.
    """

    row: str
    case: Mapping[str, Any]
    answers: Answers
    answers_none: Answers | None = None
    reasons: Mapping[int, str] = field(default_factory=dict)

    def without_backfilling(self) -> tuple[dict[str, Any], Answers]:
        return {**self.case, "backfill": "none"}, self.answers_none or self.answers

    def assert_answered(self, *players: Callable[[Mapping[str, Any]], Sequence[tuple[Any, ...]]]) -> None:
        """Assert that all players, of which the first is tried, have the answers, and the same outcomes."""
        for case, answers in ((self.case, self.answers), self.without_backfilling()):
            outcomes, *others = (play(case) for play in players)
            assert [(start, nodes) for _, start, _, nodes in outcomes] == answers
            assert all(outcomes == other for other in others)


def job(submit: int = 0, **fields: Any) -> dict[str, Any]:
    """Return a job of one node and ten seconds, some of its fields changed."""
    if "tasks" not in fields:
        fields.setdefault("nodes", 1)
    fields.setdefault("run", 10)
    return {"submit": submit, "request": fields["run"], **fields}


def whole(n: int, jobs: Sequence[Mapping[str, Any]], **rules: Any) -> dict[str, Any]:
    """Return jobs on n nodes of one partition that gives whole nodes; `limits` are the partition's."""
    partition = {"nodes": list(range(n)), "exclusive": True, **rules.pop("limits", {})}
    return {"nodes": [{"cores": 1}] * n, "partitions": {"work": partition}, "jobs": list(jobs), **rules}


def shared(
    nodes: Sequence[Mapping[str, Any]], jobs: Sequence[Mapping[str, Any]], **rules: Any
) -> dict[str, Any]:
    """Return jobs that share the nodes of one partition."""
    partition = {"nodes": list(range(len(nodes)))}
    return {"nodes": list(nodes), "partitions": {"work": partition}, "jobs": list(jobs), **rules}


#: Three nodes and two partitions that have the middle one in common.
OVERLAP: dict[str, Any] = {
    "nodes": [{"cores": 1}] * 3,
    "partitions": {
        "left": {"nodes": [0, 1], "exclusive": True},
        "right": {"nodes": [1, 2], "exclusive": True},
    },
}


def takes(**vector: Any) -> dict[str, Any]:
    """Return a job that shares its node: memory is none unless it is stated."""
    fields = {
        key: vector.pop(key) for key in ("submit", "run", "nodes", "tasks", "exclusive") if key in vector
    }
    return job(**fields, vector={"memory": 0, **vector})


MICRO_CASES: dict[str, MicroCase] = {
    "four jobs of a partition of two nodes": MicroCase(
        "partition",
        whole(4, [job(partitions=["two"])] * 4, limits={"nodes": [2, 3]})
        | {
            "partitions": {
                "all": {"nodes": [0, 1, 2, 3], "exclusive": True},
                "two": {"nodes": [0, 1], "exclusive": True},
            }
        },
        [(0, [0]), (0, [1]), (10, [0]), (10, [1])],
    ),
    "of several partitions the first that can hold the job": MicroCase(
        "partition",
        {
            "nodes": [{"cores": 1}] * 3,
            "partitions": {
                "one": {"nodes": [0], "exclusive": True},
                "two": {"nodes": [1, 2], "exclusive": True},
            },
            "jobs": [
                job(partitions=["one", "two"], nodes=2),
                job(partitions=["one", "two"]),
                job(partitions=["one", "two"]),
            ],
        },
        [(0, [1, 2]), (0, [0]), (10, [0])],
    ),
    # job 1 waits for node 1 until 10; job 2 is over by then; job 3 has node 0, which job 1 cannot use
    "two partitions with a common node, a head each": MicroCase(
        "overlap",
        {
            **OVERLAP,
            "jobs": [
                job(0, partitions=["left"], nodes=2),
                job(1, partitions=["right"], nodes=2),
                job(2, partitions=["right"], run=8),
                job(3, partitions=["left"], run=5),
            ],
        },
        [(0, [0, 1]), (10, [1, 2]), (2, [2]), (10, [0])],
        [(0, [0, 1]), (10, [1, 2]), (20, [1]), (10, [0])],
    ),
    # without backfilling the blocked job 1 strikes the node that both have; job 3's own node 2 is free
    "a blocked job strikes the nodes of its partition": MicroCase(
        "overlap",
        {
            **OVERLAP,
            "jobs": [
                job(0, partitions=["left"]),
                job(1, partitions=["left"], nodes=2),
                job(2, partitions=["right"], run=5),
                job(3, partitions=["right"], run=5),
            ],
        },
        [(0, [0]), (10, [0, 1]), (2, [1]), (3, [2])],
        [(0, [0]), (10, [0, 1]), (2, [2]), (7, [2])],
    ),
    "a partition that there is not: the default one": MicroCase(
        "unknown partition",
        {
            "nodes": [{"cores": 1}] * 3,
            "partitions": {
                "other": {"nodes": [2], "exclusive": True},
                "usual": {"nodes": [0, 1], "exclusive": True, "default": True},
            },
            "jobs": [job(partitions=["gone"], nodes=2), job(), job(partitions=["gone", "other"])],
        },
        [(0, [0, 1]), (10, [0]), (0, [2])],
    ),
    "one job of each user at a time": MicroCase(
        "QOS limit",
        whole(
            3,
            [
                job(user="ann", qos="limited"),
                job(user="ann", qos="limited"),
                job(user="bob", qos="limited"),
                job(user="ann", qos="free"),
            ],
            qos={"limited": {"max_jobs": 1}, "free": {}},
        ),
        [(0, [0]), (10, [0]), (0, [1]), (0, [2])],
    ),
    "a partition's QOS comes before the job's": MicroCase(
        "QOS limit",
        whole(
            4,
            [job(nodes=2, qos="tight")] * 3,
            limits={"qos": "wide"},
            qos={"tight": {"grp_tres": {"node": 2}}, "wide": {"grp_tres": {"node": 4}}},
        ),
        [(0, [0, 1]), (0, [2, 3]), (10, [0, 1])],
    ),
    "a wall time beyond the QOS' is never started": MicroCase(
        "QOS limit",
        whole(1, [job(run=20, qos="short"), job(qos="short")], qos={"short": {"max_wall": 10}}),
        [NEVER, (0, [0])],
        reasons={0: "QOSMaxWallDurationPerJobLimit"},
    ),
    "nodes of an account": MicroCase(
        "account limit",
        whole(
            3,
            [job(account="physics", nodes=2), job(account="physics"), job(account="biology")],
            accounts={
                "root": {},
                "physics": {"parent": "root", "grp_tres": {"node": 2}},
                "biology": {"parent": "root"},
            },
        ),
        [(0, [0, 1]), (10, [0]), (0, [2])],
    ),
    "an account's limit holds those below it": MicroCase(
        "account limit",
        whole(
            2,
            [job(account="laser"), job(account="physics"), job(account="laser")],
            accounts={
                "root": {},
                "physics": {"parent": "root", "grp_jobs": 1},
                "laser": {"parent": "physics"},
            },
        ),
        [(0, [0]), (10, [0]), (20, [0])],
    ),
    "one job of a user in an account": MicroCase(
        "account limit",
        whole(
            3,
            [
                job(user=user, account=account)
                for user, account in (("ann", "a"), ("ann", "a"), ("ann", "b"), ("bob", "a"))
            ],
            accounts={
                "root": {},
                "a": {"parent": "root", "users": {"ann": {"max_jobs": 1}}},
                "b": {"parent": "root"},
            },
        ),
        [(0, [0]), (10, [0]), (0, [1]), (0, [2])],
    ),
    "more nodes than the partition's MaxNodes": MicroCase(
        "MaxNodes",
        whole(3, [job(nodes=3), job(nodes=2)], limits={"max_nodes": 2}),
        [NEVER, (0, [0, 1])],
        reasons={0: "PartitionNodeLimit"},
    ),
    "longer than the partition's MaxTime": MicroCase(
        "MaxTime",
        whole(2, [job(run=10, nodes=2, request=21), job(run=10, request=20)], limits={"max_time": 20}),
        [NEVER, (0, [0])],
        reasons={0: "PartitionTimeLimit"},
    ),
    "no requested time: the partition's default, at which the job is killed": MicroCase(
        "MaxTime",
        whole(1, [{"submit": 0, "run": 50, "nodes": 1}, job()], limits={"default_time": 30, "max_time": 90}),
        [(0, [0]), (30, [0])],
    ),
    "features that only some nodes have": MicroCase(
        "feature",
        whole(
            3,
            [
                job(features="fast"),
                job(features="fast&big"),
                job(features="fast"),
                job(),
                job(features="none|big"),
            ],
        )
        | {
            "nodes": [
                {"cores": 1},
                {"cores": 1, "features": ["fast"]},
                {"cores": 1, "features": ["big", "fast"]},
            ]
        },
        [(0, [1]), (0, [2]), (10, [1]), (0, [0]), (10, [2])],
        [(0, [1]), (0, [2]), (10, [1]), (10, [0]), (10, [2])],
    ),
    "nodes that a job must have, and must not have": MicroCase(
        "feature",
        whole(3, [job(nodelist=[2]), job(exclude=[0]), job(exclude=[0, 1]), job()]),
        [(0, [2]), (0, [1]), (10, [2]), (0, [0])],
        [(0, [2]), (0, [1]), (10, [2]), (10, [0])],
    ),
    "two jobs of 700 GB and a node of 1 TB": MicroCase(
        "memory",
        shared(
            [{"cores": 64, "memory": 1_000_000}, {"cores": 64, "memory": 500_000}],
            [takes(memory=700_000), takes(memory=700_000), takes(memory=300_000)],
        ),
        [(0, [0]), (10, [0]), (0, [0])],
        [(0, [0]), (10, [0]), (10, [0])],
    ),
    "no memory stated: all that the node has, or the partition's default": MicroCase(
        "memory",
        shared([{"cores": 4, "memory": 8}] * 2, [job(vector={"cores": 1})] * 3)
        | {
            "partitions": {"all": {"nodes": [0]}, "part": {"nodes": [1], "default_memory_per_core": 4}},
            "jobs": [
                *[job(vector={"cores": 1}, partitions=["all"])] * 2,
                *[job(vector={"cores": 1}, partitions=["part"])] * 3,
            ],
        },
        [(0, [0]), (10, [0]), (0, [1]), (0, [1]), (10, [1])],
    ),
    "three, three and two GPUs on two nodes of four": MicroCase(
        "GPUs",
        shared([{"cores": 8, "gpus": {"a100": 4}}] * 2, [takes(gpus={"any": n}) for n in (3, 3, 2)]),
        [(0, [0]), (0, [1]), (10, [0])],
    ),
    "GPUs of a type, and of any": MicroCase(
        "GPUs",
        shared(
            [{"cores": 8}, {"cores": 8, "gpus": {"a100": 1}}, {"cores": 8, "gpus": {"v100": 2}}],
            [takes(gpus={kind: 1}) for kind in ("v100", "any", "a100", "any", "v100")],
        ),
        # job 1 has the only a100, so job 2 waits, and job 4 for job 3's v100
        [(0, [2]), (0, [1]), (10, [1]), (0, [2]), (10, [2])],
        [(0, [2]), (0, [1]), (10, [1]), (10, [2]), (10, [2])],
    ),
    "cores of each node": MicroCase(
        "cores",
        shared([{"cores": 4}] * 2, [takes(cores=3), takes(cores=2, nodes=2), takes(cores=2)]),
        [(0, [0]), (10, [0, 1]), (0, [1])],
        [(0, [0]), (10, [0, 1]), (10, [0])],
    ),
    "tasks go where they fit": MicroCase(
        "cores",
        shared([{"cores": 4}] * 2, [takes(tasks=6), takes(cores=2), takes(cores=1, tasks=2, nodes=2)]),
        # six tasks are 4 + 2; two more cores are left on node 1; two tasks on two nodes wait for both
        [(0, [0, 1]), (0, [1]), (10, [0, 1])],
    ),
    "a licence that another job has": MicroCase(
        "licence",
        whole(3, [job(licences={"matlab": 1}), job(licences={"matlab": 1}), job()], licences={"matlab": 1}),
        [(0, [0]), (10, [0]), (0, [1])],
    ),
    "after the start of another": MicroCase(
        "after",
        whole(2, [job(), job(run=30), job(depends="after:1"), job(depends="after:0+1")]),
        [(0, [0]), (0, [1]), (10, [0]), (60, [0])],
    ),
    "a child that can start when its parent does": MicroCase(
        "after",
        whole(3, [job(depends="after:1"), job(5)]),
        [(5, [1]), (5, [0])],
    ),
    "after a good end": MicroCase(
        "afterok",
        whole(
            4,
            [
                job(),
                job(fails=True),
                {**job(run=20), "request": 10},
                *[job(depends=f"afterok:{parent}") for parent in (0, 1, 2)],
            ],
        ),
        [(0, [0]), (0, [1]), (0, [2]), (10, [0]), NEVER, NEVER],
        reasons={4: "DependencyNeverSatisfied", 5: "DependencyNeverSatisfied"},
    ),
    "after all tasks of an array": MicroCase(
        "afterok",
        whole(
            3,
            [job(array="x"), job(array="x", run=20), job(depends="afterok:x"), job(7, depends="afterok:99")],
        ),
        [(0, [0]), (0, [1]), (20, [0]), (7, [2])],
    ),
    # the child is eligible from 10 on; its place in the queue is by its submission, before job 2
    "after any end": MicroCase(
        "afterany",
        whole(2, [job(fails=True), job(depends="afterany:0"), job(2, run=8, nodes=2)]),
        [(0, [0]), (10, [0]), (20, [0, 1])],
    ),
    "after a bad end": MicroCase(
        "afternotok",
        whole(2, [job(), job(fails=True), job(depends="afternotok:0"), job(depends="afternotok:1")]),
        [(0, [0]), (0, [1]), NEVER, (10, [0])],
        reasons={2: "DependencyNeverSatisfied"},
    ),
    "one of a name at a time": MicroCase(
        "singleton",
        whole(
            4,
            [
                job(user="ann", name="sim"),
                job(user="ann", name="sim", depends="singleton"),
                job(user="ann", name="sim", depends="singleton"),
                job(user="bob", name="sim", depends="singleton"),
                job(user="ann", name="post", depends="singleton"),
            ],
        ),
        [(0, [0]), (10, [0]), (20, [0]), (0, [1]), (0, [2])],
    ),
    "all of two, and one of two": MicroCase(
        "? and ,",
        whole(
            4,
            [
                job(),
                job(run=20, fails=True),
                job(depends="afterok:0,afterany:1"),
                job(depends="afterok:0?afterany:1"),
                job(depends="afterok:1?afternotok:0"),
            ],
        ),
        [(0, [0]), (0, [1]), (20, [0]), (10, [0]), NEVER],
        reasons={4: "DependencyNeverSatisfied"},
    ),
    # job 1 needs the node that is down: it is head, never has a time, and holds nobody back
    "a node is down": MicroCase(
        "DOWN node",
        whole(3, [job(nodes=2), job(nodes=3), job()])
        | {"nodes": [{"cores": 1, "state": "down"}, *[{"cores": 1}] * 2]},
        [(0, [1, 2]), NEVER, (10, [1])],
        [(0, [1, 2]), NEVER, NEVER],
        reasons={1: "Resources"},
    ),
    "tasks of an array": MicroCase(
        "array limit",
        whole(3, [*[job(array="x", array_limit=1)] * 3, job()]),
        [(0, [0]), (10, [0]), (20, [0]), (0, [1])],
    ),
    "a begin time": MicroCase(
        "begin",
        whole(1, [job(begin=50), job(run=20), job(30, run=25)]),
        [(55, [0]), (0, [0]), (30, [0])],
    ),
    "a hold that ends, and one that does not": MicroCase(
        "hold",
        whole(2, [job(hold=True), job(hold_until=30), job()]),
        [NEVER, (30, [0]), (0, [0])],
        reasons={0: "JobHeldUser"},
    ),
    "one core of a whole node": MicroCase(
        "exclusive partition",
        whole(2, [job(vector={"cores": 1})] * 3) | {"nodes": [{"cores": 4}] * 2},
        [(0, [0]), (0, [1]), (10, [0])],
    ),
    "a node that is shared by one partition, and whole in another": MicroCase(
        "exclusive partition",
        {
            "nodes": [{"cores": 4}] * 2,
            "partitions": {"some": {"nodes": [0, 1]}, "whole": {"nodes": [0, 1], "exclusive": True}},
            "jobs": [
                job(partitions=["some"], vector={"cores": 1, "memory": 0}),
                job(partitions=["whole"], vector={"cores": 1}),
                job(partitions=["some"], vector={"cores": 3, "memory": 0}, run=20),
                job(partitions=["whole"], vector={"cores": 1}),
            ],
        },
        [(0, [0]), (0, [1]), (0, [0]), (10, [1])],
    ),
    "a job that wants to be alone": MicroCase(
        "exclusive job",
        shared(
            [{"cores": 4}] * 2,
            [
                takes(cores=1),
                takes(cores=1, exclusive=True),
                takes(cores=1, run=20),
                takes(cores=1, exclusive=True),
            ],
        ),
        [(0, [0]), (0, [1]), (0, [0]), (10, [1])],
    ),
    "light nodes first": MicroCase(
        "weight",
        whole(3, [job(), job(1, nodes=2), job(11)])
        | {"nodes": [{"cores": 1, "weight": w} for w in (3, 1, 2)]},
        [(0, [1]), (1, [0, 2]), (11, [1])],
    ),
    "the first that fits": MicroCase(
        "weight",
        shared(
            [{"cores": c, "weight": w} for c, w in ((4, 3), (2, 1))], [takes(cores=2)] * 3, select="first_fit"
        ),
        [(0, [0]), (0, [0]), (0, [1])],
    ),
    "the tightest": MicroCase(
        "weight",
        shared(
            [{"cores": c} for c in (8, 3, 4)],
            [takes(cores=2), takes(cores=4), takes(cores=1)],
            select="best_fit",
        ),
        [(0, [1]), (0, [2]), (0, [1])],
    ),
    "the least loaded": MicroCase(
        "weight",
        shared([{"cores": c} for c in (4, 6, 5)], [takes(cores=2)] * 4, select="least_loaded"),
        [(0, [1]), (0, [2]), (0, [0]), (0, [1])],
    ),
    "nodes of many cores, and of much memory": MicroCase(
        "mixed",
        shared(
            [{"cores": 4, "memory": 8}, {"cores": 8, "memory": 4}],
            [
                takes(cores=6, memory=1),
                takes(cores=1, memory=6),
                takes(cores=2, memory=3),
                takes(cores=3, memory=2, run=5),
            ],
        ),
        [(0, [1]), (0, [0]), (0, [1]), (0, [0])],
    ),
    "equal jobs on unequal nodes": MicroCase(
        "mixed",
        shared(
            [{"cores": 4, "memory": 2}, {"cores": 8, "memory": 8}],
            [takes(tasks=4, cores=2, memory=2), takes(tasks=1, cores=2, memory=1)],
        ),
        # one task on node 0 (memory), three on node 1; the last job has two cores and memory left on node 1
        [(0, [0, 1]), (0, [1])],
    ),
}

#: Jobs that no node can ever hold, and the word for what there is too little of.
REFUSED: dict[str, tuple[Mapping[str, Any], str]] = {
    "more cores than a node has": (shared([{"cores": 4}], [takes(cores=5)]), "cores"),
    "more memory than a node has": (shared([{"cores": 4, "memory": 8}], [takes(memory=9)]), "memory"),
    "more GPUs than a node has": (
        shared([{"cores": 4, "gpus": {"a100": 2}}], [takes(gpus={"any": 3})]),
        "gpus",
    ),
    "more nodes than the partition has": (
        whole(3, [job(nodes=3)], limits={"nodes": [0, 1]}),
        "nodes",
    ),
    "cores of one node and memory of another": (
        shared([{"cores": 8, "memory": 4}, {"cores": 4, "memory": 8}], [takes(cores=8, memory=8)]),
        "node",
    ),
    "a feature that no node has": (whole(2, [job(features="fast")]), "node"),
}
