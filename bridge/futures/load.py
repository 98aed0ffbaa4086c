"""A state by what holds it: a run folder and a time, or a state's file."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from bridge.errors import BridgeError
from bridge.futures.of_run import state_of_run
from bridge.futures.state import State
from bridge.futures.statefile import read_state


def load_state(
    source: PathLike[str] | str,
    time: float | None = None,
    policy: str = "",
    *,
    progress: Callable[[int], None] | None = None,
) -> State:
    """Return the state of a run at a time, or of a file.

    Args:
        source: a run folder, or a state's file.
        time: of a run: seconds on its clock.
        policy: of a run that an agent decided: the rule that futures are played by.
        progress: see `bridge.futures.of_run.state_of_run`.

    Raises:
        BridgeError: see there; or the time is missing, or given for a file.
    """
    from bridge.judge.run import read_run

    source = Path(source)
    if source.is_dir():
        if time is None:
            what = "the state of a run is that of a time"
            raise BridgeError(what, where=str(source), remedy="Give --at SECONDS.")
        return state_of_run(read_run(source), time, policy, progress=progress)
    if time is not None and source.exists():
        remedy = "Leave out --at, or name a run folder."
        raise BridgeError("a state has its own time", where=str(source), remedy=remedy)
    return read_state(source)
