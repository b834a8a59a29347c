"""What may happen: the decision and everything it is made of. Pure: no file, no clock, nothing awaited."""
