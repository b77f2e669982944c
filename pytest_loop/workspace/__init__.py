"""The files under edit: scanned, compared, sealed, restored and kept as checkpoints."""
