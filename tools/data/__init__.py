"""fs_*: files and folders as data."""
