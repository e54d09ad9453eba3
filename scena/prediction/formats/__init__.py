"""Converting an exported model to other formats, and checking that the converted model gives the same answers."""
