"""The worlds that move time: fast (recorded run times), batsim and simgrid (a platform), slurm (live)."""
