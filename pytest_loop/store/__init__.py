"""The files of runs: four per run, written by one process at a time and opened only here."""
