"""How rules are judged: one small module for each family of checks."""
