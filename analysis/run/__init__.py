"""The run folder: names of its files, stamps, provenance, and where work is executed."""
