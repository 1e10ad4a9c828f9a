"""From the cut to the result: scan, limits, p-values, and the files of a publication."""
