"""Values of workload experiments: measurements, analyses, hypotheses and phase proofs."""
