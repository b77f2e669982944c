"""A small shop with three bugs."""
