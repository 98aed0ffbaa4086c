"""SchedInspector (Zhang et al., HPDC 2022): what only its tables need."""
