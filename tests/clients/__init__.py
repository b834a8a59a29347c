"""The doors a client comes through, for tests: a served folder, real clients in both eras, and a raw pipe."""
