"""The parts of the composition root: each is made here as the settings say, and handed out."""
