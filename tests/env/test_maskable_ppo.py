"""sb3-contrib's MaskablePPO trains on our environments, and the example shows how."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from load_examples import example

sb3_contrib = pytest.importorskip(
    "sb3_contrib", reason="sb3-contrib is not installed (pip install sb3-contrib)"
)
import gymnasium  # noqa: E402
import torch  # noqa: E402
from env_checker import NAMES  # noqa: E402

from bridge.env.env_config import ENCODERS  # noqa: E402
from bridge.env.register import PICK_OR_KILL  # noqa: E402


class Watched(gymnasium.Wrapper):  # type: ignore[type-arg]
    """Keeps what every step told."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.told: list[dict[str, Any]] = []

    def step(self, action: Any) -> Any:
        answer = self.env.step(action)
        self.told.append(answer[-1])
        return answer


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def learns(model: Any, env: Watched, asked: int, steps: int) -> None:
    """Train for at least so many steps; only legal actions may be taken, and weights must move."""
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(asked)
    assert len(env.told) == model.num_timesteps == steps
    assert not any(info["invalid"] for info in env.told)
    after = list(model.policy.parameters())
    assert all(torch.isfinite(p).all() for p in after)
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("name", [*NAMES, pytest.param(PICK_OR_KILL, marks=pytest.mark.slow)])
def test_maskable_ppo_trains_and_takes_legal_actions_only(name: str) -> None:
    size = {"steps": 40} if name == PICK_OR_KILL else {"length": 64}
    env = Watched(gymnasium.make(name, **size))
    model = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=1, seed=1)
    learns(model, env, 300, 384)


def test_maskable_ppo_trains_on_rows_and_context() -> None:
    shape = replace(
        ENCODERS["pick"],
        window=8,
        running={"nodes": "n/n_max", "left": "min(log10(1 + left)/7, 1)"},
        running_rows=(4,),
        machine={"used": "used[r]", "goal": "goal[r]"},
    )
    env = Watched(gymnasium.make("bridge/Pick-v0", length=64, encoder=shape))
    model = sb3_contrib.MaskablePPO("MultiInputPolicy", env, n_steps=64, batch_size=32, n_epochs=1, seed=1)
    assert model.policy.features_extractor.features_dim == 8 * len(shape.features) + 4 * 2 + 2
    learns(model, env, 128, 128)


@pytest.mark.parametrize("task", ["backfill", pytest.param("preempt", marks=pytest.mark.slow)])
def test_the_example_compares_the_agent_with_a_rule(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    shown = example("maskable_ppo")
    monkeypatch.setattr(shown, "JUDGED", range(1500, 1764, 132))
    shown.main(2048, task)
    *_, before, after = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (before[0], after[0]) == ("0", "2048")
    rule = before[2]
    assert after[2] == rule
    assert np.all(np.array([*before[1:], *after[1:]], float) >= 1.0)
