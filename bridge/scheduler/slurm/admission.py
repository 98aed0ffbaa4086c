"""Who may name an advance reservation: Users= and Accounts=, of all or of all but some."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Admission:
    """Names of users and of accounts, of whom a job must be; if they are `barred`, of whom it may not be.

    Without names of users, or of accounts, those of all may.
    """

    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    users_barred: bool = False
    accounts_barred: bool = False

    def admits(self, user: str, accounts: Collection[str]) -> bool:
        """Tell whether a job of a user may name it; `accounts`: the job's, and those above it."""
        is_user = not self.users or (user in self.users) != self.users_barred
        is_account = not self.accounts or self.accounts.isdisjoint(accounts) == self.accounts_barred
        return is_user and is_account

    def changed(self, settings: Mapping[str, str]) -> "Admission":
        """Return this with the settings of a command, named in small letters; ValueError: one is odd."""
        result = self
        for kind in ("users", "accounts"):
            if kind in settings:
                names, is_barred = _names(settings[kind])
                fields: dict[str, Any] = {kind: names, f"{kind}_barred": is_barred}
                result = replace(result, **fields)
            for sign in "+-":
                if (text := settings.get(kind + sign)) is not None:
                    names, is_barred = _names(text)
                    if is_barred:
                        raise ValueError(f"{kind}{sign}={text[:40]} is not modelled")
                    before = getattr(result, kind)
                    after = before | names if sign == "+" else before - names
                    if getattr(result, f"{kind}_barred") or not after:
                        raise ValueError(f"{kind}{sign}={text[:40]} of this reservation is not modelled")
                    result = replace(result, **{kind: after})
        return result


#: Of a reservation that names nobody.
ALL = Admission()


def _names(text: str) -> tuple[frozenset[str], bool]:
    words = [word for word in text.split(",") if word]
    barred = [word.startswith("-") for word in words]
    if any(barred) != all(barred) or not words:
        raise ValueError(f"{text[:40]!r} names no users or accounts, or some with a minus and some without")
    return frozenset(word.lstrip("-") for word in words), all(barred)
