"""Studies: rows (rules or agents) × logs × seeds, each cell carried out once and kept; then their tables."""
