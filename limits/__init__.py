"""From counts in windows to upper limits, p-values and their coverage: arrays in, arrays out."""
