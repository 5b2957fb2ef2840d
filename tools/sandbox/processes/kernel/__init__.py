"""What Linux offers for confinement: Landlock, seccomp and limits."""
