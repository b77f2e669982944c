"""Whoever improves: agents behind one small protocol."""
