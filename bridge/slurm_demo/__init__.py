"""Trials on a cluster of fake nodes: jobs submitted at their times, and what came of them."""
