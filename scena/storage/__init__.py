"""Files that survive crashes: durable writes, tensor files, and addresses on this machine or elsewhere."""
