"""The decision process's socket, which also sees its platform program end and counts finished jobs."""

from collections.abc import Callable
from typing import Any

from bridge.batsim.endpoint import Endpoint, PeerGoneError

_FINISHED = b'"JOB_COMPLETED"'


class WatchedEndpoint(Endpoint):
    """An endpoint that stops waiting as soon as nobody can send any more.

    Args:
        address: where to bind.
        gone: tells whether the platform program has ended.
        progress: called with the number of jobs that have finished.
        more: see `Endpoint`.
    """

    def __init__(
        self, address: str, gone: Callable[[], bool], progress: Callable[[int], None], **more: Any
    ) -> None:
        self._gone, self._progress, self._finished = gone, progress, 0
        super().__init__(address, **more)

    def receive(self) -> bytes:
        """See `Endpoint.receive`."""
        frame = super().receive()
        ended = frame.count(_FINISHED)
        if ended:
            self._finished += ended
            self._progress(self._finished)
        return frame

    def _look(self) -> None:
        super()._look()
        if self._gone():
            raise PeerGoneError("the platform program ended", where=self.address)
