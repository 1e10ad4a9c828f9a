"""Stage select: ntuples in; skim, histograms and cutflow out."""
