"""The profiles of a simulation's jobs, as far as the platform has told: the storage they need, and copies."""

from collections.abc import Mapping

from bridge.batsim import profiles
from bridge.batsim.events import Fields, JobSubmitted, SimulationBegins
from bridge.batsim.storage import StorageMap


class JobProfiles:
    """Profiles by workload and name.

    Args:
        begin: the first message's; None before there is one.
        given: storage label -> host name, from the user.

    Raises:
        BridgeError: the user names a host that is no storage.
    """

    def __init__(self, begin: SimulationBegins | None = None, given: Mapping[str, str] | None = None) -> None:
        self._storage = StorageMap(begin.storage if begin else (), given or {})
        self._known: dict[str, dict[str, Fields]] = {}
        if begin is not None:
            self._known = {workload: dict(known) for workload, known in begin.profiles.items()}

    def note(self, event: JobSubmitted) -> Fields | None:
        """Return a submitted job's profile, which may have come with it; None if it is not known."""
        known = self._known.setdefault(event.job_id.partition("!")[0], {})
        if event.profile_fields is not None:
            known[event.profile] = event.profile_fields
        return known.get(event.profile)

    def storage_of(self, event: JobSubmitted) -> dict[str, int] | str | None:
        """Return the storage host of each label of a submitted job, or why it cannot have one.

        None for a job that needs no storage.
        """
        profile = self.note(event)
        if profile is None or profile.get("type") == "delay":
            return None
        labels = profiles.storage_labels(profile, self._known[event.job_id.partition("!")[0]].get)
        found = self._storage.resolve(labels) if labels else None
        if isinstance(found, str):
            return f"its profile uses the storage {found!r}, which the platform does not have"
        return found

    def copies(self, workload: str, name: str, prefix: str) -> dict[str, Fields]:
        """Return a profile under a new name, its parts likewise before it; empty if one is not known.

        Args:
            workload, name: of the profile.
            prefix: what stands before each name.
        """
        made: dict[str, Fields] = {}
        profile = self._known.get(workload, {}).get(name)
        if profile is None:
            return {}
        if profile.get("type") == "composed":
            parts = [str(part) for part in profile.get("seq", ())]
            for part in dict.fromkeys(parts):
                copied = self.copies(workload, part, prefix)
                if not copied:
                    return {}
                made |= copied
            profile = {**profile, "seq": [prefix + part for part in parts]}
        return made | {prefix + name: profile}
