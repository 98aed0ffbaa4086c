"""What the commands do, below the command line: one resolver of policies, one outcome document."""
