"""Experiments: one setup carried out in the fast or the detailed world, and the record of it."""
