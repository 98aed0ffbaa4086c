"""The wire to a detailed platform: codec, endpoint, referee, decision process on the scheduler core."""
