"""The argument parser of all `python -m eval` commands: bad input gets one line, a misspelt option its nearest name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from rewards.errors import UserError, refuse_unknown


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
