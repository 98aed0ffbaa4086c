"""Random small cases: nodes of mixed kinds, overlapping partitions, jobs with ties, overruns and rules."""

import random

from cluster_reference.scheduler import Simulation
from cluster_reference.shrink import without_jobs

#: What a case may hold; each part is drawn with its own probability, so that few cases hold everything.
PARTS = ("features", "gpus", "weights", "limits", "licences", "dependencies", "arrays", "holds", "down")
#: Parts of rules in time; for schedulers that know them.
TIMED_PARTS = ("calendar", "reservations", "preemption")


def draw_case(seed, **options):
    """Return a random case in which each job has nodes that hold it, always the same of a seed."""
    case = draw_any_case(seed, **options)
    while case["jobs"]:
        refused = refused_jobs(case)
        if not refused:
            return case
        case = without_jobs(case, refused)  # their node lists go, too, which may change what holds the others
    return draw_case(seed + 1_000_003, **options)


def refused_jobs(case):
    """Return the jobs that the empty cluster cannot hold."""
    return {number for number, job in enumerate(Simulation(case).jobs) if job["state"] == "refused"}


def draw_any_case(seed, *, backfills=("none", "easy"), parts=PARTS, jobs=(5, 40), overruns=True):
    """Return a random case, in which some jobs may be larger than the cluster."""
    rng = random.Random(seed)
    has = {part: part in parts and rng.random() < 0.5 for part in (*PARTS, *TIMED_PARTS)}
    case = {
        "order": rng.choice(["fcfs", "fcfs", "sjf", "ljf", "lcfs", "w/t"]),
        "backfill": rng.choice(backfills),
        "select": rng.choice(["weight", "weight", "first_fit", "best_fit", "least_loaded"]),
        "nodes": draw_nodes(rng, has),
    }
    if case["backfill"] == "easy" and rng.random() < 0.25:
        case["candidate_order"] = "sjf"
    case["partitions"] = draw_partitions(rng, has, len(case["nodes"]))
    if has["limits"]:
        case |= draw_limits(rng, case)
    if has["licences"]:
        case["licences"] = {"matlab": rng.randint(1, 3), "ansys": rng.randint(1, 5)}
    case["jobs"] = draw_jobs(rng, has, case, rng.randint(*jobs), overruns)
    if rng.random() < 0.2:
        case["kill_invalid_dependency"] = True
    if has["calendar"] or has["reservations"]:
        case["calendar"] = draw_calendar(rng, has, case)
    if has["preemption"]:
        draw_preemption(rng, case)
    return case


def draw_nodes(rng, has):
    kinds = []
    for _ in range(rng.randint(1, 3)):
        kind = {"cores": rng.choice([1, 2, 4, 8])}
        if rng.random() < 0.7:
            kind["memory"] = rng.choice([4, 8, 16])
        if has["gpus"] and rng.random() < 0.6:
            types = rng.sample(["a100", "v100"], rng.choice([1, 1, 2]))
            kind["gpus"] = {name: rng.randint(1, 4) for name in types}
        if has["features"] and rng.random() < 0.6:
            kind["features"] = sorted(rng.sample(["big", "fast", "new"], rng.randint(1, 2)))
        if has["weights"] and rng.random() < 0.6:
            kind["weight"] = rng.randint(1, 3)
        kinds.append(kind)
    nodes = [dict(rng.choice(kinds)) for _ in range(rng.randint(2, 8))]
    if has["down"]:
        for node in nodes:
            if rng.random() < 0.15:
                node["state"] = rng.choice(["down", "drain"])
    return nodes


