"""Futures: the scheduler's present state, run times drawn from what is believed, played forward."""
