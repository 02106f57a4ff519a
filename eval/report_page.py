"""The report's page: tables and charts as HTML, the viewer's data as JSON that nothing can break out of.

All HTML is built as elements, which escape what they hold; data stand in JSON blocks without `<`, `>` and `&`; the
page's own policy (Content-Security-Policy) lets only its one script and style run, and nothing load.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import Element, tostring

from eval.report_figures import LOST_WORDS, VERDICT_WORDS
from eval.report_rollouts import Rollouts
from eval.report_svg import SERIES, Line, chart, e, legend, slug, stacked, whisker
from eval.stats import UNSCORED_LIMIT
from lme_v2_env.trajectory import SURROGATE

MEANINGS = {
    "correct": "the answer commits to the value that holds",
    "stale": "the answer gives a superseded value as the one that holds",
    "hedged": "the answer names both the value that holds and others",
    "wrong": "any other value, or none",
    "refused": "the answer says that it does not know",
    "misread": "the final notes hold the value, and the answer was not correct",
    "cut": "a reply held it only in the part that the budget cut off",
    "overwritten": "earlier notes held it, the final ones do not",
    "kept stale": "the notes never held the value, and the final ones still hold a superseded one",
    "never written": "the notes never held it, nor a superseded value at the end",
    "unknown": "it cannot be told, or the answer says so",
    "major retrieval miss": "no state of the evidence was in the context",
    "minor retrieval miss": "some, but not all of the evidence was in the context",
    "reading error": "all of the evidence was in the context, and the answer was wrong",
    "gotcha reading": "the same, on a question about an error or a trap",
    "premise": "a question with a false premise was answered as if it held",
    "evidence unknown": "the question carries no known evidence",
}
"""What the words of the charts mean, in short; docs/report.md has the exact rules."""


def render(figures: dict[str, Any], rollouts: Rollouts) -> str:
    """The whole page as text."""
    main = [part for part in _sections(figures, rollouts) if part is not None]
    script, style = _asset("report.js"), _asset("report.css")
    blocks: list[tuple[str, Any]] = [("figures", figures), ("index", rollouts.index)]
    blocks += [(f"details-{i}", part) for i, part in enumerate(rollouts.details)]
    blocks += [(f"episodes-{i}", part) for i, part in enumerate(rollouts.episodes)]
    names = [run["label"] for run in [*figures["runs"], *figures["training"]]]
    slots = {
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'",
        "title": _html(e("title", f"Report: {', '.join(names[:4])}{' and more' if len(names) > 4 else ''}")),
        "style": style,
        "main": "\n".join(map(_html, main)),
        "data": "\n".join(
            f'<script type="application/json" id="{name}">{_json(value)}</script>' for name, value in blocks
        ),
        "script": script,
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: slots[match.group(1)], _asset("report.html"))
    return SURROGATE.sub("\ufffd", page)


def _asset(name: str) -> str:
    return files("eval").joinpath("page", name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _html(element: Element) -> str:
    return tostring(element, encoding="unicode", method="html")


def _json(value: Any) -> str:
    """JSON that stays inside its block: no character that HTML reads."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _sections(figures: dict[str, Any], rollouts: Rollouts) -> list[Element | None]:
    runs, training = figures["runs"], figures["training"]
    made = [*runs, *training]
    return [
        _accuracy(runs) if runs else None,
        _split(runs, "verdicts", "How answers ended", "ended") if runs else None,
        _split(runs, "lost", "Where was the fact lost?", "lost") if any(run["lost"] for run in runs) else None,
        _pairs(figures["pairs"]) if figures["pairs"] else None,
        _by(runs, "after", "Sessions since the update", "after", "sessions that came after the last change"),
        _budget(figures["budgets"]) if figures["budgets"] else None,
        _by(runs, "types", "Kinds of question", "types", ""),
        _learning(training) if training else None,
        _cost(runs) if any(run["cost"] for run in runs) else None,
        _viewer(rollouts) if rollouts.index["rows"] else None,
        _made(made),
        _left_out(runs) if any(run["unscored"] or run["excluded"] for run in runs) else None,
    ]


def _section(name: str, title: str, *children: Element | str | None) -> Element:
    return e("section", e("h2", title), *children, id=name)


