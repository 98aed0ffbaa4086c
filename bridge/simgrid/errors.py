"""What ends a simulation early: one clear message, and the exit status that goes with it."""

#: The simulation ended as it should.
OK = 0
#: A bad platform, workload or events file, an illegal decision, a socket that cannot be used.
REFUSED = 1
#: A command line that is not understood, or asks for what is not supported.
USAGE = 2
#: Nothing can happen any more, yet jobs are unfinished: the decision process is waiting for ever.
DEADLOCK = 3
#: The decision process did not come, or did not answer, within ``--peer-timeout``.
NO_PEER = 4
#: SimGrid itself stopped the process.
CRASHED = 70


class ModelError(Exception):
    """A mistake of the user or of the decision process.

    Args:
        what: what is wrong, one sentence without a full stop.
        where: a file, a job, an option, the number of a message. Empty if there is none.
        remedy: what can be done about it. Empty if nothing is known.
        status: the exit status of the process.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "", status: int = REFUSED) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy
        self.status = status

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.remedy}" if self.remedy else text
