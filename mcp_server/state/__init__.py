"""What is remembered: sessions, posture, outbox, ledger."""
