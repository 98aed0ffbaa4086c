"""A site beside an SWF log of 21 fields: files ``LOG.swf.machines``, ``.queues``, ``.users``, ``.groups``.

The layout of AleaNG, of JSSPP's models and of MetaCentrum's logs: tables of cells between blanks, whose
columns a comment names. Only the machines must be there.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bridge.base import files
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster, NodeGroup, Partition, SchedulerParameters
from bridge.cluster.imported import ImportedCluster, ImportNotes
from bridge.cluster.limits import Account, Qos, User

#: Kinds of files beside the log -> their columns where no comment names them.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "machines": ("cl_id", "name", "nodes", "cpus", "speed", "gb_ram", "properties", "gpus"),
    "queues": ("id", "queue_name", "cpu_quota", "priority"),
    "users": ("user_id", "user_name", "shares", "cpu_quota"),
    "groups": ("group_id", "group_name", "shares", "cpu_quota"),
}
#: What columns are called -> what they are here. MiB of a unit of memory stand behind it.
_WORDS = {"cl_id": "id", "user_id": "id", "group_id": "id", "cluster_name": "name", "queue_name": "name"}
_WORDS |= {"user_name": "name", "group_name": "name", "property": "properties", "cpu_limit": "cpu_quota"}
_MEMORY = {"gb_ram": 1024.0, "ram_gb": 1024.0, "ram(gb)": 1024.0, "ram(mb)": 1.0, "ram(kb)": 1 / 1024}
_READ = {"id", "name", "nodes", "cpus", "speed", "memory", "properties", "gpus", "cpu_quota", "priority"}
_READ |= {"shares"}
#: Fields of an SWF record: user, group, and how many there must be to read them.
_USER, _GROUP = 11, 12
#: A property that every machine has.
ANY = "all"


@dataclass(frozen=True)
class SwfSite:
    """What the files beside a log say: rows by kind, cells by column; and where each row stands.

    Attributes:
        rows: kind -> rows in the file's order, each its cells by name, ``where`` among them.
        unread: columns that nothing here reads -> rows that have them.
    """

    rows: Mapping[str, tuple[Mapping[str, str], ...]]
    unread: Mapping[str, int] = field(default_factory=dict)

    def names(self, kind: str) -> dict[int, str]:
        return {_whole(row, "id"): row["name"] for row in self.rows.get(kind, ())}

    @property
    def properties(self) -> set[str]:
        """What machines have, by which jobs ask for them."""
        return {word for row in self.rows["machines"] for word in _properties(row)}

    @property
    def most_cores(self) -> int:
        return max(_whole(row, "cpus") for row in self.rows["machines"])


def read_swf_site(path: Path) -> SwfSite:
    """Return what stands beside an SWF log; BridgeError: there are no machines, or a row is none."""
    base = path.name.removesuffix(files.compression(path))
    rows: dict[str, tuple[Mapping[str, str], ...]] = {}
    unread: dict[str, int] = {}
    for kind in _COLUMNS:
        beside = next(
            (
                one
                for name in (f"{base}.{kind}", f"{base.removesuffix('.swf')}.{kind}")
                for one in (path.with_name(name), path.with_name(f"{name}.gz"))
                if files.is_there(one, Path.is_file)
            ),
            None,
        )
        if beside is not None:
            rows[kind] = tuple(_rows(beside, kind))
            for name in (name for row in rows[kind] for name in row if name not in _READ and name != "where"):
                unread[f"{kind}: {name}"] = unread.get(f"{kind}: {name}", 0) + 1
    if not rows.get("machines"):
        remedy = f"Put {base}.machines beside it (and .queues, .users, .groups)."
        raise BridgeError("no file beside it tells of machines", where=str(path), remedy=remedy)
    for row in rows["machines"]:
        for name in ("nodes", "cpus"):
            if _whole(row, name) < 1:
                raise BridgeError(f"{name} is 0", where=row["where"], remedy="Mend the line.")
    return SwfSite(rows, unread)


def _rows(path: Path, kind: str) -> Iterator[dict[str, str]]:
    names: tuple[str, ...] = _COLUMNS[kind]
    for number, line in enumerate(files.read_text(path).split("\n"), start=1):
        cells = line.replace("\t", " ").split()
        if not cells:
            continue
        if cells[0].startswith((";", "#")):
            words = " ".join(cells).lstrip(";# ").lower().split()
            if {"nodes", "name"} & {*words} or any(word.endswith("_name") for word in words):
                names = tuple(words)
            continue
        if len(cells) < min(len(names), len(_COLUMNS[kind]) - (kind == "machines")):
            what = f"has {counted(len(cells), 'cell')}, where the columns are {', '.join(names)}"
            raise BridgeError(what, where=f"{path}:{number}", remedy="Mend the line.")
        row = {"where": f"{path}:{number}"}
        for place, cell in enumerate(cells):
            name = names[place] if place < len(names) else f"column {place + 1}"
            if name in _MEMORY:
                row["memory"] = f"{float(_number(cell, row['where'])) * _MEMORY[name]:.0f}"
            else:
                row[_WORDS.get(name, name)] = cell
        yield row


def _number(cell: str, where: str) -> str:
    if not re.fullmatch(r"\d{1,15}(\.\d{1,15})?", cell, re.ASCII):
        raise BridgeError(f"{cell[:40]!r} is no number", where=where, remedy="Mend the line.")
    return cell


def _whole(row: Mapping[str, str], name: str, default: int | None = None) -> int:
    if name not in row and default is not None:
        return default
    cell = row.get(name, "")
    if not re.fullmatch(r"\d{1,15}(\.0{1,9})?", cell, re.ASCII):
        what = f"its {name} is {cell[:40]!r}, which is no whole number" if cell else f"it has no {name}"
        raise BridgeError(what, where=row["where"], remedy="Mend the line.")
    return int(float(cell))


def _processors(row: Mapping[str, str]) -> int:
    return _whole(row, "nodes") * _whole(row, "cpus")


def _properties(row: Mapping[str, str]) -> tuple[str, ...]:
    words = re.split(r"[,:;]", row.get("properties", ""))
    return tuple(word for word in dict.fromkeys(words) if word and word not in (ANY, "-1", "none"))


def import_swf_site(path: Path) -> ImportedCluster:
    """Return the cluster of the files beside an SWF log.

    Queues are partitions of all nodes, of which one with a higher priority comes first; their quotas are
    limits of a QOS. Groups are accounts, users are in the group in which the log has most of their jobs. All
    quotas hold at one time. Machines with more processors come first.
    """
    site, notes = read_swf_site(path), ImportNotes()
    for what, count in site.unread.items():
        notes.leave(f"column of {what}", count)
    exclusive = site.most_cores == 1
    groups, partitions, qos = [], [], []
    sizes = sorted({_processors(row) for row in site.rows["machines"]}, reverse=True)
    for row in site.rows["machines"]:
        if row.get("speed", "1") not in ("1", "1.0"):
            notes.leave("machines with a speed of their own: runs are as logged")
        groups.append(
            NodeGroup(
                name=row["name"],
                count=_whole(row, "nodes"),
                cores=_whole(row, "cpus"),
                memory=_whole(row, "memory", 0) or None,
                gpus={"gpu": n} if (n := _whole(row, "gpus", 0)) else {},
                features=_properties(row),
                weight=1 + sizes.index(_processors(row)),
            )
        )
    levels = sorted({_whole(row, "priority", 0) for row in site.rows.get("queues", ())})
    for row in site.rows.get("queues", ()):
        quota = _whole(row, "cpu_quota", 0)
        if quota:
            qos.append(Qos(name=row["name"], grp_tres={"cores": quota}))
        partitions.append(
            Partition(
                name=row["name"],
                exclusive=exclusive,
                tier=levels.index(_whole(row, "priority", 0)) + 1,
                qos=row["name"] if quota else "",
            )
        )
    if not partitions:
        partitions = [Partition(name=ANY, exclusive=exclusive, default=True)]
        notes.note("no queues beside the log: all nodes are one partition")
    if qos:
        notes.note("a queue's quota is the grp_tres of a QOS of its name: cores in use at one time")
    if "users" in site.rows and "groups" in site.rows:
        notes.note("users are in the group in which the log has most of their jobs")
    cluster = Cluster(
        name=files.stem(path),
        scheduler=SchedulerParameters(limits="all"),
        nodes=tuple(groups),
        partitions=tuple(partitions),
        qos=tuple(qos),
        accounts=tuple(_accounts(site)),
        users=tuple(_users(site, path)),
    )
    return ImportedCluster(cluster, notes.unhonoured, tuple(notes.notes), where=str(path))


def _quota(row: Mapping[str, str]) -> dict[str, int]:
    quota = _whole(row, "cpu_quota", 0)
    return {"cores": quota} if quota else {}


def _accounts(site: SwfSite) -> Iterator[Account]:
    for row in site.rows.get("groups", ()):
        yield Account(name=row["name"], shares=_whole(row, "shares", 1), grp_tres=_quota(row))


def _users(site: SwfSite, path: Path) -> Iterator[User]:
    accounts, own = site.names("groups"), _groups_of_users(path) if site.rows.get("users") else {}
    for row in site.rows.get("users", ()):
        account = accounts.get(own.get(_whole(row, "id"), -1), "root")
        yield User(
            name=row["name"],
            account=account,
            default=True,
            shares=_whole(row, "shares", 1),
            grp_tres=_quota(row),
        )


def _groups_of_users(path: Path) -> dict[int, int]:
    """Return the group in which a log has most of a user's jobs."""
    jobs: Counter[tuple[int, int]] = Counter()
    with files.open_read(path, files.MOST_LINE) as stream:
        for line in stream:
            cells = line.split(maxsplit=_GROUP + 1)
            if len(cells) > _GROUP and cells[0][:1] not in (b";", b"#"):
                user, group = cells[_USER], cells[_GROUP]
                if user.isdigit() and group.isdigit() and len(user) < 18 and len(group) < 18:
                    jobs[int(user), int(group)] += 1
    return {user: group for (user, group), _ in reversed(jobs.most_common())}
