"""Protection against deceptive tools of other servers: names, pins, quarantine."""
