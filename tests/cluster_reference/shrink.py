"""Make a failing case small: leave out jobs, nodes, rules and fields as long as it fails."""

import copy

#: A field never goes without these.
NEEDED = {"submit", "run", "cores", "nodes", "partitions", "jobs"}


def shrink(case, fails):
    """Return a smaller case for which `fails(case)` still is true; an error in `fails` is no failure."""

    def still(candidate):
        try:
            return bool(fails(copy.deepcopy(candidate)))
        except (KeyError, IndexError, ValueError):
            return False

    smaller = True
    while smaller:
        smaller = False
        for candidate in candidates(case):
            if still(candidate):
                case, smaller = candidate, True
                break
    return case


def candidates(case):
    """Yield cases with one thing less, the largest cuts first."""
    n = len(case["jobs"])
    size = n // 2
    while size:
        for begin in range(0, n, size):
            if size < n:
                yield without_jobs(case, set(range(begin, min(n, begin + size))))
        size //= 2
    for i in range(len(case["nodes"])):
        if len(case["nodes"]) > 1:
            yield without_node(case, i)
    for path in paths(case):
        yield without_path(case, path)
    for i, job in enumerate(case["jobs"]):
        for key, least in (("run", 1), ("request", 1), ("nodes", 1), ("tasks", 1), ("submit", 0)):
            for value in (least, (job.get(key) or 0) // 2, (job.get(key) or 0) - 1):
                if job.get(key) and least <= value < job[key]:
                    smaller = copy.deepcopy(case)
                    smaller["jobs"][i][key] = value
                    if key != "submit" or all(
                        a["submit"] <= b["submit"]
                        for a, b in zip(smaller["jobs"], smaller["jobs"][1:], strict=False)
                    ):
                        yield smaller


def without_jobs(case, gone):
    """Return the case without these jobs; dependencies and calendar entries on them go, too."""
    case = copy.deepcopy(case)
    kept = [i for i in range(len(case["jobs"])) if i not in gone]
    place = {old: new for new, old in enumerate(kept)}
    jobs = [case["jobs"][i] for i in kept]
    for job in jobs:
        if "depends" in job:
            mark = "?" if "?" in job["depends"] else ","
            parts = []
            for part in job["depends"].split(mark):
                kind, _, parent = part.partition(":")
                name, plus, minutes = parent.partition("+")
                if name.isdigit():
                    if int(name) not in place:
                        continue
                    name = str(place[int(name)])
                parts.append(f"{kind}:{name}{plus}{minutes}" if parent else part)
            if parts:
                job["depends"] = mark.join(parts)
            else:
                del job["depends"]
    calendar = []
    for entry in case.get("calendar", []):
        key = next((key for key in ("cancel", "hold", "release") if key in entry), None)
        if key is None or entry[key] in place:
            calendar.append(entry | ({key: place[entry[key]]} if key else {}))
    case["jobs"] = jobs
    if "calendar" in case:
        case["calendar"] = calendar
    return case


def without_node(case, gone):
    case = copy.deepcopy(case)
    del case["nodes"][gone]
    holders = [*case["partitions"].values(), *(e for e in case.get("calendar", []) if "nodes" in e)]
    for holder in holders:
        holder["nodes"] = [i - (i > gone) for i in holder["nodes"] if i != gone]
    for job in case["jobs"]:
        for key in ("nodelist", "exclude"):
            if key in job:
                job[key] = [i - (i > gone) for i in job[key] if i != gone]
    return case


def paths(value, above=()):
    """Yield the way to every entry that may be left out, the outermost first."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in NEEDED or (key == "nodes" and len(above) == 2 and above[0] == "jobs"):
                yield (*above, key)
            if key not in ("vector",) or isinstance(inner, dict):
                yield from paths(inner, (*above, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            if above == ("calendar",):
                yield (*above, i)
            yield from paths(inner, (*above, i))


def without_path(case, path):
    case = copy.deepcopy(case)
    holder = case
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    if any("nodes" not in job and "tasks" not in job for job in case["jobs"]) or not case["partitions"]:
        return {"nodes": [], "partitions": {}, "jobs": []}  # no case: nothing fails on it
    names = set(case["partitions"])
    for job in case["jobs"]:
        if "partitions" in job and not set(job["partitions"]) <= names:
            job["partitions"] = [name for name in job["partitions"] if name in names]
    return case
