"""Slurm's own scheduling in the fast world: recorded cases, with a clock that is recorded or its own."""
