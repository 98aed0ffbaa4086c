"""An agent beside a stand-in for a Slurm whose nodes differ and are shared."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_site import FakeSite
from small_policies import rule

from bridge.experiment.live_pass import site_pass_of
from bridge.worlds.slurm import agent as agents
from bridge.worlds.slurm import tracking as trackings
from bridge.worlds.slurm.agent import SlurmAgent
from bridge.worlds.slurm.settings import AgentConfig

Beside = Callable[..., SlurmAgent]


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> FakeSite:
    site = FakeSite()
    monkeypatch.setattr(agents, "POLL", 0.0)
    monkeypatch.setattr(agents, "LOOK", 0.0)
    for module in (agents, trackings):
        monkeypatch.setattr(module.time, "time", lambda: site.clock)

    class Controlled:
        def __init__(self, _: Any, **settings: Any) -> None:
            assert settings == {"details": True}

        def __call__(self, command: str, patience: float = 0) -> str:
            return site.control(command, patience)

        def close(self) -> None: ...

    monkeypatch.setattr(agents, "Control", Controlled)
    return site


@pytest.fixture
def beside(slurm: FakeSite, tmp_path: Path) -> Beside:
    def start(
        order: str = "fcfs", said: Callable[[str], None] = lambda _: None, **settings: Any
    ) -> SlurmAgent:
        config = AgentConfig(**({"partition": "gpu,cpu", "max_starts_per_s": 1e6} | settings))  # type: ignore[arg-type]
        config = replace(config, audit=tmp_path / "audit.jsonl")
        site = site_pass_of(rule(order), 2)
        return SlurmAgent(config, rule(order), slurm, f"{order}+easy", said, site)  # type: ignore[arg-type]

    return start
