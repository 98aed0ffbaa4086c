"""The fast world: replays recorded run times through the scheduler."""
