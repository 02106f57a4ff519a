"""The report's small charts as SVG elements.

Written out rather than drawn by matplotlib: a bar must stretch with a phone's width, take its colours from the page's
light or dark style, and be the same bytes wherever it is made; matplotlib's SVG is a fixed picture with fonts and ids
of its own. Elements are `xml.etree`'s, which escapes every text and attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any
from xml.etree.ElementTree import Element, SubElement

WIDTH, HEIGHT = 420, 250
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 10, 38
"""The viewing box and its margins: readable at a phone's width without scaling down."""

SERIES = 8
"""Colours of lines; more lines take them again with another dash."""


def e(tag: str, *children: Element | str | None, **attributes: object) -> Element:
    """An element. `class_` is class, other underscores are hyphens; None leaves an attribute or a child out."""
    names = {name: "class" if name == "class_" else name.replace("_", "-") for name in attributes}
    element = Element(tag, {names[name]: str(value) for name, value in attributes.items() if value is not None})
    for child in children:
        if isinstance(child, str):
            if len(element):
                element[-1].tail = (element[-1].tail or "") + child
            else:
                element.text = (element.text or "") + child
        elif child is not None:
            element.append(child)
    return element


def slug(word: str) -> str:
    """A word as part of a class: letters, digits and hyphens only."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in word.lower())


def number(value: float) -> str:
    """A coordinate, rounded so that the same figures make the same bytes."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def stacked(shares: Mapping[str, float], label: str) -> Element:
    """One bar of parts that sum to at most 1, as wide as its place."""
    svg = e("svg", class_="bar", role="img", aria_label=label, width="100%", height="20")
    at = 0.0
    for word, share in shares.items():
        box = e("rect", e("title", f"{word.replace('_', ' ')} {share:.1%}"), class_=f"c-{slug(word)}")
        box.attrib |= {"x": f"{number(100 * at)}%", "y": "2", "height": "16", "width": f"{number(100 * share)}%"}
        svg.append(box)
        at += share
    return svg


def whisker(value: float, low: float, high: float, label: str) -> Element:
    """A proportion with its interval on a scale of 0 to 1, as wide as its place."""
    svg = e("svg", class_="whisker", role="img", aria_label=label, width="100%", height="20")

    def line(x1: float, x2: float, y1: int, y2: int, kind: str) -> None:
        places = {"x1": f"{number(100 * x1)}%", "x2": f"{number(100 * x2)}%", "y1": y1, "y2": y2}
        svg.append(e("line", class_=kind, **places))

    line(0, 1, 10, 10, "axis")
    line(low, high, 10, 10, "range")
    line(low, low, 5, 15, "range")
    line(high, high, 5, 15, "range")
    svg.append(e("circle", cx=f"{number(100 * value)}%", cy="10", r="5", class_="point"))
    return svg


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart; points are (x, y) or (x, y, low, high)."""

    name: str
    points: Sequence[tuple[float, ...]]
    marks: bool = True
    joined: bool = True


def chart(lines: Sequence[Line], *, title: str, x: str, percent: bool) -> Element:
    """Lines over a numeric axis, with intervals where the points have them; the legend stands in the page."""
    points = [point for line in lines for point in line.points]
    xs = sorted({point[0] for point in points})
    ys = [value for point in points for value in point[1:]]
    ticks_y = [0, 0.25, 0.5, 0.75, 1] if percent else nice(min(0.0, *ys), max(0.0, *ys))
    ticks_x = xs if len(xs) <= 7 and percent else nice(xs[0], xs[-1])
    to_x = _scale(min(xs[0], ticks_x[0]), max(xs[-1], ticks_x[-1]), LEFT, WIDTH - RIGHT, 14)
    to_y = _scale(min(ticks_y[0], *ys), max(ticks_y[-1], *ys), HEIGHT - BOTTOM, TOP, 0)
    svg = e("svg", e("title", title), viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="chart", role="img", aria_label=title)
    for tick in ticks_y:
        y = number(to_y(tick))
        svg.append(e("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        text = f"{tick:.0%}" if percent else f"{tick:g}"
        svg.append(e("text", text, x=LEFT - 6, y=number(to_y(tick) + 4), text_anchor="end"))
    for tick in ticks_x:
        svg.append(e("text", f"{tick:g}", x=number(to_x(tick)), y=HEIGHT - BOTTOM + 16, text_anchor="middle"))
    svg.append(e("text", x, x=(LEFT + WIDTH - RIGHT) // 2, y=HEIGHT - 6, text_anchor="middle", class_="label"))
    for place, line in enumerate(lines):
        svg.append(_drawn(line, place, len(lines), to_x, to_y))
    return svg


def _drawn(line: Line, place: int, of: int, to_x: Any, to_y: Any) -> Element:
    again = " again" if place >= SERIES else ""
    group = e("g", class_=f"s{place % SERIES}{again}")
    nudge = 5 * (place - (of - 1) / 2) if any(len(point) == 4 for point in line.points) and of <= SERIES else 0
    spots = [(to_x(point[0]) + nudge, to_y(point[1])) for point in line.points]
    if line.joined and len(spots) > 1:
        path = " ".join(f"{number(x)},{number(y)}" for x, y in spots)
        SubElement(group, "polyline", {"points": path, "class": "line"})
    for (x, y), point in zip(spots, line.points, strict=True):
        if len(point) == 4:
            ends = {"x1": number(x), "x2": number(x), "y1": number(to_y(point[2])), "y2": number(to_y(point[3]))}
            SubElement(group, "line", {"class": "interval", **ends})
        if line.marks:
            group.append(e("circle", cx=number(x), cy=number(y), r="3.5", class_="mark"))
    return group


def _scale(low: float, high: float, start: float, end: float, inset: float) -> Any:
    inset = inset if start < end else -inset
    start, end = start + inset, end - inset
    if high == low:
        return lambda value: (start + end) / 2
    return lambda value: start + (value - low) / (high - low) * (end - start)


def nice(low: float, high: float) -> list[float]:
    """Round ticks, about five, within or just around the range."""
    if high <= low:
        return [low]
    step = 10 ** floor(log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    return [round(i * step, 10) for i in range(floor(low / step + 1e-9), ceil(high / step - 1e-9) + 1)]


def legend(names: Iterable[str], classes: Iterable[str]) -> Element:
    """Swatches with their names."""
    items = [
        e("li", e("span", class_=f"swatch {kind}", aria_hidden="true"), name)
        for name, kind in zip(names, classes, strict=True)
    ]
    return e("ul", *items, class_="legend")
