"""Runs in prime-rl's own Python: is everything there, and do its classes accept a composed configuration?

Reads TOML from standard input; the one argument is the environment's package. Prints one JSON object: `prime_rl` and
`environment` (null, or why the import failed), `verifiers` (its version), `pip` (is pip there), `errors` (key,
problem, near). Needs nothing but the standard library and prime-rl, since this project may not be installed there.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import json
import sys
import tomllib
from typing import Annotated, Any, get_args, get_origin


def main() -> None:
    report: dict[str, Any] = {
        "prime_rl": _import_problem("prime_rl.configs.rl"),
        "environment": _import_problem(f"{sys.argv[1]}.taskset"),
        "verifiers": importlib.metadata.version("verifiers") if importlib.util.find_spec("verifiers") else None,
        "pip": importlib.util.find_spec("pip") is not None,
        "errors": [],
    }
    if report["prime_rl"] is None and report["environment"] is None:
        report["errors"] = config_errors(tomllib.load(sys.stdin.buffer))
    print(json.dumps(report))


def _import_problem(module: str) -> str | None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        return str(error)
    return None


def config_errors(config: dict[str, Any]) -> list[dict[str, str]]:
    """What prime-rl's `RLConfig` refuses, in its own words; unknown keys with the nearest known one."""
    from prime_rl.configs.rl import RLConfig  # ty: ignore[import-not-found]
    from pydantic import ValidationError

    try:
        RLConfig.model_validate(config)
    except ValidationError as error:
        return [_describe(RLConfig, item) for item in error.errors()]
    except (ValueError, ImportError) as error:
        # verifiers resolves the environment by name inside a validator; pydantic lets a failed import through.
        return [{"key": "", "problem": str(error), "near": ""}]
    return []


def _describe(root: Any, item: Any) -> dict[str, str]:
    location = [str(part) for part in item["loc"]]
    near = ""
    if item["type"] == "extra_forbidden":
        near = (difflib.get_close_matches(location[-1], _fields(root, item["loc"][:-1]), n=1, cutoff=0.5) or [""])[0]
    return {"key": ".".join(location), "problem": item["msg"].removeprefix("Value error, "), "near": near}


def _fields(root: Any, location: tuple[Any, ...]) -> list[str]:
    """Field names of the class that stands at `location`; tags of unions and list positions are passed through."""
    models: list[Any] = [root]
    for part in location:
        inner = [
            m for model in models if part in model.model_fields for m in _models(model.model_fields[part].annotation)
        ]
        models = inner or models
    return [name for model in models for name in model.model_fields]


def _models(annotation: Any) -> list[Any]:
    """The pydantic models inside an annotation such as `Annotated[A | B, ...]` or `list[A] | None`."""
    if hasattr(annotation, "model_fields"):
        return [annotation]
    inner = get_args(annotation)[:1] if get_origin(annotation) is Annotated else get_args(annotation)
    return [model for part in inner for model in _models(part)]


if __name__ == "__main__":
    main()
