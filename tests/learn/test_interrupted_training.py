"""A signal whose KeyboardInterrupt was lost ends a training at its next decision or gradient step."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bridge.base.interrupts import interrupts_once
from bridge.learn.learner import optimizer_step
from bridge.learn.rollout import collect_by, play

#: What a signal leaves whose exception compiled code has dropped.
TERMINATED = 128 + 15


def a_batch(steps: list[str]) -> Any:
    """Return a batch with a decision at each of its steps, which counts them."""
    view = SimpleNamespace(
        rows=np.zeros((1, 2)), offsets=np.array([0, 1]), keys=np.zeros(1), context=np.zeros((1, 0))
    )

    def step(_actions: object) -> Any:
        steps.append("step")
        return view

    encoder = SimpleNamespace(encoder=SimpleNamespace(width=2, context=0))
    return SimpleNamespace(
        reset=lambda _: view, step=step, encoder=encoder, decision_kinds=np.zeros(1, np.int64)
    )


@pytest.mark.parametrize("plays", [play, collect_by])
def test_no_further_decision_is_played(plays: Any) -> None:
    steps: list[str] = []
    with interrupts_once() as signals:
        signals.status = TERMINATED
        with pytest.raises(KeyboardInterrupt):
            if plays is play:
                play(a_batch(steps), lambda _: np.zeros(1, np.int64), np.zeros(1, np.int64))
            else:
                collect_by(
                    a_batch(steps), lambda _: (np.zeros(1, np.int64), np.zeros(1)), np.zeros(1, np.int64)
                )
    assert steps == []


def test_no_further_gradient_step_is_taken() -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    adam = torch.optim.Adam([weight])
    optimizer_step((weight**2).sum(), adam)
    before = weight.detach().clone()
    with interrupts_once() as signals:
        signals.status = TERMINATED
        with pytest.raises(KeyboardInterrupt):
            optimizer_step((weight**2).sum(), adam)
    assert torch.equal(weight, before)
