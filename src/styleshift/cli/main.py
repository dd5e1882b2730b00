"""The command line: `styleshift COMMAND ...`, and how it ends.

Exit status: 0 done; 2 a mistake of the caller's, told in one line; 130 interrupted, and the same command goes on.
"""

import logging
import sys
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from styleshift.cli import bench, compare, data, explain, fit, predict, recipes, report, run, table, train

_OURS = Path(__file__).parents[1]


class Commands(TyperGroup):
    """Runs a command, and turns whatever stops it into one line and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        """Called by typer."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interrupt:
            typer.echo(f"\n{interrupt or 'interrupted'}", err=True)
            raise typer.Exit(130) from None
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            if ctx.params.get("traceback") or not is_callers(error):
                raise
            typer.echo(f"styleshift: {one_line(error)}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=Commands,
    help="Vision models that keep working on styles they have never seen.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich would double what --help takes
    pretty_exceptions_enable=False,
)


def main() -> None:
    """What the command `styleshift` calls."""
    app(prog_name="styleshift")


def is_callers(error: Exception) -> bool:
    """Whether this is a mistake of the caller's: raised by a line of ours, in a sentence. Anything else is a fault."""
    if isinstance(error, OSError):
        return True
    raised_in = Path(extract_tb(error.__traceback__)[-1].filename)
    return raised_in.is_relative_to(_OURS) and " " in one_line(error)


def one_line(error: Exception) -> str:
    """What an error says, on one line; a KeyError without the quotes it puts around it."""
    words = error.args[0] if isinstance(error, KeyError) and error.args else error
    return " ".join(str(words).split())


def _version(asked: bool) -> bool:
    if asked:
        from styleshift import __version__

        typer.echo(__version__)
        raise typer.Exit
    return asked


@app.callback()
def _begin(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Which one this is.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="Show where an error came from.")] = False,
) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("styleshift").setLevel(logging.INFO)


for command in (run, table, report, recipes, train, fit, predict, explain, bench, compare):
    app.command()(getattr(command, command.__name__.rpartition(".")[2]))
app.add_typer(data.app, name="data")
