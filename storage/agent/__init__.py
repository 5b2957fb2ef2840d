"""What agents mean to do."""
