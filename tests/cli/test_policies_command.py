"""`bridge policies`: the list, what a policy is made of, and a policy of somebody else's."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok, run_refused
from training_commands import TINY, write_config

DOCS = Path(__file__).parents[2] / "docs" / "policies.md"


def test_the_list() -> None:
    out = run_ok("policies")
    for word in (
        "rlbackfilling  backfill",
        "rlscheduler  pick",
        "schedinspector  inspect",
        "recommended",
        "paper",
    ):
        assert word in out
    assert "Zhang, Dai & Xie, HPDC 2022" in out
    assert "hpc-bridge" in out


def test_the_list_as_json() -> None:
    listed = {entry["name"]: entry for entry in json.loads(run_ok("policies", "--json"))}
    ours = listed["schedinspector"]
    assert ours["error"] is None
    assert ours["package"].startswith("hpc-bridge ")
    first = ours["settings"][0]
    assert (first["setting"], first["decision"], first["protocol"]) == ("recommended", "inspect", "standard")
    assert first["source"] and first["summary"]


def test_show() -> None:
    out = run_ok("policies", "show", "rlbackfilling", "--setting", "paper")
    for words in (
        "backfill: which waiting job runs before the blocked head",
        "128 × 6 = 768 numbers",
        "kernel 32-16-8, 897 parameters",
        "flat 32-16-8, 25,281 parameters",
        "fcfs+easy",
        "schedgym/rlbackfilling",
        "trajectories 100",
        "min(t/(max(gap, 0) + 1), 1)",
        "Kolker-Hicks",
    ):
        assert words in out, words
    assert "970 parameters" in run_ok("policies", "show", "schedinspector", "--setting", "paper")
    assert "at most 72 a job, 600 s apart" in run_ok("policies", "show", "schedinspector")


def test_show_as_json() -> None:
    shown = json.loads(run_ok("policies", "show", "rlscheduler", "--setting", "paper", "--json"))
    assert (shown["decision"], shown["state_size"], shown["actions"]) == ("pick", 1024, 128)
    assert (shown["actor_parameters"], shown["critic_parameters"]) == (961, 11_570)
    assert shown["parameters"] == 961 + 11_570
    assert shown["recipe"]["encoder"]["features"]["wait"] == "min(w/43200, 0.99999)"
    assert shown["recipe"]["training"]["trajectories"] == 100


def test_show_what_is_seen_of_running_jobs_and_the_machine() -> None:
    sem = json.loads(run_ok("policies", "show", "sem", "--setting", "theta", "--json"))
    assert (sem["decision"], sem["algorithm"], sem["actions"]) == ("pick+backfill", "gradient", 50)
    assert (sem["rows"], sem["features"], sem["running_rows"], sem["running_features"]) == (50, 4, 34, 2)
    assert (sem["state_size"], sem["actor_parameters"], sem["machine_numbers"]) == (268, 51_853, 0)
    assert "critic_parameters" not in sem and sem["parameters"] == 51_853
    assert sem["recipe"]["encoder"]["running"]["left"] == "left/86400"
    full = json.loads(run_ok("policies", "show", "mrsch", "--setting", "full", "--json"))
    assert (full["state_size"], full["actor_parameters"], full["machine_numbers"]) == (11_410, 50_325_836, 4)
    text = run_ok("policies", "show", "sem")
    for words in ("50 × 4 + 34 × 2 = 268 numbers", "51,853 parameters", "running: left", "left/86400"):
        assert words in text, words
    assert "\ncritic " not in text  # it has none


@pytest.mark.parametrize(("words", "resources"), [((), 2), (("--resources", "3"), 3)])
def test_show_a_policy_of_any_number_of_resources(words: tuple[str, ...], resources: int) -> None:
    shown = json.loads(run_ok("policies", "show", "mrsch", "--json", *words))
    assert (shown["resources"], shown["features"]) == (resources, resources + 2)
    assert shown["state_size"] == 10 * (resources + 2) + 34 * (resources + 1)
    assert shown["machine_numbers"] == 2 * resources
    assert f"and {2 * resources} of the machine" in run_ok("policies", "show", "mrsch", *words)


def test_show_an_agent_of_the_pool() -> None:
    shown = json.loads(run_ok("policies", "show", "rlschert", "--setting", "kill", "--json"))
    assert (shown["scheduler"], shown["decision"], shown["kill"]) == ("pool", "tick", "learned")
    assert (shown["rows"], shown["columns"], shown["state_size"], shown["actions"]) == (120, 72, 8640, 14)
    biases, value_head = 64 + 64 + 14, 64 + 1
    assert (shown["weights"], shown["parameters"]) == (557_952, 557_952 + biases + value_head)
    assert (shown["objective"], shown["algorithm"]) == ("slowdown", "ppo")
    assert shown["recipe"]["pool"]["units"] == 20
    text = " ".join(run_ok("policies", "show", "rlschert", "--setting", "kill").split())
    for words in (
        "120 × 72 = 8,640 numbers",
        "14: 5 slots, none, 8 kill slots",
        "mlp 64-64, 557,952 weights",
        "learned: the agent kills, the same job at most 1 times",
        "teacher agent",
    ):
        assert words in text, words
    assert "cnn 16 of 8 × 8 every 4, 16 of 4 × 4 every 2, 64," in " ".join(
        run_ok("policies", "show", "rlschert", "--setting", "paper-cnn").split()
    )
    listed = {entry["name"]: entry for entry in json.loads(run_ok("policies", "--json"))}
    assert {one["protocol"] for one in listed["rlschert"]["settings"]} == {"pool"}
    refused_option = run_bridge("policies", "show", "rlschert", "--resources", "3")
    assert refused_option.status == 2
    assert "pool has no --resources" in refused_option.err


def test_show_as_a_config_that_train_reads(folder: Path) -> None:
    text = run_ok("policies", "show", "rlscheduler", "--setting", "mlp", "--toml")
    assert "name" not in tomllib.loads(text)
    (folder / "all.toml").write_text(text)
    from bridge.learn.recipe import from_dict
    from bridge.learn.registry import recipe_of

    mlp = recipe_of("rlscheduler", "mlp")
    assert from_dict(tomllib.loads(text), "x", mlp) == mlp
    assert run_bridge("policies", "show", "rlscheduler", "--toml", "--json").status == 2


def test_unknown_names_come_with_the_list() -> None:
    assert "Did you mean rlscheduler?" in run_refused("policies", "show", "rlsheduler")
    assert "Settings: recommended, paper" in run_refused(
        "policies", "show", "rlbackfilling", "--setting", "x"
    )


@pytest.fixture
def frugal(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the package of docs/policies.md, as pip would; return its folder."""
    site = tmp_path_factory.mktemp("site")
    blocks = re.findall(r"^```[a-z]+\n# (\S+)\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    files = dict(blocks)
    assert set(files) == {"pyproject.toml", "frugal.py"}
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"]["bridge.policies"]
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[bridge.policies]", *lines]) + "\n")
    (site / "frugal.py").write_text(files["frugal.py"])
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "frugal", raising=False)
    return site


@pytest.mark.usefixtures("frugal")
def test_the_package_of_the_docs_is_listed_shown_trained_and_explained(folder: Path) -> None:
    assert "frugal 1.0" in run_ok("policies")
    assert "32 + 1" not in run_ok("policies", "show", "frugal")
    write_config(folder)
    run_ok("train", "--fast", "frugal", *TINY, "--epochs", "1", "--out", "mine")
    kept = json.loads(Path("mine/agent.json").read_text())
    assert (kept["name"], kept["setting"], kept["recipe"]["guard"]) == ("frugal", "default", "mask")
    assert "growth" in run_ok("explain", "mine", "--sequences", "3")


def test_a_broken_package_stands_in_the_list(frugal: Path) -> None:
    (frugal / "frugal.py").write_text("import nothing_of_this_name\n")
    out = " ".join(run_ok("policies").split())
    assert "frugal broken frugal 1.0" in out
    assert "No module named 'nothing_of_this_name'" in out
    assert "rlbackfilling backfill" in out
    assert "the policy is broken" in run_refused("train", "frugal")
    listed = {entry["name"]: entry for entry in json.loads(run_ok("policies", "--json"))}
    assert "nothing_of_this_name" in listed["frugal"]["error"]
