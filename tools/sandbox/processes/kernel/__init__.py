"""Linux features for confinement: Landlock, seccomp and limits."""
