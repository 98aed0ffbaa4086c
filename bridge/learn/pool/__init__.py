"""Agents of the time-stepped pool: their recipes, networks and rollouts."""
