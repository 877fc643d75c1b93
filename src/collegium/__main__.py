"""`python -m collegium` is the command line too."""

from collegium.cli.app import main

if __name__ == "__main__":
    main()
