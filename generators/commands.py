"""The parser of the generators' commands: one line and status 2 for bad input, the nearest name for a misspelt option.

This package imports nothing of the others, so it has its own few lines of what rewards/commands.py is for the others.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NoReturn

STATUSES = "Exit status: 0 done, 2 refused (one line says why), 130 interrupted."


class Parser(argparse.ArgumentParser):
    """Abbreviations are not taken: they would hide a misspelling. Sub-commands are Parsers, too."""

    def __init__(self, prog: str, description: str = "", epilog: str = "", **more: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog if "Exit status" in epilog else f"{epilog}\n\n{STATUSES}".lstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **more,
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[argparse.Namespace, list[str]]:
        for word in sys.argv[1:] if args is None else args:
            name = word.partition("=")[0]
            if self._subparsers is None and name.startswith("--") and name not in self._option_string_actions:
                near = get_close_matches(name, list(self._option_string_actions), 1, 0.5)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                self.error(f"unknown option '{name}'{hint}")
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help shows all options)\n")


def answered(name: str, command: Callable[[], int]) -> int:
    """The command's exit status; 2 with one line for what the user can mend; 0 when the reader (`head`) has enough."""
    try:
        status = command()
        sys.stdout.flush()  # here, where a closed pipe is expected, and not at exit
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit would fail once more
        return 0
    except OSError as error:
        print(f"{name}: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
    except ValueError as error:
        print(f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; start it again", file=sys.stderr)
        return 130
    else:
        return status
    return 2
