"""Values of workload experiments: measurements, analyses and phase proofs."""
