"""The datasets, one file each: the file's name is the dataset's name, and its class loads it."""
