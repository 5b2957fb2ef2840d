"""What keeps the tools of other servers from deceiving: names, pins, quarantine."""
