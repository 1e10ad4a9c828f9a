"""From scores to cuts, figures of merit and comparisons."""
