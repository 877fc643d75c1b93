"""What every program needs and no reader looks for: validation of arguments, files, progress, random numbers."""
