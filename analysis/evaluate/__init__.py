"""Stage evaluate: cuts, figures of merit, and the models that carry the quoted cut."""
