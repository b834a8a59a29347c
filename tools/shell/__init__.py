"""bash and the four tools around it: commands, in the foreground and behind it."""
