"""Agents that act: who gives way, and which job is tried, against fixed rules with the same rights."""
