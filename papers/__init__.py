"""The published experiments, repeated: `python -m papers --help`."""
