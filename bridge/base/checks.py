"""What a command that looks at a machine or a cluster has found, one thing after the other."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class CheckResult:
    """One thing that was looked at.

    Attributes:
        what: its name.
        status: ok, missing (something optional), broken (nothing works without it).
        detail: what is there, or what is wrong.
        remedy: what to do, or what it costs to do nothing; of what is ok: a hint, if there is any.
    """

    what: str
    status: Status
    detail: str
    remedy: str = ""

    @property
    def is_ok(self) -> bool:
        """Tell whether nothing need be done."""
        return self.status == "ok"
