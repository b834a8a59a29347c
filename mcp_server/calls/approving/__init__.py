"""How does a call get the person's yes? What is asked, by which door, and what the answer lets through."""
