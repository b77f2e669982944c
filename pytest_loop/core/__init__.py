"""The pure core: values and functions without files, clock, process or pytest."""
