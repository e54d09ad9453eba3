"""Checks around a training: before it starts, before its first step, and of its exports."""
