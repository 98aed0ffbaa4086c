"""Slurm's accounting as a workload: `sacct`'s text and JSON, jobcomp's text, and the machine behind them."""
