"""Stage train: windows from the signal, then the networks."""
