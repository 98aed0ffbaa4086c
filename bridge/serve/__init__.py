"""A small read-only page and JSON API of a live partition: queue, predicted starts, what if."""
