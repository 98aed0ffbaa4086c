"""How near textbook rules come to what each log records: `bridge fidelity` on whole logs, kept and drawn.

python -m papers.fidelity [LOG …]    # measures anew; of all logs without names
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bridge.base.progress import SILENT
from bridge.commands.fidelity import TEXTBOOK, fidelity
from bridge.commands.request import CommandRequest
from bridge.judge.fidelity import MEASURES
from bridge.policy_name import parse_policy
from bridge.report.fidelity_tables import measures
from bridge.report.plots import COLOURS, new_figure, plain, save
from bridge.report.table import Table
from bridge.report.tables import duration
from papers import inferred, logs, store

#: Logs of real machines with recorded starts; LLNL-Atlas and the Lublin logs record none.
LOGS = ("SDSC-SP2", "CTC-SP2", "HPC2N", "DataStar", "Curie", "Theta")
#: The order with untuned weights, and machines of sites in words.
MULTIFACTOR = "multifactor+easy"
_MACHINES = {"pool": "one pool", "cluster": "cluster"}
_REASONS = {
    "no_room": ("no room", COLOURS[0]),
    "partition_full": ("full partition", COLOURS[4]),
    "reserved": ("one reservation", COLOURS[2]),
    "unexplained": ("unexplained", COLOURS[5]),
}

#: The page.
_TEXT = """\
# Does the replay say what happened?

This page compares each log's own starts with those of textbook rules, job by job ([Fidelity](../fidelity.md)
has the definitions). On none of these machines does a textbook rule give the recorded starts: the real
schedulers had priorities, partitions, limits, reservations and holds that the logs do not record.

![Why jobs waited, and how far each rule is from the record](fidelity.svg)

## What the record explains of the waiting

The table shows shares of the total waiting time of all jobs, measured at 3,000 random instants.

<details markdown>

<summary>What the columns mean</summary>

- *Above* is the share of time in which more nodes were in use than the machine has. In brackets stands the
  largest number in use.
- The true unexplained share lies between *all fit* (all waiting jobs would fit at once) and *unexplained*.
- *Its user idle* is the part of the unexplained waiting during which the job's user had no running job.
- *Heaviest user* is the part that belongs to one user.

</details>

{shares}

## The whole log

The table is from one replay of all jobs, as `bridge replay` makes it. The mean and W1 are not robust: they
depend on the few jobs that wait longest. The order `multifactor` has untuned weights (see
*How it was measured* below). It is the nearest rule on Curie, and close to the nearest on SDSC-SP2 and HPC2N.

{near}

## The second half of each log, compared with forecasts from the first half

<details markdown>

<summary>What the rows and columns mean</summary>

The *null* uses the waits of the first half as a forecast, without any simulation. Bias and W1 compare the
distribution of these waits. In the measures for single jobs, their median is the forecast for every job. The
*textbook* rule is the rule with the lowest log-MAE on the first half. The last two columns are verdicts on
the paired difference of log errors. Their 95 % intervals come from 20 blocks of neighbouring jobs.

</details>

{second}

## A cluster from the record: by counts, and by lists of nodes

The accounting of pozidriv (the public sample of XDMoD) names the nodes on which each job ran. The table has
the number of nodes of each partition as `bridge cluster infer` writes it.

<details markdown>

<summary>What the columns mean</summary>

*By counts* is what `infer` writes if the lists are left out: the largest number of nodes in use, if the
partition was full. *By lists* is what it writes with them. A job counts with all of its nodes. So where jobs
share nodes, the count is too large. In the last column, the number of nodes that both partitions have is in
brackets.

</details>

{inferred}

The next table has the log-MAE of windows of the second half. They are played from the recorded state under
fcfs+easy: on one pool of whole nodes, and on the cluster with the partitions. With lists, jobs share nodes
by their cores. The partitions, nodes and cores that are played are those of the first half alone.

{steps}

## Whole sites: on one pool, and on their cluster

The table compares whole replays of four public sites. *One pool* has the size that was ever in use.
*Cluster* is the result of `cluster infer` for pozidriv, `thetagpu-2023` for ThetaGPU, and 349 shared
nodes for Cirrus. Clusters bring pozidriv and ThetaGPU nearer to the record, and Cirrus farther away.
The published waits of Philly are exactly those of FCFS.

<details markdown>

<summary>How it was measured</summary>

No log comes with the weights that the order `multifactor` needs. Here they are untuned: a point for each
day of age, up to 2 for size, up to 10 for fair share (classic, half-life 7 days). It was played where the
record names users. Sizes, nodes and cores are of the whole log, a small leak. pozidriv on one pool counts
cores, ThetaGPU (192) and Philly (2,490) count GPUs, Cirrus (557) counts nodes. Jobs of Cirrus state no
request, and 349 nodes of 36 cores hold just the most cores that were ever in use. Philly's table of lumos is
met to the last job by FCFS without backfilling, so it looks simulated.

</details>

{sites}

## What is not on this page

- LLNL-Atlas and the Lublin logs record no waits.

Made by `python -m papers.inferred`, `python -m papers.site_fidelity` and `python -m papers.fidelity`.
"""


def measured(name: str) -> dict[str, Any]:
    """Return how near the textbook rules come to a log's record."""
    return distances(logs.trace_file(name), TEXTBOOK)


