"""Walltimes for detailed jobs: the requests of the log, none at all, or a multiple of the requests.

A job that meets contention takes longer than its logged run time, so that its logged request may kill it.
Which walltime a detailed job gets is therefore a choice of the experiment, apart from what is believed.
"""

import math
from dataclasses import dataclass

from bridge.errors import BridgeError


@dataclass(frozen=True)
class Walltime:
    """The walltime that a request becomes: `factor` times as long; infinite = none.

    Attributes:
        name: as it was written: ``keep``, ``none`` or ``factor:F``.
    """

    name: str = "keep"
    factor: float = 1.0

    def of(self, request: float) -> float | None:
        """Return the walltime in seconds, None for none; a whole request times 1 stays whole."""
        if math.isinf(self.factor) or request <= 0:
            return None
        return request if self.factor == 1.0 else request * self.factor


KEEP = Walltime()
NONE = Walltime("none", math.inf)


def walltime(text: str) -> Walltime:
    """Return the walltime policy ``keep``, ``none`` or ``factor:F``.

    Raises:
        BridgeError: it is none of these, or F is not a number above 0.
    """
    if text in ("keep", "none"):
        return KEEP if text == "keep" else NONE
    kind, _, number = text.partition(":")
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if kind != "factor" or not 0 < factor < math.inf:
        raise BridgeError(
            "unknown walltime policy",
            where=f"walltime {text!r}",
            remedy="Write keep (the log's requests), none, or factor:F, for example factor:1.5.",
        )
    return Walltime(text, factor)
