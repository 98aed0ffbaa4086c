"""`import bridge` makes the environments known to Gymnasium, whichever is imported first."""

import subprocess
import sys
from pathlib import Path

import pytest
from subprocess_python import run_python

pytest.importorskip("gymnasium", reason="gymnasium is not installed")

MADE = "print(sorted(name for name in gymnasium.registry if name.startswith('bridge/')))"
NAMES = ["Backfill", "Inspect", "Pick", "PickAndBackfill", "PickOrKill", "Preempt", "Trial"]
WITHOUT = """
try:
    import gymnasium
except ImportError:
    print("none")
"""


@pytest.mark.parametrize(
    "imports",
    [
        "import bridge, gymnasium",
        "import gymnasium, bridge",
        "import bridge; from gymnasium.envs.registration import registry; import gymnasium",
        "import importlib.util, bridge; importlib.util.find_spec('gymnasium'); import gymnasium",
        "import bridge.env.register, gymnasium",
    ],
)
def test_bridge_makes_the_environments_known(imports: str) -> None:
    done = run_python(f"{imports}\n{MADE}")
    assert done.stdout == f"{[f'bridge/{name}-v0' for name in NAMES]}\n", done.stderr


@pytest.mark.parametrize(
    "imports",
    [
        "import sys, bridge; assert 'gymnasium' not in sys.modules; sys.modules['gymnasium'] = None",
        "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]; import bridge",
    ],
)
def test_bridge_imports_no_gymnasium_and_needs_none(imports: str) -> None:
    done = run_python(imports + WITHOUT)
    assert done.stdout == "none\n", done.stderr


def test_a_name_that_names_the_package_needs_no_import() -> None:
    code = (
        "import gymnasium; env = gymnasium.make('bridge:bridge/Inspect-v0', length=32); "
        "print(env.reset(seed=1)[0].shape)"
    )
    done = run_python(code)
    assert done.stdout == "(1, 11)\n", done.stderr


SCRIPT = """
import bridge, gymnasium

def make():
    return gymnasium.make("bridge/Backfill-v0", length=32)

if __name__ == "__main__":
    single = make().reset(seed=3)[1]["first_job"]
    for how in {ways!r}:
        many = gymnasium.vector.AsyncVectorEnv([make], context=how)
        assert many.reset(seed=[3])[1]["first_job"].tolist() == [single]
        many.step(many.action_space.sample())
        many.close()
    how = {{"vectorization_mode": "async", "vector_kwargs": {{"context": "spawn"}}}}
    many = gymnasium.make_vec("bridge/Backfill-v0", 1, length=32, **how)
    assert many.reset(seed=3)[1]["first_job"].tolist() == [single]
    many.close()
    print("same")
"""


def test_environments_work_in_processes_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(ways=["fork", "spawn"]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "same\n", done.stderr
