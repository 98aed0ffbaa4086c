"""The scheduler: one state machine that both worlds drive. Imports nothing else of bridge but errors."""
