"""A scenario with everything that could get lost: dropout, noise without a seed, batch statistics, augmentation, shuffling."""
