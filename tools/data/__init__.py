"""Recipes of datasets: what Data-Juicer offers, and plans that it runs."""
