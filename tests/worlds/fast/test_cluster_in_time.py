"""Clusters that change in time, as plain Python: their kernels would compile for a minute."""

from jit_modes import passes_without_the_compiler


def test_clusters_change_in_time() -> None:
    tests = ("test_cluster_calendar.py", "test_cluster_random.py::test_random_cases_in_time")
    passes_without_the_compiler(*(f"worlds/fast/{name}" for name in tests), marked="slow")