def _table(head: Sequence[str], body: Sequence[Sequence[Element | str]], label: str) -> Element:
    """The first cell of a row is its heading. Wide tables scroll on their own."""
    rows = []
    for cells in body:
        first, *rest = cells
        rows.append(e("tr", e("th", first, scope="row"), *(e("td", cell) for cell in rest)))
    top = e("thead", e("tr", *(e("th", name, scope="col") for name in head)))
    table = e("table", e("caption", label, class_="unseen"), top, e("tbody", *rows))
    return e("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


def _name(label: str, lead: str = "") -> Element:
    """A run's name, which may break at its slashes."""
    first, *rest = label.split("/")
    parts = [part for piece in rest for part in ("/", e("wbr"), piece)]
    return e("span", lead, first, *parts, class_="run")


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _range(low: float, high: float) -> str:
    return f"{100 * low:.1f} to {100 * high:.1f}"


def _accuracy(runs: Sequence[dict[str, Any]]) -> Element:
    lme = runs[0]["kind"] == "lme-v2"
    more = {"strict": "strict", "state": "evidence found"} if lme else {"gold_in_notes": "value in final notes"}
    rates = {key: name for key, name in more.items() if any(key in run["rates"] for run in runs)}
    body: list[list[Element | str]] = []
    for run in runs:
        cells: list[Element | str] = [_name(run["label"]), f"{run['scored']:,}"]
        failed = run["rows"] - run["scored"]
        bad = e("span", f"{failed:,} INVALID" if run["invalid"] else f"{failed:,}", class_="bad" if failed else None)
        if run["scored"]:
            words = f"{_percent(run['accuracy'])}, 95 % interval {_range(run['low'], run['high'])}"
            cells += [bad, e("strong", _percent(run["accuracy"])), _range(run["low"], run["high"])]
            cells.append(whisker(run["accuracy"], run["low"], run["high"], words))
        else:
            cells += [bad, "no row was scored", "", ""]
        body.append([*cells, *(_rate(run, key) for key in rates)])
    head = ["run", "rows", "unscored", "correct", "95 % interval", "0 to 100 %", *rates.values()]
    note = e(
        "p",
        "Correct over scored rows, with Wilson's interval over tasks. Unscored rows count nowhere; a run with more "
        f"than {UNSCORED_LIMIT:.0%} of them is invalid.",
        class_="note",
    )
    return _section("accuracy", "Accuracy", _table(head, body, "Accuracy of each run"), note)


def _rate(run: dict[str, Any], key: str) -> str:
    known = key in run["rates"] and run["made_by"].get("condition") != "full"  # the full context has no notes
    return _percent(run["rates"][key]) if known else "-"


def _said(word: str, key: str = "lost") -> str:
    """A word of the rows as the page says it: notes that are stale are told from answers that are."""
    return "kept stale" if (word, key) == ("stale", "lost") else word.replace("_", " ")


def _split(runs: Sequence[dict[str, Any]], key: str, title: str, name: str) -> Element:
    known = VERDICT_WORDS if key == "verdicts" else LOST_WORDS
    found = {word for run in runs for word in run[key]}
    order = known[runs[0]["kind"]]
    words = [*(word for word in order if word in found), *sorted(found - set(order))]
    bars, body = [], []
    for run in runs:
        total = run["scored"] or 1
        said = ", ".join(f"{_said(word, key)} {count}" for word, count in run[key].items())
        bar = stacked({_said(word, key): count / total for word, count in run[key].items()}, f"{run['label']}: {said}")
        bars.append(e("div", _name(run["label"]), bar, class_="barline"))
        body.append([_name(run["label"]), *(f"{run[key].get(word, 0):,}" for word in words), f"{run['scored']:,}"])
    head = ["run", *(_said(word, key) for word in words), "scored rows"]
    said = [_said(word, key) for word in words]
    meaning = [part for word in said for part in (e("dt", word), e("dd", MEANINGS.get(word, "")))]
    return _section(
        name,
        title,
        legend(said, (f"c-{slug(word)}" for word in said)),
        e("div", *bars, class_="bars"),
        _table(head, body, title),
        e("details", e("summary", "what the words mean"), e("dl", *meaning)),
    )


def _pairs(found: Sequence[dict[str, Any]]) -> Element:
    body = []
    for pair in found:
        p = pair["mcnemar_exact_p"]
        verdict = {"improved": "B is better", "worse": "B is worse"}.get(pair["verdict"], pair["verdict"])
        body.append(
            [
                e("span", _name(pair["a"]["run"], "A "), e("br"), _name(pair["b"]["run"], "B ")),
                f"{pair['n']:,}",
                _percent(pair["a"]["accuracy"]),
                _percent(pair["b"]["accuracy"]),
                f"{100 * pair['difference']:+.1f}",
                _range(pair["difference_low"], pair["difference_high"]),
                f"{pair['only_a']:,} / {pair['only_b']:,}",
                "< 0.0001" if p < 0.0001 else f"{p:.4f}",
                verdict,
                e("span", ", ".join(word.replace("_", " ") for word in pair["differs_in"]) or "-", class_="prose"),
            ]
        )
    head = [
        "runs",
        "tasks",
        "A",
        "B",
        "B - A, points",
        "95 % interval",
        "only A / only B right",
        "McNemar p",
        "result",
        "differ in",
    ]
    least = min(pair["resamples"] for pair in found)
    note = (
        f"Task by task. The interval is a paired bootstrap over tasks ({least:,} resamples); p is the exact two-sided "
        f"McNemar test on first samples, without correction for the number of comparisons ({len(found)})."
    )
    return _section("pairs", "Paired comparison", _table(head, body, "Paired comparison"), e("p", note, class_="note"))


def _by(runs: Sequence[dict[str, Any]], key: str, title: str, name: str, axis: str) -> Element | None:
    shown = [run for run in runs if run[key]]
    if not shown:
        return None
    keys = sorted({group["key"] for run in shown for group in run[key]})
    body = []
    for run in shown:
        groups = {group["key"]: group for group in run[key]}
        body.append([_name(run["label"]), *(_cell(groups.get(value)) for value in keys)])
    picture: list[Element] = []
    if axis and len(keys) > 1:
        lines = [
            Line(run["label"], [(g["key"], g["accuracy"], g["low"], g["high"]) for g in run[key]]) for run in shown
        ]
        picture = [_figure(lines, f"Accuracy by {axis}", axis, percent=True)]
    table = _table(["run", *(str(value) for value in keys)], body, title)
    return _section(name, title, *picture, table, e("p", "Right of how many rows.", class_="note"))


def _cell(group: dict[str, Any] | None) -> str:
    return f"{_percent(group['accuracy'])} ({group['right']} of {group['n']})" if group else "-"


def _figure(lines: Sequence[Line], title: str, axis: str, *, percent: bool) -> Element:
    names = [line.name for line in lines]
    classes = [f"l{place % SERIES}" for place in range(len(lines))]
    return e("figure", legend(names, classes), chart(lines, title=title, x=axis, percent=percent))


def _budget(groups: Sequence[dict[str, Any]]) -> Element:
    lines = [Line(g["label"], [(p["key"], p["accuracy"], p["low"], p["high"]) for p in g["points"]]) for g in groups]
    budgets = sorted({point["key"] for group in groups for point in group["points"]})
    body = []
    for group in groups:
        points = {point["key"]: point for point in group["points"]}
        body.append([_name(group["label"]), *(_cell(points.get(budget)) for budget in budgets)])
    table = _table(["runs", *(f"{budget} characters" for budget in budgets)], body, "Accuracy by budget")
    picture = _figure(lines, "Accuracy by budget", "characters that the notes may hold", percent=True)
    return _section("budget", "Budget of the notes", picture, table)


def _held_out(checkpoints: Sequence[dict[str, Any]]) -> list[Line]:
    """A line a task set: other tasks are another curve."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for point in checkpoints:
        sets.setdefault(point["tasks"], []).append(point)
    return [
        Line(
            f"{points[0]['data']} (n = {points[0]['n']}): correct",
            [(p["step"], p["accuracy"], p["low"], p["high"]) for p in points],
        )
        for points in sets.values()
    ]


def _learning(training: Sequence[dict[str, Any]]) -> Element:
    parts: list[Element] = []
    for run in training:
        steps = run["steps"]
        rewards = [(s["step"], s["reward"]) for s in steps if "reward" in s]
        lines = [Line("mean reward", rewards, marks=len(steps) <= 40)] if rewards else []
        for key, name in (("correct", "correct"), ("stale", "stale"), ("varied", "groups with variance")):
            points = [(s["step"], s[key]) for s in steps if key in s]
            lines += [Line(name, points, marks=False)] if points else []
        lines += _held_out(run["checkpoints"])
        said = ", ".join(f"{name} {value}" for name, value in run["made_by"].items())
        heading = e("h3", run["label"])
        ends = ", ".join(f"{reward:.3f} at step {step}" for step, reward in rewards[:1] + rewards[1:][-1:])
        words = f"{len(steps)} steps in {run['seconds'] / 60:.0f} minutes; mean reward {ends or 'none'}. {said}"
        picture = _figure(lines, f"Training of {run['label']}", "GRPO step", percent=False)
        parts.append(e("div", heading, picture, e("p", words, class_="note")))
    return _section("learning", "Learning curve", e("div", *parts, class_="cards"))


COST_WORDS = {
    "seconds_mean": "seconds, mean",
    "seconds_p50": "p50",
    "seconds_p95": "p95",
    "seconds_total": "in total",
    "calls": "model calls a row",
    "new_tokens": "new tokens a row",
    "prompt_tokens": "prompt tokens a row",
    "completion_tokens": "completion tokens a row",
    "context_tokens_shown": "context tokens a row",
}


def _cost(runs: Sequence[dict[str, Any]]) -> Element:
    keys = [key for key in COST_WORDS if any(key in run["cost"] for run in runs)]
    body = [
        [_name(run["label"]), *(_amount(run["cost"][key]) if key in run["cost"] else "-" for key in keys)]
        for run in runs
    ]
    what = "a query, without the reader" if runs[0]["kind"] == "lme-v2" else "a rollout (in batches: its share)"
    note = e("p", f"Seconds are of {what}; '-': the run did not record it.", class_="note")
    table = _table(["run", *(COST_WORDS[key] for key in keys)], body, "Cost and latency")
    return _section("cost", "Cost and latency", table, note)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value < 1 else f"{value:.1f}"


def _made(made: Sequence[dict[str, Any]]) -> Element:
    """One column a run; what differs stands out."""
    names = list(dict.fromkeys(name for run in made for name in run["made_by"]))
    body: list[list[Element | str]] = []
    for name in names:
        values = [run["made_by"].get(name, "-") for run in made]
        known = {value for value in values if value != "-"}
        body.append([name, *(e("strong", value) if len(known) > 1 else value for value in values)])
    dates = [" to ".join(dict.fromkeys(day[:16].replace("T", " ") for day in run.get("dates", ()))) for run in made]
    body.append(["date (UTC)", *(date or "not recorded" for date in dates)])
    table = _table(["setting", *(run["label"] for run in made)], body, "What made the runs")
    return _section("made", "Who ran what", table, e("p", "Bold: not the same in all runs.", class_="note"))


def _left_out(runs: Sequence[dict[str, Any]]) -> Element:
    items = [
        e("li", e("strong", run["label"]), f": {kind} {count:,}: {reason}")
        for run in runs
        for kind in ("unscored", "excluded")
        for reason, count in run[kind].items()
    ]
    return _section("left-out", "Unscored and left out", e("ul", *items))


def _viewer(rollouts: Rollouts) -> Element:
    index = rollouts.index
    several = [e("option", "all runs", value=""), *(e("option", r, value=i) for i, r in enumerate(index["runs"]))]
    ended = [e("option", word, value=word) for word in ("", *index["verdicts"])]
    where = [e("option", _said(word), value=word) for word in ("", *index["lost"])]
    ended[0].text, where[0].text = "any ending", "lost anywhere"
    form = e(
        "form",
        e("label", "run ", e("select", *several, id="f-run")),
        e("label", "ended ", e("select", *ended, id="f-verdict")),
        e("label", "lost ", e("select", *where, id="f-lost")),
        e("label", "text ", e("input", id="f-text", type="search", placeholder="question, answer, gold, id")),
        id="filter",
        role="search",
    )
    keys = "Left and right arrow keys step through the turns, j and k through the rollouts."
    return _section(
        "rollouts",
        "Rollouts",
        *(e("p", note, class_="note") for note in rollouts.notes),
        form,
        e("p", id="count", role="status", class_="note"),
        e("div", e("div", id="list"), e("div", id="detail"), class_="viewer"),
        e("p", keys, class_="note"),
    )
