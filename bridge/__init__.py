"""Replay job logs of supercomputers under a scheduling policy, fast or on a detailed platform."""

__version__ = "0.1.0"
