"""Tree-level generators, ISR and a detector: credible Belle II-style ntuples."""
