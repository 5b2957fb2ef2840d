"""People: the user's profile, entities, relationships, and the one name resolver."""
