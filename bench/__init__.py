"""What does menugate cost next to the bare SDK, and does it conform to the protocol? Run by `make bench` and others."""
