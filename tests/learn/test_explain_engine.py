"""Explanations: of an agent whose rule is known, against what follows from the rule."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tiny_training import TINY, some_jobs

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.env.episode_starts import constants_of
from bridge.learn.checkpoint import LogAgent, Provenance
from bridge.learn.explain import POINTS, compare, empirical_cdf, explain, write
from bridge.learn.network import actor_of
from bridge.learn.recipe import NetworkConfig, Recipe

STARTS = np.array([0, 200, 400])
INSPECTOR = replace(
    TINY,
    encoder=Encoder("inspect", {"fits": "fits", "one": "1", "w": "w"}),
    actor=NetworkConfig("kernel", ()),
    max_rejects=5,
)
PICKER = replace(
    TINY, encoder=Encoder("pick", {"t": "t", "one": "1"}, window=16), actor=NetworkConfig("kernel", ())
)


def linear(recipe: Recipe, weight: list[list[float]], bias: list[float]) -> LogAgent:
    """Return an agent of one layer with these weights."""
    actor = actor_of(recipe)
    with torch.no_grad():
        actor.layers[0].weight[:] = torch.tensor(weight)  # type: ignore[union-attr, index]
        actor.layers[0].bias[:] = torch.tensor(bias)  # type: ignore[union-attr, index]
    jobs = some_jobs()
    origin = Provenance("bundled-128", jobs.name, len(jobs), "", 1, constants_of(jobs))
    return LogAgent(Path("agent"), recipe, origin, 1, actor)


def test_compare_by_hand() -> None:
    # at 1: ¾ of the chosen, ¼ of all; the chosen are smaller
    feature = compare("x", np.array([3.0, 1.0, 0.0, 1.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    assert (feature.distance, feature.larger) == (0.5, False)
    assert feature.chosen.tolist() == [0, 1, 1, 3]
    assert feature.quantiles() == (pytest.approx([0.3, 1.0, 2.4]), pytest.approx([1.3, 2.5, 3.7]))
    assert compare("x", np.array([5.0, 6.0]), np.array([1.0, 5.5])).larger
    assert compare("x", np.ones(3), np.ones(7)).distance == 0


def test_curve_by_hand() -> None:
    values, shares = empirical_cdf(np.array([1.0, 1.0, 2.0, 5.0]))
    assert (values.tolist(), shares.tolist()) == ([1, 2, 5], [0.5, 0.75, 1])


def test_a_long_curve_has_few_points_from_end_to_end() -> None:
    sample = np.sort(np.random.default_rng(0).normal(size=5000))
    values, shares = empirical_cdf(sample)
    assert len(values) == POINTS
    assert (values[0], values[-1], shares[-1]) == (sample[0], sample[-1], 1.0)
    assert (np.diff(values) > 0).all()
    assert shares == pytest.approx(np.arange(1, POINTS + 1) / POINTS, abs=0.01)


def test_an_inspector_that_rejects_what_does_not_fit() -> None:
    # scores: accept 0, reject ½ − fits
    agent = linear(INSPECTOR, [[0, 0, 0], [-1, 0, 0]], [0, 0.5])
    prepared = INSPECTOR.setup.build_scenario(some_jobs(), INSPECTOR.policy())
    told: list[int] = []
    found = explain(agent, prepared, STARTS, 64, told.append)
    by_name = {feature.name: feature for feature in found.features}
    assert found.features[0].name == "fits"
    fits = by_name["fits"]
    assert set(fits.chosen) == {0.0}
    assert set(fits.all) == {0.0, 1.0}
    assert fits.distance == pytest.approx(fits.all.mean())
    assert not fits.larger
    assert by_name["one"].distance == 0
    assert found.features[-1].name == "one"
    assert found.rows == found.decisions == len(fits.all)
    assert found.chosen == len(fits.chosen) == (fits.all == 0).sum()
    assert told == [3]


def test_a_picker_of_the_shortest() -> None:
    agent = linear(PICKER, [[-1, 0]], [0])
    prepared = PICKER.setup.build_scenario(some_jobs(), PICKER.policy())
    found = explain(agent, prepared, STARTS, 64)
    feature = found.features[0]
    assert (feature.name, feature.larger) == ("t", False)
    assert 0.2 < feature.distance <= 1
    assert found.chosen == found.decisions < found.rows
    assert feature.chosen.mean() < feature.all.mean()
    same = explain(agent, prepared, STARTS, 64).features[0]
    assert same.chosen.tolist() == feature.chosen.tolist()


def test_an_agent_that_rejects_nothing_cannot_be_explained() -> None:
    agent = linear(INSPECTOR, [[0, 0, 0], [0, 0, 0]], [1, 0])
    prepared = INSPECTOR.setup.build_scenario(some_jobs(), INSPECTOR.policy())
    with pytest.raises(BridgeError, match=r"none of [\d,]+ picks was rejected"):
        explain(agent, prepared, STARTS, 64)


def test_the_file(tmp_path: Path) -> None:
    agent = linear(PICKER, [[-1, 0]], [0])
    found = explain(agent, PICKER.setup.build_scenario(some_jobs(), PICKER.policy()), STARTS, 64)
    write(tmp_path / "explanation.parquet", found)
    frame = pq.read_table(tmp_path / "explanation.parquet").to_pandas()
    assert list(frame.columns) == ["feature", "kind", "value", "cdf"]
    assert list(dict.fromkeys(frame["feature"])) == ["t", "one"]
    for _, part in frame.groupby(["feature", "kind"]):
        assert len(part) <= POINTS
        assert part["value"].is_monotonic_increasing
        assert part["cdf"].is_monotonic_increasing
        assert part["cdf"].iloc[-1] == 1
    assert sorted(set(frame["kind"])) == ["all", "chosen"]
