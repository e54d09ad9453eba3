"""A scenario whose layers keep more than variables: statistics, boundaries, vocabularies, quantized weights, tensors of their own."""
