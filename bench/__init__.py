"""What does the house cost beside the bare SDK, and does it keep to the protocol? Run by `make bench` and friends."""
