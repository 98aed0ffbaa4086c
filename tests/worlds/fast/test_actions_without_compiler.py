"""Rules of action as plain Python: sooner than compiling them. The compiled ones are among the slow tests."""

from jit_modes import passes_without_the_compiler


def test_actions_run_without_the_compiler() -> None:
    checked = (
        "test_contract.py::test_check_env_has_nothing_to_say",
        "test_sb3_checker.py::test_the_checker_has_nothing_to_say",
        "test_maskable_ppo.py::test_maskable_ppo_trains_and_takes_legal_actions_only",
        "test_environments_page.py::test_the_page_of_an_environment_is_true",
    )
    passes_without_the_compiler(
        "worlds/fast/test_replay_actions.py",
        "worlds/fast/test_actions_on_nodes.py",
        "worlds/fast/test_action_terms.py",
        "worlds/batsim/test_actions_same_schedule.py",
        "worlds/slurm/test_slurm_requeue.py",
        "env/test_action_decisions.py",
        "cli/test_action_commands.py",
        *(f"env/{test}[bridge/{name}-v0]" for test in checked for name in ("Preempt", "Trial")),
    )
