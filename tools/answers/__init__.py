"""What several tools take and answer."""
