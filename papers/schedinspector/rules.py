"""Fixed rules that answer as agents do: what an agent has to beat before its learning is worth anything."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.encode.encoder import Encoder
from bridge.env.batch import View

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rule:
    """A rule for INSPECT: rejects a pick for which any condition holds.

    Attributes:
        says: the rule in words.
        reject: features that are above 0 where a condition holds; any of them rejects.
    """

    says: str
    reject: tuple[str, ...]

    def encoder(self) -> Encoder:
        """Return what the rule sees."""
        return Encoder("inspect", {str(k): text for k, text in enumerate(self.reject)})

    def __call__(self, view: View) -> Ints:
        """Return 1 (reject) or 0 (accept) for each inspected job."""
        return np.asarray((view.rows > 0).any(1), np.int64)


#: "reject iff blocked" and with "or if it takes more than half of the free nodes".
RULES: Mapping[str, Rule] = {
    "reject-blocked": Rule("reject iff blocked", ("1 - fits",)),
    "reject-blocked-or-large": Rule(
        "reject iff blocked, or larger than half of the free nodes", ("1 - fits", "n - free/2")
    ),
}
