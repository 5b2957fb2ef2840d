"""The program that runs recipes, in Data-Juicer's own environment: nothing of ours imports it."""
