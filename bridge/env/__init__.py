"""Environments over the fast world: batches of episodes for training, and Gymnasium environments."""
