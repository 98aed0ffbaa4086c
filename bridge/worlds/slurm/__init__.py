"""The live world: a policy decides for a real Slurm, from outside, over its own commands."""
