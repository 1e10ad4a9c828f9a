"""A histogram or a result record in, a Figure out."""
