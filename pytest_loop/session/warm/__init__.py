"""Sessions forked from a fork server; the only package that uses private parts of pytest, xdist and execnet."""
