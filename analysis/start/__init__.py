"""A first configuration for somebody's own ntuples: names of branches in, a commented file out."""
