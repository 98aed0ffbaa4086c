"""Slurm's own scheduling in the fast world: recorded cases, and logs, with a clock that is recorded or its own."""
