"""The closed word lists that quantities are read with: numbers, units of time and measure, currencies, the calendar."""

from __future__ import annotations

from rewards.words import groups, listed

NUMBER_WORDS: dict[str, float] = {
    word: float(value)
    for value, word in enumerate(
        listed(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
            " seventeen eighteen nineteen"
        )
    )
}
NUMBER_WORDS |= {
    word: 10.0 * value
    for value, word in enumerate(listed("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
NUMBER_WORDS["fourty"] = 40.0
NUMBER_WORDS |= {  # German, Spanish, French, Italian; none that is an English word
    word: float(value)
    for value, same in enumerate(
        groups(
            "zwei dos deux|drei tres trois|vier cuatro quatre quattro|funf cinco cinq cinque|sechs seis"
            "|sieben siete sette|acht ocho huit|neun nueve neuf|zehn diez dieci|onze|zwolf doce douze"
            "|dreizehn trece|vierzehn catorce"
        ),
        start=2,
    )
    for word in same
}

ORDINAL_WORDS: dict[str, float] = {
    word: float(value)
    for value, word in enumerate(
        listed(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
            " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
        ),
        start=1,
    )
} | {"thirtieth": 30.0, "fortieth": 40.0, "fiftieth": 50.0}

SCALES: dict[str, float] = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9}

MAGNITUDES: dict[str, float] = {
    **SCALES,
    "k": 1e3,
    "m": 1e6,
    "mil": 1e6,
    "bn": 1e9,
    "grand": 1e3,
    "dozen": 12.0,
    "couple": 2.0,
}
"""What follows a number and multiplies it. "m" counts after a currency sign only; elsewhere it is metres or minutes."""

_S, _MO = "s", "mo"
DURATIONS: dict[str, tuple[float, str]] = {}
for _names, _factor, _base in (
    ("second seconds sec secs s", 1.0, _S),
    ("minute minutes min mins", 60.0, _S),
    ("hour hours hr hrs h", 3600.0, _S),
    ("day days d", 86400.0, _S),
    ("week weeks wk wks", 604800.0, _S),
    ("fortnight fortnights", 1209600.0, _S),
    ("month months mo mos", 1.0, _MO),
    ("year years yr yrs", 12.0, _MO),
    ("decade decades", 120.0, _MO),
):
    for _name in _names.split():
        DURATIONS[_name] = (_factor, _base)

FREQUENCY_WORDS: dict[str, tuple[float, float]] = {
    "daily": (1.0, 1.0),
    "nightly": (1.0, 1.0),
    "weekly": (1.0, 7.0),
    "fortnightly": (1.0, 14.0),
    "biweekly": (1.0, 14.0),
    "monthly": (1.0, 30.0),
    "bimonthly": (1.0, 60.0),
    "quarterly": (1.0, 90.0),
    "yearly": (1.0, 365.0),
    "annually": (1.0, 365.0),
    "hourly": (1.0, 1 / 24),
}
"""(times, period in days)."""

CURRENCY_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₩": "KRW"}
CURRENCIES: dict[str, str] = {}
for _names, _code in (
    ("dollar dollars usd bucks buck", "USD"),
    ("euro euros eur", "EUR"),
    ("gbp quid sterling", "GBP"),
    ("yen jpy", "JPY"),
    ("rupee rupees inr", "INR"),
    ("krw", "KRW"),
    ("franc francs chf", "CHF"),
    ("kroner krone kr nok dkk", "NOK"),
    ("kronor krona sek", "SEK"),
    ("zloty pln", "PLN"),
    ("pesos peso", "MXN"),
):
    for _name in _names.split():
        CURRENCIES[_name] = _code

MEASURES: dict[str, tuple[str, float]] = {}  # cups are counted, not measured
for _names, _dimension, _factor in (
    ("mm millimeter millimeters millimetre millimetres", "length", 0.001),
    ("cm centimeter centimeters centimetre centimetres", "length", 0.01),
    ("m meter meters metre metres", "length", 1.0),
    ("km kms kilometer kilometers kilometre kilometres", "length", 1000.0),
    ("inch inches in", "inch", 1.0),
    ("foot feet ft", "inch", 12.0),
    ("yard yards yd yds", "inch", 36.0),
    ("mile miles mi", "inch", 63360.0),
    ("mg milligram milligrams", "mass", 0.001),
    ("g gram grams", "mass", 1.0),
    ("kg kgs kilo kilos kilogram kilograms", "mass", 1000.0),
    ("ton tons tonne tonnes", "mass", 1e6),
    ("oz ounce ounces", "ounce", 1.0),
    ("lb lbs pound pounds", "ounce", 16.0),
    ("stone", "ounce", 224.0),
    ("ml milliliter milliliters millilitre millilitres", "volume", 0.001),
    ("cl", "volume", 0.01),
    ("l liter liters litre litres", "volume", 1.0),
    ("gallon gallons gal", "gallon", 1.0),
    ("pint pints", "gallon", 0.125),
    ("tablespoon tablespoons tbsp", "spoon", 3.0),
    ("teaspoon teaspoons tsp", "spoon", 1.0),
    ("kb", "bytes", 1e3),
    ("mb", "bytes", 1e6),
    ("gb gig gigs gigabyte gigabytes", "bytes", 1e9),
    ("tb terabyte terabytes", "bytes", 1e12),
    ("kbps", "bitrate", 1e3),
    ("mbps mbit", "bitrate", 1e6),
    ("gbps gbit", "bitrate", 1e9),
    ("celsius centigrade c", "celsius", 1.0),
    ("fahrenheit f", "fahrenheit", 1.0),
    ("mph", "mph", 1.0),
    ("kmh kph", "kmh", 1.0),
    ("acre acres", "acre", 1.0),
    ("watt watts", "power", 1.0),
    ("kw kilowatt kilowatts", "power", 1e3),
    ("kcal cal calorie calories", "calorie", 1.0),
    ("mah", "charge", 1.0),
):
    for _name in _names.split():
        MEASURES[_name] = (_dimension, _factor)

MONTHS: dict[str, int] = {
    word: number
    for number, same in enumerate(
        groups(
            "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept"
            "|october oct|november nov|december dec"
        ),
        start=1,
    )
    for word in same
}

WEEKDAYS: dict[str, int] = {
    word: number
    for number, same in enumerate(
        groups(
            "monday mondays mon|tuesday tuesdays tue tues|wednesday wednesdays wed weds"
            "|thursday thursdays thu thur thurs|friday fridays fri|saturday saturdays sat|sunday sundays sun"
        )
    )
    for word in same
}

AM_PM = {"am": "am", "a.m.": "am", "a.m": "am", "pm": "pm", "p.m.": "pm", "p.m": "pm"}
