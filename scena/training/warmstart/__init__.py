"""Starting a training from weights that were trained before."""
