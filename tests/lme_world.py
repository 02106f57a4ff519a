"""A small LongMemEval-V2 folder made up for tests: a shop with products, each with a price; questions with evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PRODUCTS = ("Copper Kettle", "Walnut Desk", "Linen Curtain", "Granite Mortar", "Velvet Armchair", "Bamboo Lamp")

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)
"""A picture of one pixel."""


def price(number: int) -> int:
    return 100 + 17 * number


def trajectory(number: int, name: str | None = None) -> dict[str, Any]:
    """One run: the start page, a product's page, the cart."""
    product = PRODUCTS[number % len(PRODUCTS)]
    home = "\n".join(["RootWebArea 'Shop'", *(f"\t[{50 + i}] link '{p}'" for i, p in enumerate(PRODUCTS))])
    page = (
        f"RootWebArea '{product} - Shop'\n\t[20] heading '{product}'\n\t[21] StaticText 'Price of {product} "
        f"${price(number)}.00'\n\t[22] button 'Add to Cart'"
    )
    cart = f"RootWebArea 'Cart'\n\t[30] row '{product}'\n\t[31] button 'Proceed to Checkout'"
    trees, actions = [home, page, cart], [None, f"click('{50 + number % len(PRODUCTS)}')", "click('22')"]
    name = name or f"{number:08x}"
    return {
        "id": name,
        "domain": "web",
        "environment": "webarena-onestopshop",
        "goal": f"Put the {product} into the cart",
        "outcome": "success" if number % 2 == 0 else "failure",
        "start_url": "http://shop.test/",
        "states": [
            {
                "state_index": i,
                "step": i,
                "url": f"http://shop.test/{i}",
                "action": actions[i],
                "thought": f"thought {i}",
                "accessibility_tree": trees[i],
                "screenshot": f"screenshots/{name}/{i}.png",
            }
            for i in range(3)
        ],
    }


PHRASES = "norm_phrase_set_match|lower=true|normalize_hyphen=true|strip_punct=true|separators=,;|require_non_empty=true"


def question(number: int) -> dict[str, Any]:
    product = PRODUCTS[number % len(PRODUCTS)]
    return {
        "id": f"q{number:07x}",
        "domain": "web",
        "environment": "webarena-onestopshop",
        "question_type": "static-environment",
        "question": f"What price in dollars does the page of the `{product}` show?\n\nPut the integer in \\boxed{{}}.",
        "image": None,
        "answer": str(price(number)),
        "eval_function": PHRASES,
    }


def write(folder: Path, trajectories: list[Any], questions: list[dict[str, Any]] | None = None) -> Path:
    """The files of a dataset with one haystack of all trajectories; returns the folder."""
    questions = questions if questions is not None else [question(number) for number in range(len(trajectories))]
    (folder / "haystacks").mkdir(parents=True, exist_ok=True)
    _jsonl(folder / "trajectories.jsonl", trajectories)
    _jsonl(folder / "questions.jsonl", questions)
    ids = [row["id"] for row in trajectories]
    haystack = {row["id"]: ids for row in questions}
    (folder / "haystacks" / "lme_v2_small.json").write_text(json.dumps(haystack))
    evidence = [
        {"question_id": row["id"], "evidence": [{"trajectory_id": ids[n % len(ids)], "state_index": 1}]}
        for n, row in enumerate(questions)
    ]
    (folder / "evidence.json").write_text(json.dumps(evidence))
    return folder


def _jsonl(file: Path, rows: list[Any]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
