"""Power states as a host declares them: which compute, which sleep, which are only passed."""

from functools import lru_cache

from bridge.batsim.events import Resource


def states(resource: Resource) -> tuple[frozenset[int], frozenset[int]]:
    """Return a host's computing and sleeping power states.

    ``wattage_per_state`` says how many there are; ``sleep_pstates`` is "sleep:off:on, …", where off and on
    are passed on the way and cannot be asked for. A host that declares nothing has the computing state 0.
    """
    declared = resource.properties
    return _parse(declared.get("wattage_per_state", ""), declared.get("sleep_pstates", ""))


@lru_cache(maxsize=1024)  # hosts of a cluster share their texts
def _parse(watts: str, sleep_states: str) -> tuple[frozenset[int], frozenset[int]]:
    count = max(1, len([part for part in watts.split(",") if part.strip()]))
    sleeping: set[int] = set()
    passed: set[int] = set()
    for triplet in sleep_states.split(","):
        numbers = [part.strip() for part in triplet.split(":")]
        if len(numbers) == 3 and all(part.isdecimal() for part in numbers):
            sleep, off, on = map(int, numbers)
            sleeping.add(sleep)
            passed.update((off, on))
    computing = frozenset(range(count)) - sleeping - passed
    return computing, frozenset(sleeping)
