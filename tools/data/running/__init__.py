"""Recipes are run here: Data-Juicer's environment, its workers, and what passes between."""
