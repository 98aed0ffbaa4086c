"""The time-stepped pool is plain Python: its tests pass with Numba's compiler switched off."""

from jit_modes import passes_without_the_compiler


def test_the_pool_runs_without_the_compiler() -> None:
    names = ("machine", "rules", "encode", "pools", "critic_view")
    passes_without_the_compiler(*(f"pool/test_pool_{name}.py" for name in names))
