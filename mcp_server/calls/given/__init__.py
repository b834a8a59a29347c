"""What is a tool given that needs more of the house than one port: its records, and the way through the gate."""
