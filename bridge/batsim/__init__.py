"""The wire to a detailed platform: codec, endpoint, referee and the decision process on the one scheduler core."""
