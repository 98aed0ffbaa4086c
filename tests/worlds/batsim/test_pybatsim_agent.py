"""An agent decides under pybatsim what it decides without."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="agents need PyTorch")

from detailed import needs_simgrid, run_on_model
from test_pybatsim import HOSTS, needs_pybatsim, rows, run, workload

import bridge
from bridge.base.errors import BridgeError
from bridge.experiment.prepare import with_agent
from bridge.learn.checkpoint import load
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.process import DecisionProcess

pytestmark = [needs_pybatsim, needs_simgrid]

HERE = Path(bridge.__file__).parent
AGENT = HERE / "experiment" / "pybatsim_agent.py"
ZOO = HERE.parent / "zoo"


@pytest.mark.parametrize("name", ["sem-theta", "rlbackfilling-lublin-1-sjf"])
def test_an_agent_decides_as_without_pybatsim(tmp_path: Path, name: str) -> None:
    jobs, own = workload(60), tmp_path / "own"
    own.mkdir()
    agent = load(ZOO / name)
    setup = with_agent(DispatcherConfig(agent.recipe.policy()), agent)
    # first, so that the other process finds compiled kernels
    result = run_on_model(own, jobs, HOSTS, DecisionProcess(setup, strict=True))

    options = {"agent": str(ZOO / name), "strict": True, "out": "decisions.json"}
    said = run(tmp_path, jobs, str(AGENT), "-o", json.dumps(options))
    assert "Job submitted: 60 , scheduled: 60 , rejected: 0" in said
    decided = json.loads((tmp_path / "decisions.json").read_text())
    assert decided == json.loads(json.dumps(result.as_dict()))
    assert decided["outcome"] == "ended"
    assert rows(tmp_path) == rows(own)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "agent: no agent decides"),
        ({"agent": "zoo/sem-theta", "order": "sjf"}, "order: is part of the agent"),
        ({"agent": "zoo/schedinspector-hpc2n"}, "has learnt under the protocol schedgym"),
        ({"agent": "zoo/rlschert"}, "scheduler"),
        ({"agent": "zoo/sem-theta", "orders": "sjf"}, "unknown option"),
        ({"agent": "zoo/nobody"}, "nobody"),
    ],
)
def test_what_cannot_decide_is_named(options: dict[str, str], says: str) -> None:
    from bridge.experiment.pybatsim_agent import setup_of_agent

    if "agent" in options:
        options = options | {"agent": str(HERE.parent / options["agent"])}
    with pytest.raises(BridgeError, match=says):
        setup_of_agent(options)
