"""Agents on sites with nodes, partitions and queues of their own."""
