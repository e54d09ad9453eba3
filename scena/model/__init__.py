"""The network: graphs, losses, metrics, and the compiled steps that run them."""