def draw_partitions(rng, has, n):
    style = rng.choice(["exclusive", "shared", "mixed"])
    partitions = {}
    for i in range(rng.choice([1, 1, 2, 2, 3, 4])):
        members = (
            sorted(rng.sample(range(n), rng.randint(1, n))) if i or rng.random() < 0.3 else list(range(n))
        )
        partition = {"nodes": members}
        if style == "exclusive" or (style == "mixed" and rng.random() < 0.5):
            partition["exclusive"] = True
        if has["limits"]:
            if rng.random() < 0.3:
                partition["max_time"] = rng.randint(5, 30)
            if rng.random() < 0.3:
                partition["max_nodes"] = rng.randint(1, n)
            if rng.random() < 0.05:
                partition["state"] = rng.choice(["down", "drain", "inactive"])
            if rng.random() < 0.1:
                partition["min_nodes"] = 2
            if rng.random() < 0.1:
                partition["max_cores_per_node"] = rng.randint(1, 4)
        if rng.random() < 0.2:
            partition["default_memory_per_core"] = rng.randint(1, 2)
        partitions[f"p{i}"] = partition
    return partitions


def draw_kinds(rng, per_user):
    limits = {}
    counts = [("max_jobs", rng.randint(1, 3)), ("grp_jobs", rng.randint(1, 4)), ("max_wall", 25)]
    counts += [("max_submit", rng.randint(2, 6)), ("grp_submit", rng.randint(4, 12))]
    if per_user:
        counts += [("max_jobs_per_account", rng.randint(1, 4)), ("max_submit_per_account", rng.randint(2, 9))]
    for kind, value in counts:
        if rng.random() < 0.12:
            limits[kind] = value
    kinds = ["max_tres_per_job", "grp_tres", *(["max_tres", "max_tres_per_account"] if per_user else [])]
    for kind in kinds:
        if rng.random() < 0.15:
            tres, limit = rng.choice(
                [
                    ("cpu", rng.randint(4, 16)),
                    ("node", rng.randint(2, 5)),
                    ("mem", rng.randint(8, 32)),
                    ("gpu", rng.randint(2, 4)),
                ]
            )
            limits[kind] = {tres: limit}
    if rng.random() < 0.06:
        limits["grp_tres_mins"] = {"cpu": rng.randint(2, 20)}
    if rng.random() < 0.04:
        limits["min_tres_per_job"] = {rng.choice(["cpu", "node"]): 2}
    return limits


def draw_limits(rng, case):
    qos = {name: draw_kinds(rng, per_user=True) for name in ("normal", "high", "part")}
    for name in qos:
        for flag in ("over_partition_qos", "deny_on_limit", "partition_max_nodes", "partition_time_limit"):
            if rng.random() < 0.08:
                qos[name][flag] = True
    for partition in case["partitions"].values():
        if rng.random() < 0.2:
            partition["qos"] = "part"
        if rng.random() < 0.1:
            partition[rng.choice(["allow_qos", "deny_qos"])] = ["normal"]
        if rng.random() < 0.1:
            partition[rng.choice(["allow_accounts", "deny_accounts"])] = ["physics"]
    accounts = {
        "root": draw_kinds(rng, per_user=False),
        "physics": {"parent": "root", **draw_kinds(rng, per_user=False)},
        "laser": {"parent": "physics", **draw_kinds(rng, per_user=False)},
        "biology": {"parent": "root", **draw_kinds(rng, per_user=False)},
    }
    for account in accounts.values():
        if rng.random() < 0.4:
            account["users"] = {rng.choice(["ann", "bob"]): draw_kinds(rng, per_user=False)}
    return {"qos": qos, "accounts": accounts}


