"""Clusters that change in time, as plain Python: their kernels would compile for a minute."""

from jit_modes import passes_without_the_compiler


def test_clusters_change_in_time() -> None:
    tests = (
        "test_cluster_calendar.py",
        "test_calendar_reasons.py",
        "test_cluster_random.py::test_random_cases_in_time",
        "test_agents_in_time.py",
    )
    files = [f"worlds/fast/{name}" for name in tests]
    names = ("answers_by_hand", "random_cases", "the_embedded_model", "suspension_is_refused_with_its_reason")
    names += ("both_worlds_have_the_same_tables", "an_agent_decides_alike_in_both_worlds")
    names += ("a_platform_without_dynamic_jobs_is_refused_only_where_jobs_run_again",)
    names += ("an_end_in_the_instant_of_a_kill_counts", "the_referee_knows_which_nodes_are_in_service")
    files += [f"worlds/batsim/test_cluster_in_time_same_schedule.py::test_{name}" for name in names]
    passes_without_the_compiler(*files, "judge/test_check_suspended.py", marked="slow")
