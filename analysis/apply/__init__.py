"""Command apply: a trained cut on new ntuples."""
