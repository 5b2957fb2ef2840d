"""Files in the root that other programs obey, kept from confined programs."""
