"""RLSchert as its paper has it: parameters, hyper-parameters, and who knows and kills what."""

import pytest

from bridge.learn.recipe import from_dict
from bridge.policies.rlschert import PAPER, SETTINGS
from bridge.pool.network import network_of, weights
from bridge.pool.observation import shape
from bridge.pool.recipe import PoolRecipe


def test_the_papers_network() -> None:
    assert shape(PAPER.pool) == (120, 72)
    assert PAPER.pool.actions == 14
    assert weights(network_of(PAPER)) == 557_952
    for name, recipe in SETTINGS.items():
        expected = 557_952 if name != "paper-cnn" else 16 * 64 + 16 * 16 * 16 + 1456 * 64 + 64 * 14
        assert weights(network_of(recipe)) == expected


def test_table_4() -> None:
    t = PAPER.training
    assert (t.minibatch, t.iterations, t.lam, t.target_kl, t.gamma) == (128, 5, 0.95, 0.01, 0.99)
    assert (t.learning_rate, t.clip, t.value, t.entropy) == (1e-4, 0.2, 0.25, 0.02)
    assert (t.sequences, t.rate, t.steps, t.draw_seed, t.fresh) == (16, 0.7, 200, 42, False)
    taught = SETTINGS["paper-kill"].training
    assert (taught.imitation, taught.imitated, taught.teacher) == (0.5, 0.5, "agent")


def test_who_kills_and_who_knows() -> None:
    for prefix, plain in (("", "recommended"), ("paper-", "paper"), ("code-", "code")):
        assert (SETTINGS[plain].kill, SETTINGS[plain].estimator) == ("none", "running")
        assert SETTINGS[f"{prefix}rule-kill"].kill == "rule"
        assert SETTINGS[f"{prefix}kill"].kill == "learned"
        assert SETTINGS[f"{prefix}deeprm"].estimator == "submit"
    honest = {name: recipe for name, recipe in SETTINGS.items() if not name.startswith("code")}
    assert not any(recipe.pool.oracle_clamp for recipe in honest.values())
    assert not any(recipe.pool.oracle for recipe in honest.values())


def test_settings_of_public_code() -> None:
    code = {name: recipe for name, recipe in SETTINGS.items() if name.startswith("code")}
    assert list(code) == ["code", "code-rule-kill", "code-kill", "code-deeprm"]
    for name, recipe in code.items():
        assert (recipe.pool.oracle_clamp, recipe.pool.oracle_picture) == (True, True)
        t = recipe.training
        assert (t.episodes, t.sequences, t.decay, t.value_loss, t.gamma) == (10, 16, 0.95, "smooth", 1.0)
        assert (t.normalised, t.scaled, t.learning_rate) == (False, False, 1e-4)
        plain = SETTINGS[name.replace("code", "paper")]
        assert (recipe.kill, recipe.estimator, t.teacher) == (
            plain.kill,
            plain.estimator,
            plain.training.teacher,
        )


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_plain_data_that_can_be_trained(name: str) -> None:
    recipe = SETTINGS[name]
    recipe.check()
    assert (recipe.name, recipe.setting) == ("rlschert", name)
    assert from_dict(recipe.as_dict(), "a test", PoolRecipe) == recipe
