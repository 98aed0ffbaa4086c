"""Views of a decision as arrays: what a network sees. Imports the scheduler only."""
