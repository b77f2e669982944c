"""The checks of rules: one module for each family."""
