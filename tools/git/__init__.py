"""Which tools work with git? Those of a repository that lies in the workspace; nothing here reaches a remote."""
