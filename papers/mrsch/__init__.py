"""MRSch (Li et al., IEEE CLUSTER 2022): what only its tables and figures need."""
