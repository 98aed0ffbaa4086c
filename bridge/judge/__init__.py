"""Metrics, statistics, schedule checks and comparisons; the run folder."""
