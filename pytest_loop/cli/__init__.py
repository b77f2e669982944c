"""What happens for each --loop-* flag."""
