"""How Slurm decides: its two schedulers, their limits and priorities, over one state of a site."""
