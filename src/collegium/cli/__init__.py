"""The command line: one command, one file; `app.py` only registers them."""
