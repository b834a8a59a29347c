"""How messages come in and go out: stdio, HTTP in both eras, SSE, and the door in front of them."""
