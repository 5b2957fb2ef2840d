"""Whether Data-Juicer would take a recipe, as far as can be told without it."""
