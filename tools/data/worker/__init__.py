"""The program that runs recipes, with Data-Juicer; the server imports `agreed` and `entries`."""
