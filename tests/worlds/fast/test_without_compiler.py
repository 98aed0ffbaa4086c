"""The core is plain Python: the same tests pass with Numba's compiler switched off."""

from jit_modes import passes_without_the_compiler

#: What encoders write, hand-made schedules, agents, the queue's sort and the profile, and a few random
#: workloads per protocol.
SUBSET = (
    "env/test_context.py",
    "env/test_encoder.py",
    "env/test_features.py",
    "scheduler/test_blocked.py",
    "scheduler/test_core.py",
    "scheduler/test_agents.py::test_an_event_ends_the_pause_of_a_rejection_early",
    "scheduler/test_agents.py::test_a_guard_shows_only_the_candidates_that_easy_allows",
    "scheduler/test_agents.py::test_a_picked_job_that_does_not_fit_is_reserved_and_backfilled_behind",
    "scheduler/test_agents.py::test_an_unguarded_agent_that_keeps_easys_rule_gives_easys_schedule",
    "scheduler/test_profile.py",
    "scheduler/test_queue.py::test_sorting_is_stable_and_by_the_given_key",
    "worlds/fast/test_against_reference.py::test_small_workloads",
    "worlds/fast/test_world.py::test_worlds_of_one_batch_do_not_disturb_each_other",
)


def test_the_core_runs_without_the_compiler() -> None:
    passes_without_the_compiler(*SUBSET)
