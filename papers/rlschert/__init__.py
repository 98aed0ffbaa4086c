"""RLSchert (Wang et al., Applied Sciences 2021): what only its tables and figures need."""
