"""Rules of action as plain Python: sooner than compiling them. The compiled ones are among the slow tests."""

from jit_modes import passes_without_the_compiler


def test_actions_run_without_the_compiler() -> None:
    passes_without_the_compiler(
        "worlds/fast/test_replay_actions.py",
        "worlds/batsim/test_actions_same_schedule.py",
        "worlds/slurm/test_slurm_requeue.py",
        "env/test_action_decisions.py",
        "cli/test_action_commands.py",
    )
