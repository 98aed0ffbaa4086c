"""The rules of `standard` on a cluster in plain Python, sentence by sentence; slow on purpose."""

import copy
import math

FOREVER = math.inf

#: Scores of the named orders; the highest goes first. `w` is the wait since the job became eligible.
ORDERS = {
    "fcfs": lambda job, _: -job["submit"],
    "lcfs": lambda job, _: job["submit"],
    "sjf": lambda job, _: -job["estimate"],
    "ljf": lambda job, _: job["estimate"],
    "w/t": lambda job, w: w / job["estimate"],
}

TRES = ("cpu", "node", "mem", "gpu")
TRES_WORDS = {"cpu": "Cpu", "node": "Node", "mem": "Mem", "gpu": "GRES"}
COUNT_REASONS = {
    ("qos", "max_wall"): "QOSMaxWallDurationPerJobLimit",
    ("qos", "max_jobs"): "QOSMaxJobsPerUserLimit",
    ("qos", "max_jobs_per_account"): "MaxJobsPerAccount",
    ("qos", "grp_jobs"): "QOSGrpJobsLimit",
    ("qos", "max_submit"): "QOSMaxSubmitJobPerUserLimit",
    ("qos", "max_submit_per_account"): "MaxSubmitJobsPerAccount",
    ("qos", "grp_submit"): "QOSGrpSubmitJobsLimit",
    ("assoc", "max_wall"): "AssocMaxWallDurationPerJobLimit",
    ("assoc", "max_jobs"): "AssocMaxJobsLimit",
    ("assoc", "grp_jobs"): "AssocGrpJobsLimit",
    ("assoc", "max_submit"): "AssocMaxSubmitJobLimit",
    ("assoc", "grp_submit"): "AssocGrpSubmitJobsLimit",
}
#: %s is Cpu, Node, Mem or GRES; what is irregular stands in IRREGULAR.
TRES_REASONS = {
    ("qos", "min_tres_per_job"): "QOSMin%s",
    ("qos", "max_tres_per_job"): "QOSMax%sPerJobLimit",
    ("qos", "max_tres"): "QOSMax%sPerUserLimit",
    ("qos", "max_tres_per_account"): "Max%sPerAccount",
    ("qos", "grp_tres"): "QOSGrp%sLimit",
    ("qos", "grp_tres_mins"): "QOSGrp%sMinutes",
    ("assoc", "min_tres_per_job"): "AssocMin%s",
    ("assoc", "max_tres_per_job"): "AssocMax%sPerJobLimit",
    ("assoc", "grp_tres"): "AssocGrp%sLimit",
    ("assoc", "grp_tres_mins"): "AssocGrp%sMinutes",
}
IRREGULAR = {
    "QOSMaxMemPerJobLimit": "QOSMaxMemoryPerJob",
    "QOSMaxGRESPerJobLimit": "QOSMaxGRESPerJob",
    "QOSMaxMemPerUserLimit": "QOSMaxMemoryPerUser",
    "QOSMaxGRESPerUserLimit": "QOSMaxGRESPerUser",
    "QOSGrpGRESLimit": "QOSGrpGRES",
    "AssocMaxMemPerJobLimit": "AssocMaxMemPerJob",
    "AssocMaxGRESPerJobLimit": "AssocMaxGRESPerJob",
    "AssocGrpGRESLimit": "AssocGrpGRES",
    "MaxMemPerAccount": "MaxMemoryPerAccount",
    "QOSGrpCpuMinutes": "QOSGrpCPUMinutesLimit",
    "AssocGrpCpuMinutes": "AssocGrpCPUMinutesLimit",
    "QOSMinCpu": "QOSMinCpuNotSatisfied",
    "QOSMinNode": "QOSMinNodeNotSatisfied",
    "QOSMinMem": "QOSMinMemory",
    "AssocMinCpu": "AssocMinCpuNotSatisfied",
    "AssocMinNode": "AssocMinNodeNotSatisfied",
    "AssocMinMem": "AssocMinMemory",
}
#: In the order of the tests: when a job is looked at, and when it is submitted.
KINDS = (
    "max_wall", "max_jobs", "max_jobs_per_account", "grp_jobs", "min_tres_per_job", "max_tres_per_job",
    "max_tres", "max_tres_per_account", "grp_tres", "grp_tres_mins",
)  # fmt: skip
#: Those that deny a job which is over them by itself, by a QOS with deny_on_limit.
DENY_KINDS = (
    "max_wall", "min_tres_per_job", "max_tres_per_job", "max_tres", "max_tres_per_account", "grp_tres",
)  # fmt: skip
SUBMIT_KINDS = ("max_submit", "max_submit_per_account", "grp_submit")


def simulate(case):
    """Play a case; return its lives in order of their start, what became of each job, and all reasons."""
    return Simulation(case).play()


# ---- amounts: {cores, memory, gpu, gpu:TYPE} of a node, {nodes} of a class whose free nodes are counted ----
def with_gpus(amounts, by_type):
    """Add GPUs: those of each type, and all together, from which a job takes that does not mind the type."""
    for kind, count in by_type.items():
        amounts["gpu"] = amounts.get("gpu", 0) + count
        if kind != "any":
            amounts["gpu:" + kind] = count
    return amounts


def node_amounts(node):
    amounts = {"cores": node["cores"]}
    if "memory" in node:
        amounts["memory"] = node["memory"]
    return with_gpus(amounts, node.get("gpus", {}))


