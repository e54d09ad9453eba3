"""Verification as an evaluator: EER and TAR@FAR of embeddings, with the DET curve in the report."""
