"""What files were before they were changed: kept for each call, and taken back."""
