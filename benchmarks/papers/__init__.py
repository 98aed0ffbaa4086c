"""The published experiments, repeated: `python -m benchmarks.papers --help`."""