def draw_jobs(rng, has, case, n, overruns):
    pace = rng.choice([0, 1, 3, 6])
    jobs, submit = [], 0
    names = list(case["partitions"])
    n_nodes = len(case["nodes"])
    for number in range(n):
        submit += rng.choice([0, 0, 1, rng.randint(0, 2 * pace)]) if number else 0
        run = rng.choice([1, 2, 5, 10, rng.randint(1, 30)])
        job = {"submit": submit, "run": run, "request": max(1, run + rng.choice([0, 0, 1, 5, 20, -1]))}
        if overruns and rng.random() < 0.2:
            job["estimate"] = max(1, job["request"] + rng.choice([-1, -3, -8, 4]))
        job["partitions"] = [rng.choice(names)]
        if rng.random() < 0.15:
            job["partitions"] = rng.sample(names, rng.randint(1, len(names)))
        if has["features"] and rng.random() < 0.3:
            job["features"] = rng.choice(["big", "fast", "new", "big&fast", "big|new"])
        if has["features"] and rng.random() < 0.08:
            key = rng.choice(["nodelist", "exclude"])
            job[key] = sorted(rng.sample(range(n_nodes), rng.randint(1, n_nodes)))
        draw_demand(rng, case, job)
        if rng.random() < 0.1:
            job["fails"] = True
        if has["limits"]:
            job |= {
                "qos": rng.choice(["normal", "high"]),
                "account": rng.choice(["physics", "laser", "biology"]),
            }
        if has["limits"] or has["dependencies"]:
            job["user"] = rng.choice(["ann", "bob", "cat"])
            job["name"] = rng.choice(["sim", "post"])
        if has["licences"] and rng.random() < 0.4:
            job["licences"] = {rng.choice(["matlab", "ansys"]): rng.randint(1, 3)}
        if has["arrays"] and rng.random() < 0.4:
            job["array"] = rng.choice(["x", "y"])
        if has["holds"] and rng.random() < 0.1:
            job["begin"] = submit + rng.randint(0, 20)
        if has["holds"] and rng.random() < 0.04:
            job["hold"] = True
        elif has["holds"] and rng.random() < 0.05:
            job["hold_until"] = submit + rng.randint(0, 20)
        jobs.append(job)
    for name in ("x", "y"):
        limit = rng.randint(1, 3)
        for job in jobs:
            if job.get("array") == name:
                job["array_limit"] = limit
    if has["dependencies"]:
        draw_dependencies(rng, jobs)
    return jobs


def matching(case, job):
    """Return the nodes of the job's first partition that have its features."""
    nodes = [case["nodes"][i] for i in case["partitions"][job["partitions"][0]]["nodes"]]
    for node in nodes:
        features = set(node.get("features", []))
        wanted = job.get("features", "")
        if not wanted or any(set(part.split("&")) <= features for part in wanted.split("|")):
            yield node


