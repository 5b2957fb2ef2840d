"""The program that runs recipes, with Data-Juicer; the server imports `entries` alone."""
