"""What is improved."""
