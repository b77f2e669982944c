"""A small shop with three mistakes in it."""
