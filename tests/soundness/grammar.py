"""Random predicates, over values at, beside and far from those in the data, in their own and in other types."""

from __future__ import annotations

import random

from dbt_zorder.spark.sql import quote_string
from tests.soundness.world import COLUMNS, LEAVES

_NUMBERS = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal"]
_TIMES = {"date", "timestamp", "timestamp_ntz"}
_OPS = ["=", "<", "<=", ">", ">=", "<>", "!=", "<=>", "==", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]


class Grammar:
    """Predicates drawn from ``seed``; ``safe`` leaves out what raises under ANSI, and ``functions`` may be left out."""

    def __init__(self, seed: int, *, safe: bool = False, functions: bool = True) -> None:
        self.functions = functions
        self.rng = random.Random(seed)
        self.safe = safe
        self.columns = [*COLUMNS, *LEAVES]

    def predicate(self, depth: int | None = None) -> str:
        rng = self.rng
        if depth is None:
            depth = rng.choice([0, 1, 1, 2, 2, 3, 4])
        if depth == 0 or rng.random() < 0.35:
            return self.atom()
        kind = rng.random()
        if kind < 0.2:
            return f"NOT ({self.predicate(depth - 1)})"
        glue = " AND " if kind < 0.6 else " OR "
        parts = [self.predicate(depth - 1) for _ in range(rng.choice([2, 2, 3]))]
        return glue.join(part if rng.random() < 0.3 and " OR " not in part else f"({part})" for part in parts)

    def atom(self) -> str:
        rng = self.rng
        name = rng.choice(self.columns)
        kind = self.kind(name)
        makers = [self._compare] * 6 + [self._in] * 3 + [self._between] * 2 + [self._null] * 2 + [self._cast] * 2
        makers += [self._function, self._columns, self._rows]
        if self.functions and name != "lc" and kind != "boolean":
            makers += [self._cases] * 2
            makers += [self._arithmetic] * 3 if kind in _NUMBERS else []
            makers += [self._prefix] * 3 if kind == "string" else []
            makers += [self._time_function] * 8 if kind in _TIMES else []
        if kind == "string":
            makers += [self._like] * 6
            makers += [self._letter_case] * 2 if self.functions and name != "lc" else []
        if kind == "boolean":
            makers = [self._boolean]
        if kind in {"date", "timestamp", "timestamp_ntz"}:
            makers += [self._date_function] * 4
        return rng.choice(makers)(name)

    def kind(self, name: str) -> str:
        return COLUMNS[LEAVES.get(name, name)][0].split("(")[0].split(" ")[0]

    def raw(self, name: str) -> str:
        return self.rng.choice(self.rng.choice(COLUMNS[LEAVES.get(name, name)][2]))

    def literal(self, name: str) -> str:
        """A literal to compare the column with; one in four is of another type than the column."""
        rng, kind = self.rng, self.kind(name)
        foreign = rng.random() < 0.25 and name != "lc"
        if rng.random() < 0.04 and name != "lc":
            return "NULL"
        if kind in _NUMBERS:
            return self._number(name, foreign)
        value = self.raw(name)
        if kind == "string":
            if foreign and not self.safe:
                return rng.choice(["5", "1.5", "10L", "DATE '2024-01-01'"])
            return (
                quote_string(value)
                if rng.random() < 0.9
                else quote_string(value + rng.choice(["a", " ", "\x00", "zz"]))
            )
        if kind == "binary":
            return f"X'{value}'"
        if kind == "boolean":
            return rng.choice(["true", "false"])
        return self._time(kind, foreign)

    def _number(self, name: str, foreign: bool) -> str:
        rng, value = self.rng, self.raw(name)
        if rng.random() < 0.25 and value.lstrip("-").isdigit():
            value = str(int(value) + rng.choice([-1, 1]))
        if value in {"NaN", "Infinity", "-Infinity"}:
            return f"{rng.choice(['double', 'float'])}('{value}')"
        if foreign:
            forms = [
                "0.5",
                "1.5D",
                "2.5BD",
                "1e0",
                "9007199254740993",
                "2147483648L",
                "1.0000000000000000000001",
                "16777217",
            ]
            return rng.choice([*forms, f"'{value}'"] + ([] if self.safe else ["'x'", "'1.5'"]))
        plain = value.lstrip("-")
        if plain.isdigit() and int(plain) < 2**63:
            suffix = rng.choice(["", "", "L", "D", ".0", "BD"])
            return f"{value}{suffix}"
        return value if "e" not in value else f"{value}D"

    def _time(self, kind: str, foreign: bool) -> str:
        rng = self.rng
        days = [
            "2024-01-01",
            "2023-12-31",
            "2024-11-03",
            "2010-11-07",
            "0001-01-01",
            "9999-12-31",
            "1970-01-01",
            "2011-12-30",
        ]
        clocks = ["00:00:00", "01:30:00", "00:00:30", "23:59:59.999999", "05:30:00.000001"]
        day, clock = rng.choice(days), rng.choice(clocks)
        own = {
            "date": f"DATE '{day}'",
            "timestamp": f"TIMESTAMP '{day} {clock}'",
            "timestamp_ntz": f"TIMESTAMP_NTZ '{day} {clock}'",
        }
        if not foreign:
            return own[kind]
        return rng.choice([*own.values(), f"'{day}'", f"'{day} {clock}'", f"TIMESTAMP '{day} {clock} UTC'"])

    def _compare(self, name: str) -> str:
        op, value = self.rng.choice(_OPS), self.literal(name)
        return f"{name} {op} {value}" if self.rng.random() < 0.8 or "IS" in op else f"{value} {op} {name}"

    def _in(self, name: str) -> str:
        size = self.rng.choice([1, 2, 3, 5, 20])
        values = ", ".join(self.literal(name) for _ in range(size))
        return f"{name} {self.rng.choice(['', '', 'NOT '])}IN ({values})"

    def _between(self, name: str) -> str:
        if name == "lc":
            return self._compare(name)
        return f"{name} {self.rng.choice(['', 'NOT '])}BETWEEN {self.literal(name)} AND {self.literal(name)}"

    def _null(self, name: str) -> str:
        return f"{name} IS {self.rng.choice(['', 'NOT '])}NULL"

    def _boolean(self, name: str) -> str:
        forms = [
            "{}",
            "NOT {}",
            "{} = true",
            "{} <> false",
            "{} IS TRUE",
            "{} IS NOT TRUE",
            "{} <=> false",
            "{} IS NULL",
        ]
        return self.rng.choice(forms).format(name)

    def _like(self, name: str) -> str:
        rng, value = self.rng, self.raw(name)
        cut = value[: rng.randint(0, len(value))].replace("%", r"\%").replace("_", r"\_")
        pattern = cut + rng.choice(["%", "%", "%", "", "_", "%a", "_%", "%%", r"\%", r"\_%"])
        negated = rng.choice(["", "", "NOT "])
        form = rng.random()
        if form < 0.6:
            return f"{name} {negated}LIKE {quote_string(pattern)}"
        if form < 0.75:
            return f"{name} {negated}LIKE {quote_string(pattern.replace(chr(92), '!'))} ESCAPE '!'"
        if form < 0.9:
            return f"{negated}startswith({name}, {quote_string(value[: rng.randint(0, len(value))])})"
        return f"{name} {negated}{rng.choice(['ILIKE', 'LIKE'])} {quote_string('%' + cut.replace(chr(92), '') + '%')}"

    def _letter_case(self, name: str) -> str:
        rng, value = self.rng, self.raw(name)
        function = rng.choice(["lower", "upper", "lcase", "ucase"])
        folded = value.upper() if function[0] == "u" else value.lower()
        cut = folded[: rng.randint(1, max(1, len(folded)))]
        pattern = quote_string(cut.replace("%", r"\%").replace("_", r"\_") + "%")
        others = ", ".join(quote_string(self.raw(name)) for _ in range(rng.choice([0, 1, 3])))
        folded, cut = quote_string(folded), quote_string(cut)
        forms = [
            f"{function}({name}) = {folded}",
            f"{folded} <=> {function}({name})",
            f"{function}({name}) IN ({folded}{', ' if others else ''}{others})",
            f"{function}({name}) LIKE {pattern}",
            f"startswith({function}({name}), {cut})",
            f"{name} ILIKE {pattern}",
        ]
        return rng.choice(["", "", "NOT "]) + rng.choice(forms)

    def _cast(self, name: str) -> str:
        kind = self.kind(name)
        to = {
            "string": ["binary", "string"] if self.safe else ["int", "date", "string"],
            "date": ["timestamp", "timestamp_ntz", "string"],
            "timestamp": ["date", "string", "timestamp_ntz"],
            "timestamp_ntz": ["date", "string", "timestamp"],
            "binary": ["string"],
        }.get(kind, ["bigint", "double", "decimal(38,10)", "string", "float", "decimal(20,0)"])
        if not self.safe and kind in _NUMBERS:
            to += ["int", "tinyint", "decimal(5,1)", "decimal(3,0)"]
        if kind == "timestamp":
            to += ["bigint", "double"]
        target = self.rng.choice(to)
        value = quote_string(self.raw(name)) if target in {"string", "binary"} else self.literal(name)
        if kind == "timestamp" and target in {"bigint", "double"}:
            value = self._seconds()
        elif target == "string" and kind in _TIMES:
            value = quote_string(self._text_of_time())
        elif target == "string" and kind in _NUMBERS and self.rng.random() < 0.3:
            return f"CAST({name} AS string) {self.rng.choice(['', 'NOT '])}IN ({value}, '1', '007', '-0', '127')"
        if target == "binary":
            value = f"cast({value} AS binary)"
        return f"CAST({name} AS {target}) {self.rng.choice(_OPS[:7])} {value}"

    def _function(self, name: str) -> str:
        kind, op = self.kind(name), self.rng.choice(_OPS[:7])
        if kind == "string":
            function = self.rng.choice(
                ["upper({})", "substring({}, 1, 2)", "trim({})", "concat({}, 'x')", "reverse({})"]
            )
            return f"{function.format(name)} {op} {self.literal(name) if self.safe else quote_string(self.raw(name))}"
        if kind in {"float", "double"} or (kind in _NUMBERS and not self.safe):
            function = self.rng.choice(["abs({})", "({} * -1)", "({} + 1)", "coalesce({}, 0)", "({} % 2)", "-{}"])
            return f"{function.format(name)} {op} {self._number(name, False)}"
        return f"coalesce({name}, {name}) {op} {self.literal(name)}"

    def _date_function(self, name: str) -> str:
        rng, op = self.rng, self.rng.choice(_OPS[:7])
        day = self._time("date", False)
        form = rng.random()
        if form < 0.3:
            return f"year({name}) {op} {rng.choice([2023, 2024, 2010, 1, 9999, 2011])}"
        if form < 0.5:
            return f"date({name}) {op} {day}"
        if form < 0.7:
            return f"to_date({name}) IN ({day}, {self._time('date', False)})"
        if form < 0.9:
            return f"trunc({name}, '{rng.choice(['month', 'year', 'quarter', 'week'])}') {op} {day}"
        return f"month({name}) {op} {rng.choice([1, 11, 12])}"

    def _arithmetic(self, name: str) -> str:
        """A function of a number that keeps or reverses its order, or would if it did not overflow."""
        rng, op = self.rng, self.rng.choice(_OPS[:7])
        if self.safe and self.kind(name) not in {"float", "double"}:
            name = rng.choice(["n1", "n2"])
        v = rng.choice(["1", "2", "-1", "-3", "0", "100", "1.5", "0.5D", "-2.5BD", "2147483647L", "3e0"])
        forms = [
            "{c} + {v}", "{v} + {c}", "{c} - {v}", "{v} - {c}", "{c} * {v}", "{v} * {c}", "- {c}", "negative({c})",
            "floor({c})", "ceil({c})", "round({c})", "round({c}, 1)", "bround({c})", "positive({c})", "({c} + 1) * {v}",
            "-({c} - {v})", "{c} + 1 + {v}",
        ]  # fmt: skip
        if v != "0":
            forms += ["{c} / {v}"]
        if self.kind(name) in {"tinyint", "smallint", "int"}:
            seconds = ["timestamp_seconds({c})", "from_unixtime({c}, 'yyyy-MM-dd HH')", "date_from_unix_date({c})"]
            form = rng.choice([*forms, *seconds])
            if form in seconds:
                value = "TIMESTAMP '1970-01-01 00:00:02'" if "sec" in form else "'1969-12-31 20'"
                if "date(" in form:
                    value = "DATE '1970-01-03'"
                return f"{form.format(c=name)} {op} {value}"
        else:
            form = rng.choice(forms)
        return f"({form.format(c=name, v=v)}) {op} {self._number(name, rng.random() < 0.3)}"

    def _prefix(self, name: str) -> str:
        rng, value = self.rng, self.raw(name)
        size = rng.choice([0, 1, 2, 3, 8])
        kind = rng.random()
        if kind < 0.4:
            made = rng.choice([f"substr({name}, 1, {size})", f"left({name}, {size})", f"substring({name}, 0, {size})"])
            text = rng.choice([value[:size], value[:1], value])
            form = rng.random()
            if form < 0.7:
                return f"{made} {rng.choice(_OPS[:7])} {quote_string(text)}"
            return f"{made} {rng.choice(['', 'NOT '])}IN ({quote_string(text)}, 'z', 'pre')"
        if kind < 0.6:
            made = rng.choice([f"concat('p', {name})", f"'p' || {name}", f"concat({name}, 'p')"])
            return f"{made} {rng.choice(_OPS[:7])} {quote_string(rng.choice(['p' + value, value]))}"
        cut = "".join(
            f"\\{one}" if one in "^$.|?*+()[]{}" else one for one in value[: rng.randint(0, 3)] if one != "\x00"
        )
        ends = ["", "", ".*", "$", "+", "?", "*", "{0,1}", "|b", "[a-z]", "(1|2)", "."]
        pattern = rng.choice(["^", "^", "^", "", "(?i)^"]) + cut + rng.choice(ends if cut else ends[:4])
        written = rng.choice(["{} {}RLIKE {}", "{1}rlike({0}, {2})", "{1}regexp_like({0}, {2})"])
        return written.format(name, rng.choice(["", "", "NOT "]), quote_string(pattern))

    def _cases(self, name: str) -> str:
        """A function of several cases, whose values may be of several types."""
        rng, op = self.rng, self.rng.choice(_OPS[:8])
        kind = self.kind(name)
        other = rng.choice([one for one in self.columns if self.kind(one) == kind and one != "lc"])
        own = self.raw(name)
        if kind in _NUMBERS:
            values = ["0", "1", "-1", "2.5", "3L", self._number(name, False)]
            one, value = rng.choice(values), self._number(name, False)
        elif kind == "string":
            one, value = quote_string(self.raw(name)), quote_string(own)
        elif kind == "binary":
            one, value = f"X'{self.raw(name)}'", f"X'{own}'"
        else:
            one, value = self._time(kind, False), self._time(kind, rng.random() < 0.3)
        test = rng.choice(["n1 = 2", "n2 > 3", "ok", "n1 IS NULL", f"{name} IS NULL", "NOT ok", "n1 <=> 1", "i8 < n1"])
        forms = [
            "coalesce({c}, {one})", "coalesce({c}, {o}, {one})", "nvl({c}, {one})", "ifnull({c}, {o})",
            "nullif({c}, {one})", "nullif({c}, {value})", "if({t}, {c}, {o})", "if({t}, {c}, {one})",
            "if({t}, NULL, {c})", "nvl2({o}, {c}, {one})", "CASE WHEN {t} THEN {c} ELSE {one} END",
            "CASE WHEN {t} THEN {c} WHEN n2 = 2 THEN {o} END", "CASE n1 WHEN 1 THEN {c} WHEN 2 THEN {one} ELSE {o} END",
        ]  # fmt: skip
        made = rng.choice(forms).format(c=name, o=other, one=one, value=value, t=test)
        form = rng.random()
        if form < 0.6:
            return f"{made} {op} {value}"
        if form < 0.75:
            return f"{made} IS {rng.choice(['', 'NOT '])}NULL"
        if form < 0.9:
            return f"{made} {rng.choice(['', 'NOT '])}IN ({value}, {one})"
        return f"(if({test}, {name} {op} {value}, {name} IS NULL)) {rng.choice(['', '= true', '<=> false'])}"

    def _seconds(self) -> str:
        return self.rng.choice(["1289097001", "1704067200", "1289100600", "0", "1325239200", "1704067199.999999D"])

    def _text_of_time(self) -> str:
        rng = self.rng
        day = rng.choice(
            ["2024-01-01", "2023-12-31", "2010-11-07", "2010-11-06", "2010-03-14", "0001-01-01", "9999-12-31"]
        )
        clock = rng.choice(["00:00:00", "01:30:00", "23:30:00", "00:00:30", "01:20:00", "23:59:59.999999", "03:15:00"])
        return f"{day} {clock}"[: rng.choice([4, 7, 10, 13, 16, 19, 26])]

    def _time_function(self, name: str) -> str:
        """A function of a time that keeps its order, or does so where no clock is changed."""
        rng, kind, op = self.rng, self.kind(name), self.rng.choice(_OPS[:7])
        i = rng.choice(
            ["'1' DAY", "'-1' DAY", "1 MONTH", "'13' MONTH", "'1 02:30:00' DAY TO SECOND", "'30' MINUTE", "1 YEAR"]
        )
        moved = f"{name} {rng.choice('+-')} INTERVAL {i}"
        unit = rng.choice(["year", "quarter", "MONTH", "week", "day", "dd", "hour", "minute", "second", "microsecond"])
        stamp = self._time(rng.choice(["date", "timestamp", "timestamp_ntz"]), False)
        number = rng.choice(["1", "-1", "31", "365", "100000"])
        form = rng.random()
        if form < 0.25:
            made = rng.choice([name, name, moved, f"coalesce({name}, {self._time(kind, False)})"])
            return f"date_trunc('{unit}', {made}) {op} {stamp}"
        if form < 0.45:
            pattern = rng.choice(
                ["yyyy", "yyyy-MM", "yyyyMM", "yyyy-MM-dd", "yyyy-MM-dd HH", "yyyy/MM/dd HH:mm", "MM-yyyy", "HH"]
            )
            made = f"date_format({name}, '{pattern}')"
            text = self._text_of_time().replace("-", "/" if "/" in pattern else "" if pattern == "yyyyMM" else "-")
            if rng.random() < 0.2:
                return f"{made} {rng.choice(['', 'NOT '])}LIKE {quote_string(text[: rng.choice([2, 4, 6])] + '%')}"
            return f"{made} {op} {quote_string(text[: len(pattern)])}"
        if form < 0.6:
            return f"{moved} {op} {stamp}"
        if form < 0.7:
            made = rng.choice([f"datediff({name}, {stamp})", f"datediff({stamp}, {name})"])
            return f"{made} {op} {rng.choice([0, 1, -1, 7, 30])}"
        if form < 0.8:
            made = rng.choice(
                [
                    f"date_add({name}, {number})", f"date_sub({name}, {number})", f"add_months({name}, {number})",
                    f"last_day({name})", f"trunc(date_add({name}, 1), 'MM')",
                ]
            )  # fmt: skip
            return f"{made} {op} {self._time('date', False)}"
        if form < 0.88:
            part = rng.choice(["month", "quarter", "day", "dayofyear", "hour", "dayofmonth"])
            return f"{part}({name}) {op} {rng.choice([0, 1, 3, 6, 7, 11, 12, 23, 31])}"
        if form < 0.94:
            made = rng.choice(
                [
                    f"unix_timestamp({name})",
                    f"unix_timestamp({name}) + 3600",
                    f"unix_seconds(CAST({name} AS timestamp))",
                ]
            )
            return f"{made} {op} {self._seconds()}"
        text = self._text_of_time()
        size = rng.choice([4, 7, 10, 13])
        return f"left(CAST({name} AS STRING), {size}) {op} {quote_string(text[:size])}"

    def _columns(self, name: str) -> str:
        same = [
            other for other in self.columns if self.kind(other) == self.kind(name) and ("lc" in {name, other}) is False
        ]
        if self.kind(name) in _TIMES and self.rng.random() < 0.6:
            same = ["d", "ts", "ntz"]
        return f"{name} {self.rng.choice(_OPS)} {self.rng.choice(same or [name])}"

    def _rows(self, name: str) -> str:
        rows = ", ".join(
            f"({self.rng.choice([1, 2, 3, 'CAST(NULL AS INT)'])}, {self.rng.choice([1, 2, 4])}L)" for _ in range(3)
        )
        return f"(n1, n2) {self.rng.choice(['', 'NOT '])}IN ({rows})"
