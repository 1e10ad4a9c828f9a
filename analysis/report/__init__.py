"""Stage report: the whole run on one page."""
