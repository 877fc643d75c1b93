"""Measure everything: `python benchmarks/run.py [NAME …] [--json FILE]` prints ratios inside this one run."""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import averages
import comparison
import heart
import laboratory
import large_networks
import live
import live_load
import live_operations
import machine
import quantised
import startup
import stopping
import training

ALL = {
    module.__name__: module
    for module in (
        startup,
        heart,
        quantised,
        stopping,
        large_networks,
        averages,
        training,
        comparison,
        laboratory,
        live,
        live_load,
        live_operations,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(ALL)}; all by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    for name, project in {"flower": "flwr", "disropt": "disropt and mpi4py"}.items():
        text = f"for live: an interpreter that has {project}; this one by default"
        parser.add_argument(f"--{name}", default=sys.executable, metavar="PYTHON", help=text)
    chosen = parser.parse_args()
    unknown = set(chosen.names) - set(ALL)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    console = Console()
    limits = machine.limits()
    table = Table("figure", "measured", "target", title="benchmarks")
    rows = []
    for name in chosen.names or ALL:
        with console.status(f"measuring {name} …"):
            others = {"flower": chosen.flower, "disropt": chosen.disropt} if name == "live" else {}
            rows += ALL[name].measure(**others)
    for row in rows:
        value = "not installed" if row["value"] is None else f"{row['value']:.3g}"
        table.add_row(row["figure"], value, row["target"])
    console.print(table)
    for key, value in limits.items():
        console.print(f"{key}: {value:.3g}" if isinstance(value, float) else f"{key}: {value}")
    if chosen.json:
        chosen.json.write_text(json.dumps({"machine": limits, "figures": rows}, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
