"""Runs calls: scheduling, deadlines and nested calls."""
