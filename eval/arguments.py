"""What all `python -m eval` commands share: the parser, and what a command answers when it cannot go on.

Bad input gets one line, a misspelt option its nearest name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from rewards.errors import UserError, refuse_unknown

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

PICTURES = (".png", ".svg", ".pdf")


class Parser(argparse.ArgumentParser):
    """Exits with status 2 and one line. Abbreviations are not taken: they would hide a misspelling."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def read(self, args: Sequence[str]) -> argparse.Namespace:
        """`parse_args` with the nearest name for an option that there is not."""
        names = [word.partition("=")[0] for word in args if word.startswith("--") and word != "--"]
        try:
            # before argparse, which would name the options that are missing because one is misspelt
            refuse_unknown(names, self._option_string_actions, "option")
        except UserError as error:
            self.error(str(error))
        return self.parse_args(args)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help shows all options)\n")


def picture(text: str) -> Path:
    """An option's value that names a picture to draw; checked before the work, not after it."""
    file = Path(text)
    if file.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f"'{text}' should end in one of {', '.join(PICTURES)}")
    return file


def answered(name: str, command: Callable[[], int]) -> int:
    """The command's exit status; 2 with one line on standard error for what the user can mend, 130 for Ctrl-C."""
    try:
        return command()
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
    except OSError as error:  # no right to write, a full disk, a folder where a file should be
        print(f"{name}: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; the same command resumes", file=sys.stderr)
        return INTERRUPTED
    return 2
