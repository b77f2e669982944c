"""Agents: programs, functions and clients that edit or judge, behind one small protocol."""
