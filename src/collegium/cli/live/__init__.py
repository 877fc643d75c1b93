"""`collegium live`: agents as processes that exchange messages over a real network."""

import typer

from collegium.cli.live.change import apply_network
from collegium.cli.live.create import init
from collegium.cli.live.digits import demo
from collegium.cli.live.gains import tune
from collegium.cli.live.operate import agent, down, renew, revoke, status, up

app = typer.Typer(
    help="Agents as processes of their own over a real network.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (init, agent, up, status, tune, renew, revoke):
    app.command()(command)
app.command("apply")(apply_network)
app.command()(down)
app.command()(demo)
