"""Job tables: reading, writing, generating, and fetching workloads."""
