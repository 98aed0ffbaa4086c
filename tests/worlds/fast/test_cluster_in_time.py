"""Clusters that change in time, as plain Python: their kernels would compile for a minute."""

from jit_modes import passes_without_the_compiler


def test_clusters_change_in_time() -> None:
    tests = (
        "test_cluster_calendar.py",
        "test_calendar_reasons.py",
        "test_cluster_random.py::test_random_cases_in_time",
    )
    files = [f"worlds/fast/{name}" for name in tests]
    passes_without_the_compiler(*files, "judge/test_check_suspended.py", marked="slow")