def times(vector, room, capacity):
    """Return how many vectors the room of a node holds; memory that the node does not count is no bound."""
    most = 1 << 40
    for name, amount in vector.items():
        if name == "memory" and "memory" not in capacity:
            continue
        if amount == "all":
            most = most if room["memory"] == capacity["memory"] else 0
        elif amount > 0:
            most = min(most, room.get(name, 0) // amount)
    return max(0, most)


def taken_by(vector, count, capacity):
    """Return what so many vectors take of a node."""
    amounts = {name: amount * count for name, amount in vector.items() if amount != "all"}
    if vector.get("memory") == "all":
        amounts["memory"] = capacity.get("memory", 0)
    return amounts


def add(left, right, sign=1):
    return {name: left.get(name, 0) + sign * right.get(name, 0) for name in {**left, **right}}


def scaled(amounts, factor):
    return {name: amount * factor for name, amount in amounts.items()}


def change(have, takes, sign):
    """Add or subtract what is taken of each class, of the amounts that it counts."""
    return {
        c: {name: amount + sign * takes.get(c, {}).get(name, 0) for name, amount in amounts.items()}
        for c, amounts in have.items()
    }


def merge(target, values):
    for key, value in values.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = value


def parse_dependency(text):
    """Return (all or any, parts); a part is (kind, parent or None, minutes)."""
    mode = any if "?" in text else all
    parts = []
    for item in text.replace("?", ",").split(","):
        kind, *parents = item.split(":")
        if kind == "singleton":
            parts.append((kind, None, 0))
        for parent in parents:
            name, _, minutes = parent.partition("+")
            parts.append((kind, name, int(minutes or 0)))
    return mode, parts


class Simulation:
    """A cluster, its jobs, and the present instant."""

    def __init__(self, case):
        case = {**copy.deepcopy(case), **{k: [copy.deepcopy(x) for x in case[k]] for k in ("nodes", "jobs")}}
        self.order = ORDERS[case.get("order", "fcfs")]
        self.candidate_order = ORDERS[case["candidate_order"]] if case.get("candidate_order") else None
        self.backfill = case.get("backfill", "easy")
        self.guard = case.get("guard", True)
        self.packing = case.get("select", "weight")
        self.requeue_delay = case.get("requeue_delay", 0)
        self.now = 0
        self.nodes = case["nodes"]
        for node in self.nodes:
            node["amounts"] = node_amounts(node)
            node.setdefault("state", "up")
        self.partitions = case["partitions"]
        self.qos = case.get("qos", {})
        self.accounts = case.get("accounts", {})
        self.kills_invalid = case.get("kill_invalid_dependency", False)
        self.licences = case.get("licences", {})
        self.calendar = case.get("calendar", [])
        self.reservations = {e["reservation"]: e for e in self.calendar if "reservation" in e}
        self.rules = {"partitions": self.partitions, "qos": self.qos, "accounts": self.accounts,
                      "licences": self.licences}  # fmt: skip
        self.jobs = case["jobs"]
        self.memo, self.ever_admissible = {}, {}
        self.heads = []
        self.struck = set()
        self.lives = []
        self.reasons = {}
        self.events = sorted(self.calendar_events(), key=lambda event: event[0])  # stable: file order
        self.firsts = set()  # preemptors whose victims have all gone: the next pass takes them first
        for number, job in enumerate(self.jobs):
            job["number"] = number
            job["stated"] = dict(job.get("vector", {}))
            job["state"] = "future"
            job["episode"] = 0
            job["eligible"] = job["first_eligible"] = job["first_start"] = job["end"] = None
            job["requeue_until"] = 0
            job["held"] = job.get("hold", False)
        self.classes = self.make_classes()
        for job in self.jobs:
            self.load(job)

    # ---- §2 nodes and demands ---------------------------------------------------------------------------
    def make_classes(self):
        lists = [job[key] for job in self.jobs for key in ("nodelist", "exclude") if job.get(key)]
        groups = {}
        for i, node in enumerate(self.nodes):
            reached = [name for name, p in self.partitions.items() if i in p["nodes"]]
            alone = any(not self.partitions[name].get("exclusive") for name in reached)
            key = (i,) if alone else (
                sorted(node["amounts"].items()), sorted(node.get("features", [])), node.get("weight", 1),
                reached, [name for name, r in self.reservations.items() if i in r["nodes"]],
                [i in named for named in lists],
            )  # fmt: skip
            groups.setdefault((not alone, repr(key)), []).append(i)
        return [
            {"nodes": members, "counted": counted, "capacity": self.nodes[members[0]]["amounts"]}
            for (counted, _), members in groups.items()
        ]

    def admissible_nodes(self, job, partition, t=None):
        """Return the nodes that the job may use from t on; without t, those that it could ever use."""
        key = (job["number"], partition)
        if key not in self.ever_admissible:
            self.ever_admissible[key] = {
                i for i in self.partitions[partition]["nodes"] if self.may_use(job, i)
            }
        nodes = self.ever_admissible[key]
        if t is None or not self.reservations:
            return nodes
        return {i for i in nodes if not any(self.bars(r, job, i, t) for r in self.reservations.values())}

    def may_use(self, job, i):
        """Tell whether features, node lists and the job's own reservation admit a node."""
        features = set(self.nodes[i].get("features", []))
        wanted = job.get("features", "")
        if wanted and not any(set(part.split("&")) <= features for part in wanted.split("|")):
            return False
        if job.get("nodelist") and i not in job["nodelist"]:
            return False
        if i in job.get("exclude", []):
            return False
        own = job.get("reservation")
        return not own or i in self.reservations[own]["nodes"]

    def bars(self, reservation, job, node, t):
        """Tell whether a reservation keeps the job from the node at [t, t + estimate)."""
        if reservation["reservation"] == job.get("reservation"):
            return not reservation["begin"] <= t < reservation["end"]
        meets = t < reservation["end"] and reservation["begin"] < t + job["estimate"]
        return node in reservation["nodes"] and reservation.get("announced", 0) <= self.now and meets

    def admissible(self, job, t):
        nodes = self.admissible_nodes(job, job["partition"], t) - self.struck
        found = [c for c, group in enumerate(self.classes) if group["nodes"][0] in nodes]
        for c in found:  # no job can tell the nodes of a class apart
            assert set(self.classes[c]["nodes"]) <= nodes
        return found

    def is_exclusive(self, job, partition=None):
        return job.get("exclusive", False) or self.partitions[partition or job["partition"]].get(
            "exclusive", False
        )

    # ---- load -------------------------------------------------------------------------------------------
    def load(self, job):
        names = [name for name in job.get("partitions", []) if name in self.partitions]
        if not names:
            names = [n for n, p in self.partitions.items() if p.get("default")] or list(self.partitions)
            names = names[:1]
        job["request_given"] = job.get("request")
        holds = [name for name in names if self.request_in(job, name)]
        admits = [name for name in holds if self.partition_admits(job, name)]
        if not holds:
            job["state"] = "refused"
            return
        job["partition"] = (admits or holds)[0]
        job["vector"] = self.vector(job, job["partition"])
        job["request"] = self.request_time(job, job["partition"])
        job.setdefault("estimate", job["request"])
        job["tres"] = self.request_in(job, job["partition"])

    def request_time(self, job, name):
        partition = self.partitions[name]
        return (
            job["request_given"] or partition.get("default_time") or partition.get("max_time") or job["run"]
        )

    def vector(self, job, name):
        """Return the amounts of a node or task of the job in a partition; memory "all": what a node has."""
        partition = self.partitions[name]
        vector = {"cores": job["stated"].get("cores", 1)}
        if "memory" in job["stated"]:
            vector["memory"] = job["stated"]["memory"]
        elif self.is_exclusive(job, name):
            vector["memory"] = 0
        elif "default_memory_per_core" in partition:
            vector["memory"] = partition["default_memory_per_core"] * vector["cores"]
        elif "default_memory_per_node" in partition:
            vector["memory"] = partition["default_memory_per_node"]
        else:
            vector["memory"] = "all"
        return with_gpus(vector, job["stated"].get("gpus", {}))

    def request_in(self, job, name):
        """Return what the job takes of the empty cluster (cpu, node, mem, gpu); None if it never fits."""
        job["vector"] = self.vector(job, name)
        nodes = self.admissible_nodes(job, name)
        have = {}
        for c, group in enumerate(self.classes):
            if group["nodes"][0] in nodes:
                have[c] = {"nodes": len(group["nodes"])} if group["counted"] else dict(group["capacity"])
        takes = self.select(job, have, name)
        if takes is None:
            return None
        total = {"node": 0, "cpu": 0, "mem": 0, "gpu": 0}
        for c, amounts in takes.items():
            group = self.classes[c]
            count = amounts["nodes"] if group["counted"] else 1
            taken = scaled(group["capacity"], count) if group["counted"] else amounts
            total["node"] += count
            total["cpu"] += taken["cores"]
            total["mem"] += taken.get("memory", 0)
            total["gpu"] += taken.get("gpu", 0)
        return total

    def partition_admits(self, job, name):
        return (
            self.barred(job, name, self.request_time(job, name), self.request_in(job, name)["node"]) is None
        )

    def barred(self, job, name, request, nodes):
        """Return the reason for which the partition's lists and limits do not admit a job, or None."""
        partition = self.partitions[name]
        qos = self.qos.get(job.get("qos"), {})
        accounts = {job.get("account"), *self.ancestors(job.get("account"))}
        if partition.get("allow_qos") and job.get("qos") not in partition["allow_qos"]:
            return "QOSNotAllowed"
        if job.get("qos") in partition.get("deny_qos", []):
            return "QOSNotAllowed"
        if partition.get("allow_accounts") and not accounts & set(partition["allow_accounts"]):
            return "AccountNotAllowed"
        if accounts & set(partition.get("deny_accounts", [])):
            return "AccountNotAllowed"
        if request > partition.get("max_time", FOREVER) and not qos.get("partition_time_limit"):
            return "PartitionTimeLimit"
        if nodes > partition.get("max_nodes", FOREVER) and not qos.get("partition_max_nodes"):
            return "PartitionNodeLimit"
        if nodes < partition.get("min_nodes", 0) and not qos.get("partition_min_nodes"):
            return "PartitionNodeLimit"
        return None

    # ---- §1 one instant ---------------------------------------------------------------------------------
    def play(self):
        while True:
            event = self.next_event()
            instant = min([event, *self.next_cancellations()])
            if instant == FOREVER:
                return self.result()
            happens, self.now = event == instant, instant
            self.touch()
            for job in sorted(self.running(), key=lambda job: job["serial"]):
                if self.actual_end(job) == self.now:
                    self.finish(job)
            for job in sorted(self.running(), key=lambda job: job["serial"]):
                if job.get("grace_end") == self.now:
                    self.remove_victim(job)
            while self.events and self.events[0][0] == self.now:
                self.apply_calendar(self.events.pop(0)[1])
            for job in sorted(self.jobs, key=lambda job: job["submit"]):
                if job["state"] == "future" and job["submit"] == self.now:
                    refusal = self.refusal(job)
                    self.become(job, "refused" if refusal else "waiting")
                    if refusal:
                        self.note(job, refusal)
            self.end_limited()
            if self.kills_invalid:
                self.cancel_never_satisfied()
            for job in self.jobs:
                if (
                    job["state"] == "waiting"
                    and job["eligible"] is None
                    and self.becomes_eligible(job) == self.now
                ):
                    job["eligible"] = self.now
                    if job["first_eligible"] is None:
                        job["first_eligible"] = self.now
                    happens = True
            if happens:
                self.scheduling_pass()

    def end_limited(self):
        """Stop lives that have a limit; without rules of action none has."""

    def next_cancellations(self):
        """Return when jobs whose dependency is never satisfied would begin, and are cancelled instead."""
        if not self.kills_invalid:
            return []
        return [
            self.may_begin(job)
            for job in self.jobs
            if job["state"] == "waiting" and job["eligible"] is None and not job["held"]
            and self.now < self.may_begin(job) and self.never_satisfied(job)
        ]  # fmt: skip

    def next_event(self):
        times = [self.actual_end(job) for job in self.running()]
        times += [job["grace_end"] for job in self.running() if job.get("grace_end") is not None]
        times += [event[0] for event in self.events[:1]]
        times += [job["submit"] for job in self.jobs if job["state"] == "future"]
        times += [
            self.becomes_eligible(job)
            for job in self.jobs
            if job["state"] == "waiting" and job["eligible"] is None
        ]
        if self.firsts:
            times.append(self.now)
        return min(times, default=FOREVER)

    def refusal(self, job):
        """Return the reason for which the job is refused when submitted, or None."""
        if self.partitions[job["partition"]].get("state", "up") in ("drain", "inactive"):
            return "PartitionInactive"
        if not self.may_name_reservation(job):
            return "ReservationNotAllowed"
        there = [other for other in self.jobs if other["state"] in ("waiting", "running", "suspended")]
        over = self.limit(job, there, SUBMIT_KINDS)
        denying = {name: limits for name, limits in self.qos.items() if limits.get("deny_on_limit")}
        return over or (self.limit(job, [], DENY_KINDS, only_qos=denying) if denying else None)

    def may_name_reservation(self, job):
        """Tell whether the job's reservation is for its user, and for its account or one above it."""
        if not job.get("reservation"):
            return True
        reservation = self.reservations[job["reservation"]]
        users, accounts = reservation.get("users"), reservation.get("accounts")
        own = {job.get("account"), *self.ancestors(job.get("account"))}
        return (not users or job.get("user") in users) and (not accounts or bool(own & set(accounts)))

    def cancel_never_satisfied(self):
        again = True
        while again:
            again = False
            for job in self.jobs:
                stands = job["state"] == "waiting" and job["eligible"] is None and not job["held"]
                if stands and self.now >= self.may_begin(job) and self.never_satisfied(job):
                    self.become(job, "ended", end=self.now, outcome="CANCELLED")
                    again = True

    def touch(self):
        """Forget what was computed: time went on, or a job or a node changed."""
        self.memo = {}

    def become(self, job, state, **values):
        job.update(state=state, **values)
        self.touch()

    def in_state(self, state):
        if state not in self.memo:
            self.memo[state] = [job for job in self.jobs if job["state"] == state]
        return self.memo[state]

    def running(self):
        return self.in_state("running")

    def suspended(self):
        return self.in_state("suspended")

    def actual_end(self, job):
        return job["start"] + min(job["run"], job["request"]) + job["stood"]

    def calendar_events(self):
        for entry in self.calendar:
            if "reservation" in entry:
                moments = {entry.get("announced", 0), entry["begin"], entry["end"]}
                for time in sorted(moments):
                    if time > 0:
                        yield time, entry
            else:
                yield entry["time"], entry

    def apply_calendar(self, entry):
        if "set" in entry:
            merge(self.rules, entry["set"])
        elif "state" in entry:
            for i in entry["nodes"]:
                self.nodes[i]["state"] = entry["state"]
                self.touch()
            if entry["state"] == "down":
                for job in self.running() + self.suspended():
                    if set(job["at"]) & set(entry["nodes"]):
                        self.end_early(
                            job,
                            "NODE_FAIL" if not job.get("requeue", True) else "REQUEUED",
                            self.requeue_delay,
                        )
        elif "cancel" in entry:
            job = self.jobs[entry["cancel"]]
            if job["state"] == "waiting":
                self.become(job, "ended", end=self.now, outcome="CANCELLED")
        elif "hold" in entry:
            self.jobs[entry["hold"]]["held"] = True
        elif "release" in entry:
            self.jobs[entry["release"]]["held"] = False

    # ---- ends -------------------------------------------------------------------------------------------
    def close_life(self, job, outcome):
        self.lives.append({
            "job": job["number"], "episode": job["episode"], "eligible": job["eligible"],
            "start": job["start"], "end": self.now, "stood": job["stood"], "nodes": job["at"],
            "outcome": outcome, "serial": job["serial"],
        })  # fmt: skip
        self.leave_grace(job)

    def finish(self, job):
        overrun = job["run"] > job["request"]
        outcome = "TIMEOUT" if overrun else "FAILED" if job.get("fails") else "COMPLETED"
        self.close_life(job, outcome)
        self.become(job, "ended", end=self.now, outcome=outcome)

    def end_early(self, job, outcome, delay=0):
        """Cut a life short; the job waits again, or has ended."""
        if job["state"] == "suspended":
            job["stood"] += self.now - job["suspended_at"]
        self.close_life(job, outcome)
        if outcome in ("REQUEUED", "PREEMPTED_REQUEUED"):
            self.become(job, "waiting", episode=job["episode"] + 1, requeue_until=self.now + delay)
            job["eligible"] = None if delay else self.now
        else:
            self.become(job, "ended", end=self.now, outcome=outcome)

    # ---- §3 eligible ------------------------------------------------------------------------------------
    def parents(self, name):
        """Return the tasks of an array, or the job of a number; none if it was refused."""
        found = [job for job in self.jobs if job.get("array") == name]
        if not found and name.isdigit() and int(name) < len(self.jobs):
            found = [self.jobs[int(name)]]
        return [job for job in found if job["state"] != "refused"]

    def part_satisfied_at(self, job, part):
        """Return since when a part of the dependency allows the job; FOREVER if it does not."""
        kind, name, minutes = part
        if kind == "singleton":
            return self.now if self.is_single(job) else FOREVER
        parents = self.parents(name)
        if kind == "after":
            starts = [p["first_start"] if p["first_start"] is not None else p["end"] for p in parents]
            if any(start is None for start in starts):
                return FOREVER
            return max((start + 60 * minutes for start in starts), default=0)
        if any(p["state"] != "ended" for p in parents):
            return FOREVER
        well = all(p["outcome"] == "COMPLETED" for p in parents)
        if parents and ((kind == "afterok" and not well) or (kind == "afternotok" and well)):
            return FOREVER
        return max((p["end"] for p in parents), default=0)

    def part_is_impossible(self, part):
        kind, name, _ = part
        if kind not in ("afterok", "afternotok"):
            return False
        parents = self.parents(name)
        ended = [p for p in parents if p["state"] == "ended"]
        if kind == "afterok":
            return any(p["outcome"] != "COMPLETED" for p in ended)
        return (
            bool(parents) and len(ended) == len(parents) and all(p["outcome"] == "COMPLETED" for p in ended)
        )

    def never_satisfied(self, job):
        if not job.get("depends"):
            return False
        mode, parts = parse_dependency(job["depends"])
        impossible = [self.part_is_impossible(part) for part in parts]
        return any(impossible) if mode is all else all(impossible)

    def may_begin(self, job):
        """Return when hold (one that ends by itself) and begin time allow the job."""
        return max(job.get("begin", 0), job.get("hold_until", 0), job["requeue_until"])

    def is_single(self, job):
        for other in self.jobs:
            same = other.get("user") == job.get("user") and other.get("name") == job.get("name")
            if other is job or not same:
                continue
            if other["state"] in ("running", "suspended"):
                return False
            if other["state"] == "waiting" and other["number"] < job["number"]:
                return False
        return True

    def dependency_at(self, job):
        """Return since when the dependency allows the job."""
        if not job.get("depends"):
            return 0
        mode, parts = parse_dependency(job["depends"])
        since = [self.part_satisfied_at(job, part) for part in parts]
        return max(since) if mode is all else min(since)

    def becomes_eligible(self, job):
        """Return the instant from which hold, begin and dependency allow the job, as things stand."""
        if job["held"]:
            return FOREVER
        moment = max(self.dependency_at(job), job["submit"], self.may_begin(job))
        return max(moment, self.now)

    def reason(self, job):
        """Return why the job is not to be considered at its turn; None if only resources hold it."""
        if job["held"] or self.now < job.get("hold_until", 0):
            return "JobHeldUser"
        if self.now < self.may_begin(job):
            return "BeginTime"
        if (
            job["eligible"] is None or self.dependency_at(job) > self.now
        ):  # a parent started in this very pass
            return "DependencyNeverSatisfied" if self.never_satisfied(job) else "Dependency"
        own = job.get("reservation")
        if own and not self.reservations[own]["begin"] <= self.now < self.reservations[own]["end"]:
            return "Reservation"
        partition = self.partitions[job["partition"]]
        if partition.get("state", "up") != "up":
            return "PartitionDown"
        barred = self.barred(job, job["partition"], job["request"], job["tres"]["node"])
        if barred:
            return barred
        busy = self.running() + self.suspended()
        if job.get("array_limit"):
            tasks = [other for other in busy if other.get("array") == job["array"]]
            if len(tasks) >= job["array_limit"]:
                return "JobArrayTaskLimit"
        limit = self.limit(job, busy)
        if limit:
            return limit
        for name, count in job.get("licences", {}).items():
            if sum(other.get("licences", {}).get(name, 0) for other in busy) + count > self.licences.get(
                name, 0
            ):
                return "Licenses"
        return None

    def limit(self, job, members, kinds=KINDS, only_qos=None):
        """Return the reason of the first limit that the job is over beside these jobs."""
        names = [self.partitions[job["partition"]].get("qos"), job.get("qos")]
        if self.qos.get(job.get("qos"), {}).get("over_partition_qos"):
            names.reverse()
        stated = set()
        for name in dict.fromkeys(names):
            if name not in self.qos:
                continue
            limits = {
                kind: self.qos[name][kind] for kind in kinds if kind in self.qos[name] and kind not in stated
            }
            group = [other for other in members if self.counts_for(other, name)]
            if only_qos is None or name in only_qos:
                over = self.over("qos", limits, job, group, lambda o, name=name: self.counts_for(o, name))
                if over:
                    return over
            stated |= set(limits)
        if only_qos is not None:
            return None
        for account_limits, counts in self.chain(job):
            limits = {
                kind: account_limits[kind] for kind in kinds if kind in account_limits and kind not in stated
            }
            group = [other for other in members if counts(other)]
            over = self.over("assoc", limits, job, group, counts)
            if over:
                return over
            stated |= {kind for kind in limits if not kind.startswith("grp_")}  # the nearest level's counts
        return None

    def counts_for(self, job, qos):
        return qos in (job.get("qos"), self.partitions[job["partition"]].get("qos"))

    def chain(self, job):
        """Return (limits, who counts) of the user in the account, then of each account up to the root."""
        levels = []
        name, user, account = job.get("account"), job.get("user"), job.get("account")
        if name in self.accounts:
            limits = self.accounts[name].get("users", {}).get(user, {})
            levels.append((limits, lambda o: o.get("user") == user and o.get("account") == account))
        while name in self.accounts:
            levels.append(
                (self.accounts[name], lambda o, name=name: name in self.ancestors(o.get("account")))
            )
            name = self.accounts[name].get("parent")
        return levels

    def ancestors(self, account):
        names = []
        while account in self.accounts:
            names.append(account)
            account = self.accounts[account].get("parent")
        return names

    def over(self, scope, limits, job, group, counts):
        """Return the reason of the first limit that the job is over; `group` are the jobs that count."""
        account = [other for other in group if other.get("account") == job.get("account")]
        own = [other for other in group if other.get("user") == job.get("user")]
        if scope == "assoc":  # a user counts in each account by itself
            own = [other for other in account if other.get("user") == job.get("user")]
        for kind, limit in limits.items():
            members = own if kind.startswith("max_") else group
            members = account if kind.endswith("_per_account") else members
            members = [] if kind.endswith("_per_job") else members
            if kind == "max_wall":
                if job["request"] > limit:
                    return COUNT_REASONS[scope, kind]
            elif kind in ("max_jobs", "max_jobs_per_account", "grp_jobs", *SUBMIT_KINDS):
                if len(members) >= limit:
                    return COUNT_REASONS[scope, kind]
            else:
                for tres in TRES:
                    if tres not in limit:
                        continue
                    amount = job["tres"][tres]
                    used = amount + sum(other["tres"][tres] for other in members)
                    if kind == "grp_tres_mins":
                        used = amount * job["estimate"] + sum(
                            o["tres"][tres] * o["estimate"] for o in members
                        )
                        used += sum(
                            self.jobs[life["job"]]["tres"][tres]
                            * (life["end"] - life["start"] - life["stood"])
                            for life in self.lives
                            if counts(self.jobs[life["job"]])
                        )
                        is_over = used > limit[tres] * 60
                    elif kind == "min_tres_per_job":
                        is_over = amount < limit[tres]
                    else:
                        is_over = used > limit[tres]
                    if is_over:
                        text = TRES_REASONS[scope, kind] % TRES_WORDS[tres]
                        return IRREGULAR.get(text, text)
        return None

    # ---- §4 select --------------------------------------------------------------------------------------
    def select(self, job, have, partition=None):
        """Return the amounts that the job takes of each class, or None."""
        vector = job["vector"]
        partition = self.partitions[partition or job["partition"]]
        exclusive = job.get("exclusive", False) or partition.get("exclusive", False)
        most = 1 << 40
        for name, limit in (("cores", "max_cores_per_node"), ("memory", "max_memory_per_node")):
            if limit in partition and vector[name] not in (0, "all"):
                most = min(most, partition[limit] // vector[name])

        def key(c):
            group = self.classes[c]
            index = group["nodes"][0]
            room = group["capacity"] if group["counted"] else have[c]
            if self.packing == "weight":
                return (self.nodes[index].get("weight", 1), index)
            if self.packing == "best_fit":
                rest = add(room, taken_by(vector, 1, group["capacity"]), -1)
                memory = rest["memory"] if "memory" in group["capacity"] else FOREVER
                return (rest.get("gpu", 0), rest["cores"], memory, index)
            if self.packing == "least_loaded":
                return (-room["cores"], index)
            return (index,)

        nodes, tasks = job.get("nodes"), job.get("tasks")
        if tasks is not None and nodes is not None and tasks < nodes:
            return None
        takes = {}
        used, left = 0, tasks
        for c in sorted(have, key=key):
            group = self.classes[c]
            for _ in range(have[c]["nodes"] if group["counted"] else 1):
                if used == nodes or left == 0:
                    break
                if group["counted"]:
                    room = group["capacity"]
                elif exclusive and have[c] != group["capacity"]:
                    break
                else:
                    room = have[c]
                fit = min(most, times(vector, room, group["capacity"]))
                if fit == 0:
                    break
                if tasks is None:
                    placed = 1
                else:
                    placed = min(fit, left - (nodes - used - 1 if nodes is not None else 0))
                    left -= placed
                used += 1
                if group["counted"]:
                    takes[c] = {"nodes": takes.get(c, {"nodes": 0})["nodes"] + 1}
                elif exclusive:
                    takes[c] = dict(group["capacity"])
                else:
                    takes[c] = taken_by(vector, placed, group["capacity"])
        if (nodes is not None and used < nodes) or left:
            return None
        return takes

    # ---- free and available amounts ---------------------------------------------------------------------
    def believed_end(self, job):
        end = job["start"] + job["estimate"] + job["stood"]
        if end <= self.now:
            end = self.now + 1
        if job.get("grace_end") is not None:
            end = min(end, max(job["grace_end"], self.now + 1))  # a grace of 0 beside others ends next
        return end

    def holds(self, job, c, removed):
        """Return the amounts that a running or suspended job holds of a class."""
        amounts = job["takes"].get(c, {})
        suspended = job["state"] == "suspended"
        if job in removed:
            if self.preempt_mode(job) != "suspend":
                return {}
            suspended = True
        if suspended:
            return {name: n for name, n in amounts.items() if name not in ("cores", "nodes")}
        return amounts

    def free(self, t, removed=(), whatever_state=False):
        """Return the free amounts of each class at t, by believed ends; not to be changed."""
        key = (t, whatever_state)
        if not removed and key in self.memo:
            return self.memo[key]
        result = {}
        for c, group in enumerate(self.classes):
            up = [i for i in group["nodes"] if whatever_state or self.nodes[i]["state"] == "up"]
            if group["counted"]:
                taken = set()
                for job in self.running():
                    if c in job["takes"] and self.holds(job, c, removed) and self.believed_end(job) > t:
                        taken |= set(job["at"])
                result[c] = {"nodes": len([i for i in up if i not in taken])}
                continue
            amounts = dict(group["capacity"]) if up else dict.fromkeys(group["capacity"], 0)
            for job in self.running() + self.suspended():
                if up and c in job["takes"] and (job["state"] == "suspended" or self.believed_end(job) > t):
                    amounts = change({c: amounts}, {c: self.holds(job, c, removed)}, -1)[c]
            result[c] = amounts
        if not removed:
            self.memo[key] = result
        return result

    def without_heads(self, t, removed=()):
        have = self.free(t, removed)
        for head in self.heads:
            if head["shadow"] <= t < head["shadow"] + head["job"]["estimate"]:
                have = change(have, head["takes"], -1)
        return have

    def available(self, job, t, removed=()):
        have = self.without_heads(t, removed)
        for head in self.heads:
            if t < head["shadow"] < t + job["estimate"] and head["extra"] is not None:
                extra = head["extra"]
                for victim in removed:
                    if self.believed_end(victim) > head["shadow"]:
                        gone = {
                            c: add(a, self.holds(victim, c, removed), -1) for c, a in victim["takes"].items()
                        }
                        extra = change(extra, gone, 1)
                have = {
                    c: {n: min(x, extra[c][n]) for n, x in amounts.items()} for c, amounts in have.items()
                }
        return {c: have[c] for c in self.admissible(job, t)}

    # ---- §5 the pass ------------------------------------------------------------------------------------
    def sorted_jobs(self, order):
        def key(job):
            wait = 0 if job["eligible"] is None else self.now - job["eligible"]
            return (-order(job, wait), job["submit"], job["number"])

        return sorted((job for job in self.jobs if job["state"] == "waiting"), key=key)

    def scheduling_pass(self):
        firsts, self.firsts = self.firsts, set()
        if not firsts:
            self.resume()
        self.heads = []
        self.struck = set()
        queue = self.sorted_jobs(self.order)
        queue.sort(key=lambda job: job["number"] not in firsts)  # stable
        if self.backfill == "conservative":
            self.conservative(queue)
            return
        behind = set()  # partitions with a blocked job, where nothing is reserved for it
        for job in queue:
            reason = self.reason(job)
            if reason is None and job["partition"] in [head["job"]["partition"] for head in self.heads]:
                reason = "Priority"
            if reason is not None:
                self.note(job, reason)
                continue
            takes = self.select(job, self.available(job, self.now))
            if takes is not None:
                self.start(job, takes)
                continue
            if job["partition"] in behind:
                self.note(job, "Priority")
                continue
            stops = self.preempt(job)
            self.note(job, "Resources")
            if stops:
                return
            if self.backfill == "filler":
                behind.add(job["partition"])
                continue
            if self.backfill == "none":
                self.heads.append({"job": job, "shadow": FOREVER, "takes": {}, "extra": None})
                self.struck |= set(self.partitions[job["partition"]]["nodes"])
            else:
                self.reserve(job)
        if self.backfill == "easy":
            self.backfill_easy()

    def backfill_easy(self):
        blocked = [head["job"]["number"] for head in self.heads]
        for job in self.sorted_candidates():
            if job["number"] in blocked:
                continue
            reason = self.reason(job)
            if reason is None:
                have = self.available(job, self.now) if self.guard else self.without_heads(self.now)
                takes = self.select(job, {c: have[c] for c in self.admissible(job, self.now)})
                if takes is not None:
                    self.start(job, takes)
                    continue
            self.note(job, reason or "Priority")

    def sorted_candidates(self):
        if self.candidate_order is None:
            return self.sorted_jobs(self.order)
        return sorted(
            self.sorted_jobs(self.order),
            key=lambda job: (
                -self.candidate_order(job, 0 if job["eligible"] is None else self.now - job["eligible"]),
                job["number"],
            ),
        )

    def reserve(self, job):
        """Make the job head of its partition."""
        moments = {self.believed_end(other) for other in self.running()}
        moments |= {head["shadow"] + head["job"]["estimate"] for head in self.heads}
        moments |= {other["grace_end"] for other in self.running() if other.get("grace_end") is not None}
        moments |= {r["end"] for r in self.reservations.values() if r.get("announced", 0) <= self.now}
        shadow, takes, extra = FOREVER, {}, None
        for t in sorted(moments):
            if self.now < t < FOREVER:
                fits = self.select(job, self.available(job, t))
                if fits is not None:
                    shadow, takes = t, fits
                    extra = change(self.without_heads(t), takes, -1)
                    break
        for head in self.heads:
            if shadow < head["shadow"] < shadow + job["estimate"] and head["extra"] is not None:
                head["extra"] = change(head["extra"], takes, -1)
        self.heads.append({"job": job, "shadow": shadow, "takes": takes, "extra": extra})
        if job.get("reserved") is None and shadow < FOREVER:
            job["reserved"] = shadow

    def start(self, job, takes):
        at = []
        for c, amounts in takes.items():
            group = self.classes[c]
            if group["counted"]:
                taken = {i for other in self.running() for i in other["at"]}
                idle = [i for i in group["nodes"] if self.nodes[i]["state"] == "up" and i not in taken]
                at += idle[: amounts["nodes"]]
                assert len(idle) >= amounts["nodes"]
            else:
                at += group["nodes"]
        for head in self.heads:
            if head["extra"] is not None and self.now + job["estimate"] > head["shadow"]:
                head["extra"] = change(head["extra"], takes, -1)
        self.serial = getattr(self, "serial", -1) + 1
        self.become(job, "running", start=self.now, takes=takes, at=sorted(at), stood=0, serial=self.serial)
        job["grace_end"] = None
        if job["first_start"] is None:
            job["first_start"] = self.now
        self.note(job, None)
        self.check_nodes()

    def conservative(self, queue):
        bookings = []  # (begin, end, takes)
        for job in queue:
            reason = self.reason(job)
            if reason is not None:
                self.note(job, reason)
                continue
            moments = {self.now} | {self.believed_end(other) for other in self.running()}
            moments |= {end for _, end, _ in bookings}
            moments |= {r["end"] for r in self.reservations.values() if r.get("announced", 0) <= self.now}
            for t in sorted(moments):
                if t < self.now:
                    continue
                have = self.least(t, t + job["estimate"], bookings)
                takes = self.select(job, {c: have[c] for c in self.admissible(job, t)})
                if takes is not None:
                    break
            if takes is None:
                self.note(job, "Resources")
            elif t == self.now:
                self.start(job, takes)
            else:
                bookings.append((t, t + job["estimate"], takes))
                self.note(job, "Resources" if len(bookings) == 1 else "Priority")

    def least(self, begin, end, bookings):
        """Return the minimum of free minus bookings over [begin, end)."""
        moments = {begin} | {self.believed_end(job) for job in self.running()}
        moments |= {t for b, e, _ in bookings for t in (b, e)}
        least = None
        for t in moments:
            if begin <= t < end:
                have = self.free(t)
                for b, e, takes in bookings:
                    if b <= t < e:
                        have = change(have, takes, -1)
                if least is None:
                    least = have
                least = {
                    c: {n: min(x, have[c][n]) for n, x in amounts.items()} for c, amounts in least.items()
                }
        return least

    # ---- §6 preemption ----------------------------------------------------------------------------------
    def preempt_setting(self, job, name, default):
        qos = self.qos.get(job.get("qos"), {})
        return qos.get(name, self.partitions[job["partition"]].get(name, default))

    def preempt_mode(self, job):
        return self.preempt_setting(job, "preempt", "off")

    def rank(self, job):
        return (
            self.partitions[job["partition"]].get("tier", 0),
            self.qos.get(job.get("qos"), {}).get("priority", 0),
        )

    def is_victim(self, victim, job, nodes):
        below = self.rank(victim)[0] < self.rank(job)[0]
        level = self.rank(victim)[0] == self.rank(job)[0]  # else two jobs could preempt each other for ever
        preempts = level and victim.get("qos") in self.qos.get(job.get("qos"), {}).get("preempts", [])
        return (
            self.preempt_mode(victim) != "off"
            and (below or preempts)
            and victim.get("grace_end") is None
            and self.now - victim["start"] >= self.preempt_setting(victim, "exempt", 0)
            and bool(set(victim["at"]) & nodes)
        )

    def preempt(self, job):
        """Remove running jobs in favour of this one; return whether the pass stops."""
        if any(
            v.get("preemptor") == job["number"] and v.get("grace_end") is not None for v in self.running()
        ):
            return False
        nodes = self.admissible_nodes(job, job["partition"], self.now)
        victims = [v for v in self.running() if self.is_victim(v, job, nodes)]
        victims.sort(key=lambda v: (self.rank(v), -v["start"], -v["number"]))

        def suffices(removed):
            return self.select(job, self.available(job, self.now, removed)) is not None

        removed = []
        for victim in victims:
            removed.append(victim)
            if suffices(removed):
                break
        else:
            return False
        for victim in list(removed):
            others = [v for v in removed if v is not victim]
            if suffices(others):
                removed = others
        graces = [self.preempt_setting(v, "grace", 0) for v in removed]
        if not any(graces):
            for victim in removed:
                self.remove_victim(victim)
            self.firsts.add(job["number"])
            return True
        for victim, grace in zip(removed, graces, strict=True):
            victim["grace_end"] = self.now + grace
            victim["preemptor"] = job["number"]
        self.touch()
        return False

    def leave_grace(self, victim):
        """Forget the grace; whom it was for goes first if this was the last such victim."""
        if victim.get("grace_end") is None:
            return
        victim["grace_end"] = None
        self.touch()
        others = [v for v in self.running() if v.get("grace_end") is not None]
        if not any(v["preemptor"] == victim["preemptor"] for v in others):
            self.firsts.add(victim["preemptor"])

    def remove_victim(self, victim):
        mode = self.preempt_mode(victim)
        if mode == "suspend":
            self.leave_grace(victim)
            self.become(victim, "suspended", suspended_at=self.now)
        elif mode == "requeue" and victim.get("requeue", True):
            self.end_early(victim, "PREEMPTED_REQUEUED")
        else:
            self.end_early(victim, "PREEMPTED")

    def resume(self):
        for job in sorted(self.suspended(), key=lambda job: (job["suspended_at"], job["number"])):
            have = self.free(self.now, whatever_state=True)
            taken = {i for other in self.running() for i in other["at"]}
            counted = [c for c in job["takes"] if self.classes[c]["counted"]]
            cores = all(have[c]["cores"] >= a["cores"] for c, a in job["takes"].items() if c not in counted)
            mine = {i for c in counted for i in self.classes[c]["nodes"]} & set(job["at"])
            if cores and not mine & taken:
                self.become(job, "running", stood=job["stood"] + self.now - job["suspended_at"])

    # ---- what is written down ---------------------------------------------------------------------------
    def note(self, job, reason):
        history = self.reasons.setdefault(job["number"], [])
        if history and history[-1][0] == self.now:
            history.pop()
        if not history or history[-1][1] != reason:
            history.append((self.now, reason))

    def check_nodes(self):
        """No node holds more than it has; an exclusive job is alone on its nodes."""
        for c, group in enumerate(self.classes):
            if group["counted"]:
                nodes = [
                    i
                    for job in self.running()
                    for i in job["at"]
                    if c in job["takes"] and i in group["nodes"]
                ]
                assert len(nodes) == len(set(nodes))
            else:
                held = [job["takes"][c] for job in self.running() if c in job["takes"]]
                held += [self.holds(job, c, ()) for job in self.suspended() if c in job["takes"]]
                for name, amount in group["capacity"].items():
                    assert sum(amounts.get(name, 0) for amounts in held) <= amount

    def result(self):
        jobs = []
        for job in self.jobs:
            lives = [life for life in self.lives if life["job"] == job["number"]]
            last = lives[-1] if lives and job["state"] == "ended" and job["outcome"] != "CANCELLED" else None
            entry = {
                "state": job["outcome"] if job["state"] == "ended" else job["state"],
                "partition": job.get("partition"),
                "eligible": job["first_eligible"],
                "start": last["start"] if last else None,
                "end": job["end"],
                "nodes": last["nodes"] if last else [],
                "reserved": job.get("reserved"),
                "reason": (self.reasons.get(job["number"]) or [(0, None)])[-1][1],
            }
            if last:
                run = last["end"] - last["start"] - last["stood"]
                response = job["end"] - job["first_eligible"]
                entry |= {
                    "wait": response - run,
                    "hold": job["first_eligible"] - job["submit"],
                    "turnaround": job["end"] - job["submit"],
                    "bounded_slowdown": max(1.0, response / max(run, 10)),
                }
            jobs.append(entry)
        self.lives.sort(key=lambda life: life["serial"])
        return {"jobs": jobs, "lives": self.lives, "reasons": self.reasons}
