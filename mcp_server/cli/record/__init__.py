"""What a person types to read the record: the ledger, and the summary of a run."""
