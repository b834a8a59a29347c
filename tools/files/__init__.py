"""Read, Edit and Write: the files of a programmer."""