def draw_demand(rng, case, job):
    """Demand what some node of the partition has; sometimes what none has."""
    nodes = list(matching(case, job))
    if not nodes:
        job.pop("features", None)
        nodes = list(matching(case, job))
    if rng.random() < 0.02:
        job |= {"nodes": 9, "vector": {"cores": 9}}
        return
    model = rng.choice(nodes)
    vector = {}
    if rng.random() < 0.7:
        vector["cores"] = min(model["cores"], rng.choice([1, 1, 2, 2, 3, 4, 8]))
    if rng.random() < 0.8:
        vector["memory"] = min(model.get("memory", 4), rng.choice([0, 0, 1, 2, 4, 6, 8, 16]))
    if rng.random() < 0.5 and "gpus" in model:
        kind = rng.choice([*model["gpus"], "any"])
        vector["gpus"] = {kind: rng.randint(1, model["gpus"].get(kind, 3))}
    if vector:
        job["vector"] = vector
    holding = [node for node in nodes if node["cores"] >= vector.get("cores", 1)]
    holding = [node for node in holding if node.get("memory", 99) >= vector.get("memory", 0)]
    if "gpus" in vector:
        holding = [node for node in holding if node.get("gpus") == model["gpus"]]
    room = sum(node["cores"] // vector.get("cores", 1) for node in holding)
    size = rng.choice([1, 1, 2, rng.randint(1, len(holding))])
    size = min(size, len(holding))
    if rng.random() < 0.6:
        job["nodes"] = size
    else:
        job["tasks"] = max(1, min(room, rng.choice([1, 2, 3, 4, 6])) // rng.choice([1, 1, 1, 2]))
        if rng.random() < 0.3:
            job["nodes"] = min(size, job["tasks"])
    if rng.random() < 0.1:
        job["exclusive"] = True


def draw_dependencies(rng, jobs):
    for number, job in enumerate(jobs):
        if rng.random() < 0.1:
            job["depends"] = "singleton"
        elif number and rng.random() < 0.35:
            parts = []
            for _ in range(rng.choice([1, 1, 2])):
                kind = rng.choice(
                    ["after", "after", "afterok", "afterok", "afterany", "afterany", "afternotok"]
                )
                parent = str(rng.randrange(number))
                parents = [other["array"] for other in jobs[:number] if "array" in other]
                if parents and "array" not in job and rng.random() < 0.2:
                    array = rng.choice(parents)
                    if not any(other.get("array") == array for other in jobs[number:]):
                        parent = array
                delay = "+1" if kind == "after" and rng.random() < 0.2 else ""
                parts.append(f"{kind}:{parent}{delay}")
            job["depends"] = rng.choice([",", "?"]).join(parts)


def draw_calendar(rng, has, case):
    n, calendar = len(case["nodes"]), []
    if has["calendar"]:
        for _ in range(rng.randint(1, 6)):
            time = rng.randint(1, 60)
            kind = rng.choice(["node", "node", "node", "partition", "cancel", "hold", "release"])
            if kind == "node":
                nodes = sorted(rng.sample(range(n), rng.randint(1, min(3, n))))
                calendar.append(
                    {"time": time, "nodes": nodes, "state": rng.choice(["down", "drain", "up", "up"])}
                )
            elif kind == "partition":
                name = rng.choice(list(case["partitions"]))
                calendar.append(
                    {"time": time, "set": {"partitions": {name: {"state": rng.choice(["down", "up"])}}}}
                )
            else:
                calendar.append({"time": time, kind: rng.randrange(len(case["jobs"]))})
        if rng.random() < 0.4:
            case["requeue_delay"] = rng.randint(1, 10)
        for job in case["jobs"]:
            if rng.random() < 0.3:
                job["requeue"] = False
    if has["reservations"]:
        for i in range(rng.randint(1, 2)):
            begin = rng.randint(1, 50)
            entry = {"reservation": f"r{i}", "nodes": sorted(rng.sample(range(n), rng.randint(1, n)))}
            entry |= {"begin": begin, "end": begin + rng.randint(1, 20)}
            if rng.random() < 0.5:
                entry["announced"] = rng.randint(0, begin)
            if rng.random() < 0.3:
                entry["users"] = rng.sample(["ann", "bob", "cat"], rng.randint(1, 2))
            if has["limits"] and rng.random() < 0.3:
                entry["accounts"] = rng.sample(["physics", "laser", "biology"], rng.randint(1, 2))
            calendar.append(entry)
            for job in case["jobs"]:
                if rng.random() < 0.1:
                    job["reservation"] = f"r{i}"
    return calendar


def draw_preemption(rng, case):
    names = ("requeue", "cancel", "suspend", "off")
    for partition in case["partitions"].values():
        partition["tier"] = rng.randint(0, 2)
        partition["preempt"] = rng.choice(names)
        if rng.random() < 0.3:
            partition["grace"] = rng.randint(1, 6)
        if rng.random() < 0.2:
            partition["exempt"] = rng.randint(1, 6)
    if rng.random() < 0.5:
        qos = case.setdefault("qos", {})
        qos.setdefault("normal", {})["priority"] = 1
        qos.setdefault("high", {}).update(priority=5, preempts=["normal"])
        for job in case["jobs"]:
            job.setdefault("qos", rng.choice(["normal", "high"]))
    for job in case["jobs"]:
        if rng.random() < 0.1:
            job["requeue"] = False
