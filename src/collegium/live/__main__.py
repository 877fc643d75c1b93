"""`python -m collegium.live FILE`: one agent, without loading what the command line needs.

With `--start` instead, one process is started for each file named on the standard input, and this one ends. Exit code
2 is for mistakes, with which starting again does not help; 1 for an address that may be free in a moment.
"""

import sys
from pathlib import Path

from collegium._serving.limits import CannotListen
from collegium.errors import CollegiumError


def main() -> None:
    """Run the agent of a file, or start those of several."""
    if len(sys.argv) != 2:
        sys.exit("collegium: give one agent's file, such as net/agent-3.toml")
    try:
        from collegium.live import process

        if sys.argv[1] == "--start":
            process.start([Path(line) for line in sys.stdin.read().splitlines()])
        else:
            process.run(Path(sys.argv[1]))
    except CollegiumError as mistake:
        sys.stderr.write(f"collegium: {mistake}\n")
        sys.exit(1 if isinstance(mistake, CannotListen) else 2)
    except ImportError as problem:
        sys.stderr.write(f"collegium: live agents need {problem.name}: pip install 'collegium[live]'\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
