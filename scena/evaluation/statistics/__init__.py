"""Statistics of results: over seeds, over samples, over folds, and of two models. numpy and the standard library only."""
