"""A trained agent as a pybatsim scheduler: pybatsim holds the socket, dispatcher and referee are ours.

    pybatsim "$(python -m bridge.experiment.pybatsim_agent)" -t 0 -o '{"agent": "agents/my-agent"}'

(this module, run, prints its own path). Options are those of `bridge.worlds.batsim.pybatsim_adapter`, with
the agent's folder in place of ``order``, ``backfill`` and ``candidate_order``, which are the agent's own.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

# as in the adapter: pybatsim has put this folder and the one above first on the path
_HERE = Path(__file__).resolve().parent
_path = list(sys.path)
sys.path[:] = [entry for entry in _path if entry and Path(entry).resolve() not in (_HERE, _HERE.parent)]
try:
    from bridge.base.errors import BridgeError
    from bridge.experiment.prepare import with_agent
    from bridge.worlds.batsim.dispatcher import DispatcherConfig
    from bridge.worlds.batsim.pybatsim_adapter import PolicyScheduler, setup_of
finally:
    sys.path[:] = _path

#: Options that an agent has answered already.
_ITS_OWN = ("order", "backfill", "candidate_order")


def setup_of_agent(options: Mapping[str, Any]) -> DispatcherConfig:
    """Return the setup with the agent of an option; BridgeError: there is none, or it cannot decide here."""
    from bridge.learn.agent import require_protocol
    from bridge.learn.checkpoint import load

    if not isinstance(options.get("agent"), str):
        raise BridgeError(
            "no agent decides", where="agent", remedy='Give its folder: {"agent": "agents/mine"}.'
        )
    own = [name for name in _ITS_OWN if name in options]
    if own:
        raise BridgeError("is part of the agent", where=", ".join(own), remedy="Leave it out.")
    agent = load(options["agent"])
    require_protocol(agent, "standard", cross=False)
    estimator = agent.recipe.setup.estimator or "requested"
    if estimator.strip() != "requested":
        what, remedy = "reads the log of the simulated jobs", "Use `bridge decide --workload LOG`."
        raise BridgeError(what, where=f"estimator {estimator!r} of {options['agent']}", remedy=remedy)
    rest = setup_of({name: value for name, value in options.items() if name != "agent"})
    return with_agent(replace(rest, policy=agent.recipe.policy()), agent)


class AgentScheduler(PolicyScheduler):
    """Collects pybatsim's calls of one message, and lets the agent answer."""

    setup: Callable[[Mapping[str, Any]], DispatcherConfig] = staticmethod(setup_of_agent)


#: pybatsim looks for a class named after the file.
Pybatsim_agent = AgentScheduler

if __name__ == "__main__":
    print(Path(__file__).resolve())
