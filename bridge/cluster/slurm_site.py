"""A site from Slurm's own files: slurm.conf or `scontrol show`, and what `sacctmgr` prints."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, Partition
from bridge.cluster.imported import ImportedCluster, ImportNotes, mending
from bridge.cluster.node_groups import group_nodes
from bridge.cluster.node_table import names_of
from bridge.cluster.sacctmgr import read_sacctmgr
from bridge.cluster.slurm_conf import Line, is_settings, settings
from bridge.cluster.slurm_nodes import SlurmNodes
from bridge.cluster.slurm_partitions import one_default, partition_of
from bridge.cluster.slurm_scheduler import (
    counts_memory,
    licenses_of,
    note_others,
    priority_of,
    scheduler_of,
)

_REMEDY = "Give slurm.conf, or the output of `scontrol show node` with that of `scontrol show partition`."
#: First words of lines that are records, not settings of the whole cluster.
_RECORDS = ("nodename", "partitionname", "nodeset", "downnodes", "reservationname", "licensename")
_FRONTENDS = ("frontendname", "switchname")


def import_slurm(path: Path, accounting: Sequence[Path] = ()) -> ImportedCluster:
    """Return the cluster of a slurm.conf, or of what `scontrol show` prints; BridgeError names the line.

    `accounting`: texts of `sacctmgr -P show qos` and `show assoc`. Their limits count, whatever
    AccountingStorageEnforce says.
    """
    return import_slurm_text(files.read_text(path), path, accounting)


def import_slurm_text(text: str, path: Path, accounting: Sequence[Path] = ()) -> ImportedCluster:
    """Return the cluster of a text as `import_slurm` reads it; `path`: its name in errors."""
    if not is_settings(text):
        raise BridgeError("names no node and no partition", where=str(path), remedy=_REMEDY)
    notes = ImportNotes()
    nodes, partitions, whole = SlurmNodes(notes), [], _WholeCluster()
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    for place, line in settings(path, text):
        kind = next((word for word in _RECORDS if word in line), "")
        if kind in defaults:
            if line[kind].upper() == "DEFAULT":
                defaults[kind] |= line
                continue
            line = defaults[kind] | line  # noqa: PLW2901
        with mending(place):
            if kind == "nodename":
                nodes.add(line, place)
            elif kind == "partitionname":
                partitions.append((place, line))
            elif kind == "nodeset":
                nodes.sets[line["nodeset"]] = (place, line)
            elif kind == "downnodes":
                whole.down.append((place, line))
            elif kind == "reservationname":
                notes.leave("reservations: give them with --reservations")
            elif kind == "licensename":
                whole.add_license(line)
            elif any(word in line for word in _FRONTENDS):
                notes.leave("lines of front ends and switches")
            else:
                whole.add(place, line)
    if not nodes.nodes:
        raise BridgeError("names no node", where=str(path), remedy=_REMEDY)
    for place, line in whole.down:
        with mending(place):
            nodes.set_state(line["downnodes"], _down_state(line.get("state", "DOWN")))
    with mending(str(path)):
        nodes.resolve_sets()
    cluster = _cluster(nodes, partitions, whole, notes)
    for file in accounting:
        cluster = read_sacctmgr(file, cluster, notes)
    note_others(whole.settings, whole.places, notes, has_limits=bool(accounting))
    places = _places(cluster, nodes, partitions, whole)
    return ImportedCluster(cluster, notes.unhonoured, tuple(notes.notes), places, str(path))


def _places(
    cluster: Cluster, nodes: SlurmNodes, partitions: Iterable[Line], whole: "_WholeCluster"
) -> dict[str, str]:
    lines = {line["partitionname"]: place for place, line in partitions}
    places = {f"nodes[{g}]": nodes.places[names_of(group)[0]] for g, group in enumerate(cluster.nodes)}
    for p, partition in enumerate(cluster.partitions):
        if partition.name in lines:
            places[f"partitions[{p}]"] = lines[partition.name]
    for field, setting in (
        ("scheduler", "preempttype"),
        ("scheduler.preempt_mode", "preemptmode"),
        ("priority", "prioritytype"),
        ("priority.tres", "priorityweighttres"),
        ("priority.fairshare", "priorityweightfairshare"),
        ("priority.qos", "priorityweightqos"),
        ("priority.partition", "priorityweightpartition"),
        ("licenses", "licenses"),
    ):
        if setting in whole.places:
            places[field] = whole.places[setting]
    return places


def _down_state(text: str) -> str:
    return "drain" if "DRAIN" in text.upper() else "down"


class _WholeCluster:
    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.down: list[Line] = []
        self.licenses: list[str] = []

    def add(self, place: str, line: dict[str, str]) -> None:
        self.settings |= line
        self.places |= dict.fromkeys(line, place)

    def add_license(self, line: dict[str, str]) -> None:
        self.licenses.append(f"{line['licensename']}:{line.get('total', '1')}")

    def place(self, *names: str) -> str:
        return next((self.places[name] for name in names if name in self.places), "")


def _cluster(nodes: SlurmNodes, lines: Iterable[Line], whole: _WholeCluster, notes: ImportNotes) -> Cluster:
    settings_of_all = whole.settings
    if not counts_memory(settings_of_all):
        notes.note("memory is not counted: SelectTypeParameters leaves it out")
        nodes.nodes = {name: {**fields, "memory": None} for name, fields in nodes.nodes.items()}
    linear = settings_of_all.get("selecttype", "").lower() == "select/linear"
    by_name: dict[str, Partition] = {}
    described: set[str] = set()
    for place, line in lines:
        with mending(place):
            partition = partition_of(line, nodes, settings_of_all, linear, notes)
        described.add(line["partitionname"])
        if partition is not None:
            by_name[partition.name] = partition
    for name in nodes.named:
        if name not in described:
            bare = partition_of({"partitionname": name}, nodes, settings_of_all, linear, notes)
            if bare is not None:
                by_name[name] = bare
    one_default(by_name.values(), notes)
    with mending(whole.place("priorityweighttres", "priorityweightage", "prioritytype")):
        priority = priority_of(settings_of_all, notes)
    with mending(whole.place("preemptexempttime", "preempttype", "schedulerparameters")):
        scheduler = scheduler_of(settings_of_all, notes)
    with mending(whole.place("licenses")):
        licenses = licenses_of(",".join([settings_of_all.get("licenses", ""), *whole.licenses]).strip(","))
    return Cluster(
        name=settings_of_all.get("clustername", "cluster"),
        nodes=group_nodes(nodes.nodes),
        partitions=_one_default_only(tuple(by_name.values()), notes),
        licenses=licenses,
        priority=priority,
        scheduler=scheduler,
    )


def _one_default_only(partitions: tuple[Partition, ...], notes: ImportNotes) -> tuple[Partition, ...]:
    """Return partitions of which the last default one is the default, as Slurm has it."""
    named = [one.name for one in partitions if one.default]
    if len(named) < 2:
        return partitions
    notes.note(f"several partitions are the default: {named[-1]}, the last, is taken")
    return tuple(replace(one, default=one.name == named[-1]) for one in partitions)
