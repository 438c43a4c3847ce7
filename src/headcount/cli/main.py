"""The `headcount` command: its verbs, and how mistakes are reported."""

from __future__ import annotations

import logging
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception
from typing import Annotated, Any, NoReturn

import typer
from rich.text import Text
from typer.core import TyperGroup

from headcount import plugins
from headcount.cli.options import Verb, with_options
from headcount.cli.printing import Terminal, echo
from headcount.errors import HeadcountError, UsageError, printable


class _Verbs(TyperGroup):
    """The verbs of the registry; a user's mistake in one ends in one sentence and exit code 1 or 2.

    Of a verb that cannot be loaded the list says so, and the others work.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs that can be loaded, headcount's first."""
        with warnings.catch_warnings(action="ignore"):
            known = list(plugins.every("commands"))
        for fault in plugins.faults():
            _say("Note", "yellow", fault)
        return known

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of this name; no other is loaded."""
        plugin = plugins.plugin_of("commands", cmd_name)
        if plugin is None:
            # The nearest of these is offered.
            vars(self).update(commands=dict.fromkeys(plugins.names_of("commands")))
            return None
        alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
        alone.command(cmd_name, cls=Verb)(with_options(plugin.load()))
        return typer.main.get_command(alone)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """One screen: examples first, then a line for each verb, in the order of the story."""
        known = self.list_commands(ctx)
        verbs = [name for name in _STORY if name in known]
        verbs += [name for name in known if name not in _STORY]
        echo(_HELP)
        for name in verbs:
            command = self.get_command(ctx, name)
            echo(f"  {name:<8} {command.get_short_help_str(limit=66)}")
        echo("\nheadcount VERB --help lists common options; --help-all lists every option.")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that was typed; a word that people try gets the verb that does it."""
        if args and args[0] in _TRIED and plugins.plugin_of("commands", args[0]) is None:
            raise UsageError(f"There is no verb '{args[0]}'; {_TRIED[args[0]]}")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **how: Any) -> Any:
        """Read the words before the verb."""
        with _spelt_out():
            return super().make_context(*args, **how)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb that was named."""
        try:
            with _spelt_out(), warnings.catch_warnings():
                warnings.showwarning = lambda said, *_, **__: _say("Note", "yellow", str(said))
                return super().invoke(ctx)
        except HeadcountError as error:
            _fail(str(error), error.exit_code)
        except KeyboardInterrupt as stop:
            # 130, as every shell says of a command that Ctrl-C ended; 1 would be a failure.
            _fail(str(stop) or "Interrupted; nothing half-written was left behind.", 130)
        except BrokenPipeError:
            # The reader went away (`| head`): no mistake; Python's exit shall not complain either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except OSError as error:  # a full disk, a name too long: the machine's fault or the user's
            what = f"{error.filename}" if error.filename else "A file"
            _fail(f"{what} cannot be used: {(error.strerror or str(error)).lower()}.", 1)


#: The verbs in the order in which people come to them; those of other packages follow.
_STORY = (
    *("report", "survey", "score", "prune", "show", "explain", "compare", "probe", "bench"),
    *("atlas", "lesions", "serve", "ls", "fetch", "plugins"),
)
_HELP = """Usage: headcount [--version] VERB ...

See what each attention head of a Transformer does, how much it matters, and prune the rest.

  headcount report                                      the whole story, on a bundled translator
  headcount survey minilm --treebank sample             what every head does
  headcount score translator --task translation:sample --by gradient
  headcount prune translator --task translation:sample --drop-share 0.25 -o small/
  headcount show minilm "The cat sat." --head enc.0.2   where one head looks
"""

_ONE = 'to see one head on a sentence: headcount show MODEL "A sentence." --head enc.5.3'
#: Words that people try, and what does it.
_TRIED = dict.fromkeys(
    ("head", "inspect", "attention", "visualize", "view", "why"),
    f"{_ONE}; what a run says of one: headcount explain enc.5.3 run/.",
)

#: typer's own base of what can be wrong with a command line, which it does not name.
_Mistake: Any = typer.BadParameter.__mro__[2]


@contextmanager
def _spelt_out() -> Iterator[None]:
    """Words that typer complains of may be names of files from elsewhere."""
    try:
        yield
    except _Mistake as error:
        if type(error).__name__ == "MissingParameter":
            verb: Any = vars(error)["ctx"].command
            example = (verb.help or "").partition("[dim]")[2].partition("[/dim]")[0]
            what = vars(error)["param"].metavar
            raise UsageError(f"{verb.name} needs {what}, e.g. {example}") from None
        vars(error).update(message=printable(str(vars(error).get("message", ""))))
        raise


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from headcount.records import version

        echo(f"headcount {version()}")
        raise typer.Exit


@app.callback()
def main(
    _version_asked: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Know what every attention head of a Transformer does, and how much it matters."""


def run() -> None:
    """Run the command; the entry point of the package.

    What libraries log and what nobody foresaw is spelt out, too.
    """
    make = logging.getLogRecordFactory()

    def record(*args: Any, **how: Any) -> logging.LogRecord:
        made = make(*args, **how)
        made.msg, made.args = printable(made.getMessage(), keep="\n"), ()
        return made

    logging.setLogRecordFactory(record)
    sys.excepthook = lambda *error: echo("".join(format_exception(*error)), err=True)
    try:
        app(prog_name="headcount")
    finally:  # all is written: Ctrl-C ends what libraries do at exit, without their tracebacks
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _fail(sentence: str, code: int) -> NoReturn:
    _say("Error", "bold red", sentence)
    sys.exit(code)


def _say(what: str, style: str, sentence: str) -> None:
    shown = Text.assemble((f"{what}: ", style), printable(sentence))
    Terminal(stderr=True).print(shown, soft_wrap=True)
