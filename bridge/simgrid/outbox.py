"""Events that wait for the decision process, already as text, and the message they make."""

from collections.abc import Iterable

from bridge.simgrid import intervals
from bridge.simgrid.jsontext import dumps


class Outbox:
    """The events of the next message, each with its own timestamp (s)."""

    def __init__(self) -> None:
        self._events: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._events)

    def add(self, now: float, kind: str, data: str) -> None:
        """Queue an event whose data is JSON text."""
        self._events.append(f'{{"timestamp":{now:f},"type":"{kind}","data":{data}}}')

    def take(self, now: float) -> str:
        """Return the message with all queued events, and start the next one."""
        message = f'{{"now":{now:f},"events":[{",".join(self._events)}]}}'
        self._events.clear()
        return message

    def job_submitted(self, now: float, job_id: str, job: str, profile: str | None) -> None:
        """Queue JOB_SUBMITTED; ``job`` and ``profile`` are JSON text."""
        tail = "" if profile is None else f',"profile":{profile}'
        self.add(now, "JOB_SUBMITTED", f'{{"job_id":{dumps(job_id)},"job":{job}{tail}}}')

    def job_completed(
        self, now: float, job_id: str, state: str, return_code: int, allocation: tuple[int, ...]
    ) -> None:
        """Queue JOB_COMPLETED."""
        self.add(
            now,
            "JOB_COMPLETED",
            f'{{"job_id":{dumps(job_id)},"job_state":"{state}","return_code":{return_code},'
            f'"alloc":"{intervals.text_of(allocation)}"}}',
        )

    def resources(self, now: float, kind: str, machines: tuple[int, ...], key: str, value: str) -> None:
        """Queue an event about machines: RESOURCE_STATE_CHANGED or a NOTIFY."""
        self.add(now, kind, f'{{"{key}":{dumps(value)},"resources":"{intervals.text_of(machines)}"}}')

    def notify(self, now: float, kind: str) -> None:
        """Queue a NOTIFY without further data."""
        self.add(now, "NOTIFY", f'{{"type":"{kind}"}}')

    def job_killed(self, now: float, job_ids: Iterable[str], progress: dict[str, object]) -> None:
        """Queue JOB_KILLED; jobs that ended before the kill have no progress."""
        self.add(now, "JOB_KILLED", dumps({"job_ids": list(job_ids), "job_progress": progress}))
