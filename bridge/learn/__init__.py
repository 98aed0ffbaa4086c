"""Learning algorithms that no paper owns: rollouts, PPO, checkpoints; and the recipes that policies are."""