def distances(path: Path, names: Sequence[str], **options: Any) -> dict[str, Any]:
    """Return how near policies come to the record of a log; `options`: of `bridge fidelity`."""
    policies = tuple(map(parse_policy, names))
    document = fidelity(CommandRequest(policies, str(path), options), SILENT).document
    keys = ("jobs", "recorded_mean", *MEASURES)

    def kept(one: dict[str, Any]) -> dict[str, Any]:
        return {key: one[key] for key in keys}

    judged = document.get("policies") or [document | {"name": names[0]}]
    return {
        "policies": {
            one["name"]: {
                "whole": kept(one),
                "behind": kept(one["behind"]["policy"]),
                "verdict": one["behind"]["verdict"],
            }
            for one in judged
        },
        "null": kept(document["null"]),
        "textbook": document["textbook"]["policy"],
        "waiting": document["waiting"],
    }


def read_fidelity() -> dict[str, Any]:
    """Return the logs' documents, with the order of untuned weights beside the textbook rules."""
    weighted = store.read_json("fidelity-multifactor")
    documents = store.read_json("fidelity").items()
    return {name: of | {"policies": of["policies"] | weighted.get(name, {})} for name, of in documents}


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _above(share: float) -> str:
    return "< 0.01 %" if share < 1e-4 else f"{100 * share:.1f} %"


def page() -> str:
    heads = ("log", "jobs", "mean wait", "above", "no room", "full partition", "one reservation")
    shares = Table((*heads, "unexplained", "all fit", "its user idle", "heaviest user"))
    columns = ("log", "policy", "log-MAE", "rank", "≤ 1 min", "≤ 10", "≤ 60", "bias", "W1", "W1/mean")
    near = Table(columns, words=(1,))
    second = Table((*columns, "compared with the null", "compared with the textbook rule"), words=(1, 10, 11))
    for name, document in read_fidelity().items():
        waiting, policies = document["waiting"], document["policies"]
        first = next(iter(policies.values()))["whole"]
        above = f"{_above(waiting['above'])} ({waiting['peak']:,})" if waiting["above"] else "0"
        users = (_percent(waiting[key]) for key in ("all_fit", "idle_user", "top_user"))
        reasons = (_percent(waiting[key]) for key in _REASONS)
        shares.add(name, f"{first['jobs']:,}", duration(first["recorded_mean"]), above, *reasons, *users)
        for policy, one in policies.items():
            near.add(name, policy, *measures(one["whole"]))
            chosen = " (textbook)" if policy == document["textbook"] else ""
            verdicts = (one["verdict"][key]["verdict"] for key in ("null", "textbook"))
            second.add(name, policy + chosen, *measures(one["behind"]), *verdicts)
        second.add(name, "null", *measures(document["null"]))
    return _TEXT.format(
        shares=shares.markdown().rstrip(),
        near=near.markdown().rstrip(),
        second=second.markdown().rstrip(),
        inferred=inferred.table().markdown().rstrip(),
        steps=inferred.steps().markdown().rstrip(),
        sites=_sites().markdown().rstrip(),
    )


def _sites() -> Table:
    """Return a row for each site, machine and rule: how near the whole replay comes to the record."""
    heads = ("site", "machine", "policy", "jobs", "log-MAE", "rank", "≤ 1 min", "≤ 10", "≤ 60", "bias", "W1")
    rows = Table((*heads, "W1/mean"), words=(1, 2))
    for name, document in store.read_json("fidelity-sites").items():
        for machine, label in _MACHINES.items():
            for policy, one in document.get(machine, {"policies": {}})["policies"].items():
                rows.add(name, label, policy, f"{one['whole']['jobs']:,}", *measures(one["whole"]))
    return rows


def picture() -> Figure:
    """Draw why jobs waited, and each rule's distance, log by log."""
    documents = {name: one for name, one in read_fidelity().items() if name in LOGS}
    for name, of in store.read_json("fidelity-sites").items():
        documents |= {f"{name}, {label}": of[key] for key, label in _MACHINES.items() if key in of}
    figure = new_figure(10, 1.6 + 0.5 * len(documents))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    names = [*documents]
    rules = [name.removesuffix("+none") for name in (*TEXTBOOK, MULTIFACTOR)]
    for y, name in enumerate(names):
        at = 0.0
        for key, (_, colour) in _REASONS.items():
            share = 100 * (documents[name]["waiting"][key] or 0.0)
            left.barh(y, share, left=at, color=colour, height=0.7)
            at += share
        for policy, one in documents[name]["policies"].items():
            right.plot(one["whole"]["log_mae"], y, "o", color=COLOURS[rules.index(policy)])
        null = documents[name]["null"]["log_mae"]
        right.plot(null, y, "x", color="black", label="null (second half)" if y == 0 else None)
    for k, policy in enumerate(rules):
        right.plot([], [], "o", color=COLOURS[k], label=policy)
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.set(xlim=(0, 100), xlabel="recorded waiting (%)")
    right.set(xlim=(0, None), xlabel="log-MAE (0 = as recorded)")
    for label, colour in _REASONS.values():
        left.plot([], [], "s", color=colour, label=label)
    for axes in (left, right):
        plain(axes, grid="x")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=8)
    return figure


def main(names: list[str]) -> None:
    for name, document in store.measure_logs("fidelity", LOGS, measured, names, indent=1):
        print(f"{name}: {document['waiting']}", flush=True)
    save(picture(), store.RESULTS / "fidelity.svg")
    print(store.written("fidelity", page()))


if __name__ == "__main__":
    main(sys.argv[1:])
