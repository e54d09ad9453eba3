"""What happens to samples on the way to a batch. Engines run these stages; nothing here knows in which process."""
