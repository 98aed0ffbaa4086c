"""The accounting of a site from the commands that set it up: `sacctmgr add user …`, `modify qos …`."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.cluster.description import Cluster
from bridge.cluster.imported import ImportNotes
from bridge.cluster.limits import Account, Qos, User
from bridge.cluster.sacctmgr import AMOUNTS, ASSOCIATION_COUNTS, FLAGS, QOS_AMOUNTS, QOS_COUNTS, TIMES
from bridge.cluster.slurm_partitions import number_of, preempt_mode_of, seconds_of, words_of
from bridge.cluster.tres import amounts_of


@dataclass
class SacctmgrCommands:
    """What the commands so far made; `notes` collects what no scheduler honours."""

    notes: ImportNotes = field(default_factory=ImportNotes)
    qos: dict[str, Qos] = field(default_factory=lambda: {"normal": Qos(name="normal")})
    accounts: dict[str, Account] = field(default_factory=dict)
    users: dict[tuple[str, str], User] = field(default_factory=dict)

    def run(self, line: str) -> None:
        words = [word for word in shlex.split(line) if not re.fullmatch(r"-[a-zA-Z]+|--\w+", word)]
        if not words or words[0] != "sacctmgr":
            raise ValueError(f"{line[:60]!r} is no command of sacctmgr")
        if len(words) < 4:
            raise ValueError(f"{line[:60]!r} lacks what to add or to modify")
        verb, kind, names = words[1].lower(), words[2].lower(), words[3].split("=", 1)[-1].split(",")
        options = dict(_pair(word) for word in words[4:] if word.lower() not in ("set", "where"))
        if verb in ("add", "create"):
            self._add(kind, names, options)
        elif verb in ("modify", "update"):
            self._modify(kind, names, options)
        elif verb in ("delete", "remove"):
            self._delete(kind, names)
        else:
            raise ValueError(f"sacctmgr {verb} is not known here")

    def _add(self, kind: str, names: Iterable[str], options: dict[str, str]) -> None:
        for name in names:
            if kind == "account":
                parent = options.pop("parent", "root")
                self.accounts[name] = Account(name=name, parent=parent, **self._association(options))
            elif kind == "user":
                account = options.get("account") or options.get("accounts") or "root"
                own = {k: v for k, v in options.items() if k not in ("account", "accounts")}
                for one in account.split(","):
                    self.users[name, one] = User(name=name, account=one, **self._association(own))
            elif kind == "qos":
                self.qos[name] = Qos(name=name, **self._qos(options))
            elif kind != "cluster":
                raise ValueError(f"sacctmgr add {kind} is not known here")

    def _modify(self, kind: str, names: Iterable[str], options: dict[str, str]) -> None:
        for name in names:
            if kind == "qos":
                if name not in self.qos:
                    raise ValueError(f"there is no QOS {name}")
                old = self.qos[name]
                self.qos[name] = replace(old, **_over(old, self._qos(options)))
            elif kind == "account":
                old_account = self.accounts.get(name, Account(name=name))
                new = self._association({k: v for k, v in options.items() if k != "parent"})
                if "parent" in options:
                    new["parent"] = options["parent"]
                self.accounts[name] = replace(old_account, **_over(old_account, new))
            elif kind == "user":
                keys = [
                    key for key in self.users if key[0] == name and options.get("account", key[1]) == key[1]
                ]
                new = self._association({k: v for k, v in options.items() if k != "account"})
                for key in keys:
                    self.users[key] = replace(self.users[key], **_over(self.users[key], new))
            else:
                raise ValueError(f"sacctmgr modify {kind} is not known here")

    def _delete(self, kind: str, names: Iterable[str]) -> None:
        for name in names:
            if kind == "qos":
                self.qos.pop(name, None)
            elif kind == "account":
                self.accounts.pop(name, None)
            elif kind == "user":
                self.users = {key: user for key, user in self.users.items() if key[0] != name}

    def _association(self, options: dict[str, str]) -> dict[str, Any]:
        new: dict[str, Any] = {}
        for name, value in options.items():
            if name in ("fairshare", "share", "shares"):
                new["shares"] = -1 if value.lower() == "parent" else number_of(value) or 0
            elif name in ("qos", "qoslevel"):
                new["qos"] = words_of(value)
            elif name in ("defaultqos", "defqos"):
                new["default_qos"] = value
            elif name in ("defaultaccount", "description", "organization", "adminlevel", "cluster"):
                continue
            elif not self._limit(name, value, ASSOCIATION_COUNTS, AMOUNTS, new):
                raise ValueError(f"{name}= of an account or a user is not known here")
        return new

    def _qos(self, options: dict[str, str]) -> dict[str, Any]:
        new: dict[str, Any] = {}
        for name, value in options.items():
            if name == "flags":
                for word in filter(None, re.split(r"[,+]", value)):
                    if word.lower() not in FLAGS:
                        raise ValueError(f"Flags={word} of a QOS is not known here")
                    new[FLAGS[word.lower()]] = True
            elif name == "preempt":
                new["preempt"] = words_of(value)
            elif name == "preemptmode":
                new["preempt_mode"] = preempt_mode_of(value, self.notes)
            elif name == "gracetime":
                new["grace_time"] = seconds_of(value, minutes=False) or 0
            elif name == "usagefactor":
                new["usage_factor"] = float(value)
            elif name in ("description", "descr"):
                continue
            elif not self._limit(name, value, QOS_COUNTS, QOS_AMOUNTS, new):
                raise ValueError(f"{name}= of a QOS is not known here")
        return new

    def _limit(
        self, name: str, value: str, counts: dict[str, str], amounts: dict[str, str], new: dict[str, Any]
    ) -> bool:
        if name in counts:
            new[counts[name]] = number_of(value)
        elif name in amounts:
            new[amounts[name]] = amounts_of(value, self.notes)
        elif name in TIMES:
            new[TIMES[name]] = seconds_of(value)
        else:
            return False
        return True

    def on(self, cluster: Cluster) -> Cluster:
        return replace(
            cluster,
            qos=tuple(self.qos.values()),
            accounts=tuple(self.accounts.values()),
            users=tuple(self.users.values()),
        )


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise ValueError(f"{word[:40]!r} is no setting with its value")
    return name.lower().removesuffix("+").removesuffix("-"), value


def _over(old: object, new: dict[str, Any]) -> dict[str, Any]:
    """Return settings in which new amounts stand beside the old ones."""
    return {
        name: {**getattr(old, name), **value} if isinstance(value, dict) else value
        for name, value in new.items()
    }
