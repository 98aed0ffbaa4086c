"""SEM (Li et al. 2022): what only its tables and figures need."""
