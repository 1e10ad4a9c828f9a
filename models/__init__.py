"""Learning: the Punzi-net, its loss, its training, its cuts and the file it is kept in."""
