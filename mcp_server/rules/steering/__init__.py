"""What does the person want, and what becomes of it? Changes of the posture, before anybody writes them down."""
