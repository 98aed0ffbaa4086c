"""RLBackfilling (Kolker-Hicks et al., SC-W 2023): what only its tables need."""
