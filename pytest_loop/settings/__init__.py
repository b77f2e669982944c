"""The table of options and the settings made from it."""
