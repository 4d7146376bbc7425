"""Small wrong changes of the translator, as module, its text, and the wrong one.

The numbered threads are reports of the same mistake in other systems.
"""

# ruff: noqa: E501
from __future__ import annotations

MUTANTS: list[tuple[str, str, str]] = [
    (
        "condition.atoms",
        'return f"{low} <= {value} AND {value} <= {high}"',
        'return f"{low} < {value} AND {value} <= {high}"',
    ),
    (
        "condition.atoms",
        'return f"{low} <= {value} AND {value} <= {high}"',
        'return f"{low} <= {value} AND {value} < {high}"',
    ),
    (
        "condition.atoms",
        'return f"{low} < {value} OR {value} < {high}"',
        'return f"{low} < {value} AND {value} < {high}"',
    ),
    # datafusion#560: the negation of the condition for =
    (
        "condition.atoms",
        'return f"{low} < {value} OR {value} < {high}"',
        'return f"NOT ({low} <= {value} AND {value} <= {high})"',
    ),
    ("condition.atoms", 'return f"{low} {op} {value}"', 'return f"{low} < {value}"'),
    ("condition.atoms", 'return f"{high} {op} {value}"', 'return f"{high} > {value}"'),
    ("condition.atoms", 'return f"{low} {op} {value}"', 'return f"{high} {op} {value}"'),
    ("condition.atoms", 'return f"{high} {op} {value}"', 'return f"{low} {op} {value}"'),
    (
        "condition.atoms",
        "OR ({stats.has_null(operand)} AND ({nothing} <=> {value}))",
        "OR (false AND ({nothing} <=> {value}))",
    ),
    # delta#1014, paimon#6931, parquet-java#2291: NOT <=> forgets NULL rows
    (
        "condition.atoms",
        "{stats.has_null(operand)} OR coalesce({differs}, true)",
        "coalesce({differs}, true)",
    ),
    ("condition.atoms", "OR coalesce({differs}, true)", "OR coalesce({differs}, false)"),
    # hudi#19645
    (
        "condition.atoms",
        '''"""Return SQL for ``c IS NULL`` and ``c <=> NULL``."""
    return stats.has_null(operand)''',
        '''return f"{stats.null_count(operand.column)} = row_count"''',
    ),
    # hudi#5224, datafusion#9230
    ("condition.atoms", "{stats.null_count(operand.column)} < row_count", "{stats.null_count(operand.column)} = 0"),
    (
        "condition.atoms",
        'return " OR ".join(f"({compare(\'=\', operand, value)})"',
        'return " AND ".join(f"({compare(\'=\', operand, value)})"',
    ),
    ("condition.atoms", "at + step - 1) < {operand.low}", "at + step - 1) <= {operand.low}"),
    ("condition.atoms", "{place}) <= {operand.high}", "{place}) < {operand.high}"),
    ("condition.atoms", "coalesce({low} = {high} AND {low} IN", "coalesce({low} IN"),
    # hudi#18791: LIKE 'X%' as a comparison with 'X'
    (
        "condition.atoms",
        "{operand.high} >= {text} AND ({operand.low} <= {text} OR startswith({operand.low}, {text}))",
        "{operand.low} <= {text} AND {text} <= {operand.high}",
    ),
    ("condition.atoms", "{operand.high} >= {text} AND", "{operand.high} > {text} AND"),
    (
        "condition.atoms",
        "startswith({operand.low}, {text}) AND startswith",
        "startswith({operand.low}, {text}) OR startswith",
    ),
    # datafusion#14567: NOT LIKE with more than % behind the prefix
    ("condition.atoms", "if pattern.tail is Tail.ANYTHING else None", "if pattern is not None else None"),
    (
        "condition.atoms",
        '    if pattern.tail is Tail.NOTHING:\n        return compare("="',
        '    if pattern.tail is not Tail.OTHER:\n        return compare("="',
    ),
    ("condition.atoms", '"<": ">=", ">=": "<", ">": "<="', '"<": ">", ">=": "<", ">": "<="'),
    ("condition.atoms", '"<=": ">"}\n"""``NOT', '"<=": "<"}\n"""``NOT'),
    ("condition.atoms", 'COMPLEMENT = {"=": "<>"', 'COMPLEMENT = {"=": "="'),
    ("condition.atoms", '"<": ">", ">": "<", "<=": ">="', '"<": "<", ">": "<", "<=": ">="'),
    ("condition.atoms", '">=": "<="}\n"""``v op', '">=": ">="}\n"""``v op'),
    (
        "condition.atoms",
        "{left.low} <= {right.high} AND {right.low} <= {left.high}",
        "{left.low} <= {right.high} AND {right.low} < {left.high}",
    ),
    ("condition.atoms", 'return f"{left.low} {op} {right.high}"', 'return f"{left.high} {op} {right.low}"'),
    ("condition.atoms", 'return f"{left.high} {op} {right.low}"', 'return f"{left.low} {op} {right.high}"'),
    # delta-kernel-rs#248: NOT of the condition in place of the condition of NOT
    ("condition.translate", "return Any(parts) if negated else All(parts)", "return All(parts)"),
    ("condition.translate", "return All(parts) if negated else Any(parts)", "return All(parts)"),
    # hudi#10389: what is not understood dropped from an OR
    (
        "condition.translate",
        "return All(parts) if negated else Any(parts)",
        "parts = tuple(p for p in parts if not isinstance(p, Unknown)) or parts; return All(parts) if negated else Any(parts)",
    ),
    (
        "condition.translate",
        "return self.translate(child, negated=not negated)",
        "return self.translate(child, negated=negated)",
    ),
    ("condition.translate", 'Compare(">=", child, low)', 'Compare(">", child, low)'),
    ("condition.translate", 'Compare("<=", child, high)', 'Compare("<", child, high)'),
    # hudi#18755, #18754, delta-rs#3173: statistics that are not there taken for an answer
    (
        "condition.translate",
        "(coalesce({condition.may_match}, false) OR NOT ({sound}))",
        "(coalesce({condition.may_match}, false))",
    ),
    ("condition.translate", 'return "(" + " OR ".join(', 'return "(" + " AND ".join('),
    ("condition.operand", "{nulls} >= 0 AND {nulls} <= row_count", "true"),
    (
        "condition.operand",
        "{low} IS NULL AND {high} IS NULL, {low} <= {high})",
        "{low} IS NULL AND {high} IS NULL, true)",
    ),
    # ClickHouse#116972, hudi#19445: casts that do not keep order
    ("condition.types", "Family.STRING: {Family.STRING}", "Family.STRING: {Family.STRING, Family.INTEGRAL}"),
    (
        "condition.types",
        "return _INTEGRAL_ORDER.index(type(column)) <= _INTEGRAL_ORDER.index(type(target))",
        "return True",
    ),
    ("condition.types", "return left is Family.DATE and right in {", "return left in _DATETIME and right in {"),
    ("condition.types", "left not in {Family.STRING, Family.INTEGRAL, Family.DATE})", "left is None)"),
    ("condition.types", "    return fits(column, literal)", "    return True"),
    ("condition.types", "return to_whole >= whole and to_scale >= scale", "return to_whole >= 0"),
    # spark#45262: collations
    (
        "predicate.names",
        'return type(data_type) is StringType and getattr(data_type, "collation", "UTF8_BINARY") == "UTF8_BINARY"',
        "return True",
    ),
    ("condition.translate", "{self.stats.null_count(c)} = 0", "{self.stats.null_count(c)} >= 0"),
    ("condition.translate", "{self.stats.min_value(c)} = {self.stats.max_value(c)} AND", ""),
    ("condition.translate", " or kind is Family.BINARY_FLOAT:", ":"),
    ("condition.translate", 'self.translate(Compare("<=>", *pair))', 'self.translate(Compare("=", *pair))'),
    ("condition.like", 'DEFAULT_ESCAPE = "\\\\"', 'DEFAULT_ESCAPE = "~"'),
    ("condition.like", 'char in "_%" or wild', 'char in "%" or wild'),
    ("files.evaluate", "(copies = 1 AND NOT f.keep", "(copies >= 1 AND NOT f.keep"),
    ("files.evaluate", "if len(rows) == 1]", "if rows]"),
    ("files.evaluate", "if row[3] is False]", "]"),
    ("files.exclusion", "get({table}, {number}) = _metadata.file_size - {least}L", "get({table}, {number}) >= 0"),
    ("files.exclusion", "startswith({path}, {quote_string(prefix)}) AND ", ""),
    ("files.exclusion", " AND endswith({path}, {quote_string(suffix)})", ""),
    ("files.exclusion", '_NOT_EXCLUDED = "-1"', '_NOT_EXCLUDED = "0"'),
    ("files.exclusion", "IN ({sizes}) AND {KEY} IN", "IN ({sizes}) OR {KEY} IN"),
    # the list of what is known to match in place of the list of what is known not to
    (
        "files.exclusion",
        'return Exclusion(f"NOT coalesce({_listed(excluded)}, false)"',
        'return Exclusion(f"coalesce({_listed(excluded)}, false)"',
    ),
    # functions of a column
    (
        "condition.monotone",
        'Monotone("datediff(k, c)", TIMES, _DATE, falls=True',
        'Monotone("datediff(k, c)", TIMES, _DATE, falls=False',
    ),
    (
        "condition.monotone",
        'Monotone("v - c", NUMBERS, nulls=True, falls=True',
        'Monotone("v - c", NUMBERS, nulls=True, falls=False',
    ),
    ("condition.monotone", 'Monotone("- c", FRACTIONS, falls=True)', 'Monotone("- c", FRACTIONS)'),
    ("condition.monotone", "return None if not value else value < 0", "return False"),
    (
        "condition.monotone",
        'Monotone("date_trunc(w, c)", TIMES, _TIMESTAMP, local=True)',
        'Monotone("date_trunc(w, c)", TIMES, _TIMESTAMP)',
    ),
    (
        "condition.monotone",
        'Monotone("date_format(c, p)", TIMES, _TIMESTAMP, local=True)',
        'Monotone("date_format(c, p)", TIMES, _TIMESTAMP)',
    ),
    ("condition.monotone", "_is_text(node, _SORTABLE.fullmatch)", "_is_text(node, bool)"),
    ("condition.monotone", 'bound="try_add({c}, {v})"', 'bound="({c} + {v})"'),
    ("condition.monotone", 'bound="try_multiply({c}, {v})"', 'bound="({c} * {v})"'),
    ("condition.monotone", 'lambda node: number(node) in (0, 1), "1"', 'lambda node: number(node) is not None, "1"'),
    ("condition.monotone", 'Monotone("concat(t, c)"', 'Monotone("concat(c, t)"'),
    (
        "condition.monotone",
        'Monotone("month(c)", TIMES, _DATE, period="year({c})")',
        'Monotone("month(c)", TIMES, _DATE)',
    ),
    ("condition.monotone", ', period="CAST({c} AS DATE)"', ""),
    ("condition.bounds", "CAST({value} AS DATE) BETWEEN {_FOUR_DIGITS}", "{value} IS NOT NULL"),
    ("condition.bounds", "is_open=given not in _TOTAL", "is_open=False"),
    ("condition.bounds", 'f"try_cast({value} AS {sql})"', 'f"CAST({value} AS {sql})"'),
    ("condition.bounds", "is_open=True, is_partial=True)", "is_open=True)"),
    ("condition.bounds", "first, last = (high, low) if swapped else (low, high)", "first, last = (low, high)"),
    ("condition.bounds", "compute = _by(to_local, function)\n        elif", "pass\n        elif"),
    ("condition.bounds", "compute = to_instant", "pass"),
    ("condition.bounds", 'only_if(f"NOT isnan({high})")', 'only_if("true")'),
    ("condition.local_time", "SLACK_HOURS = 25", "SLACK_HOURS = 0"),
    ("condition.local_time", "{local} = {passed} * INTERVAL '0.000001' SECOND", "{local} IS NOT NULL"),
    ("condition.local_time", "CHANGES_APART_DAYS = 6", "CHANGES_APART_DAYS = 6000"),
    ("condition.translate", "for operand in operands if operand.is_open]", "for operand in operands if False]"),
    ("condition.translate", 'if negated == (op == "=")', 'if negated != (op == "=")'),
    ("condition.translate", 'r"0|-?[1-9][0-9]{0,18}"', 'r"-?[0-9]{1,19}"'),
    (
        "condition.translate",
        "if REPLACEMENT in pattern.prefix or (negated and pattern.tail is not Tail.ANYTHING)",
        "if REPLACEMENT in pattern.prefix",
    ),
    ("condition.translate", "return value if own == common else Cast(value, type_ddl(common))", "return value"),
    ("condition.translate", "negated=negated == wanted", "negated=negated"),
    ("condition.like", ' or "|" in pattern', ""),
    ("condition.letter_case", "(letter.upper(), letter.lower(), *_", "(letter, *_"),
    ("condition.letter_case", '*_OTHERS[fold].get(letter, "")', '*""'),
    ("condition.letter_case", "if letter in _LAST[fold]:", "if False:"),
    ("condition.letter_case", "for one in found for each in letters", "for one in found[:1] for each in letters"),
    ("condition.like", "        prefix = prefix[:-1]", "        pass"),
    ("condition.cases", "nulls = [IsNull(value) for", "nulls = [IsNull(value, negated=True) for"),
    (
        "condition.cases",
        'return _in_turn((Compare("=", value, other),), (_NULL, value))',
        'return _in_turn((Compare("=", value, other),), (value, _NULL))',
    ),
    ("condition.cases", "return Or((Not(condition), IsNull(column)))", "return Not(condition)"),
    ("condition.cases", "IsNull(tested, negated=True),), (value, other)", "IsNull(tested),), (value, other)"),
    # the first rows in an order
    ("top_rows.ranking", "file.high >= worst.value", "file.high > worst.value"),
    ("top_rows.ranking", "file.low <= worst.value", "file.low < worst.value"),
    ("top_rows.ranking", "left -= one.rows - one.nulls", "left -= one.rows"),
    ("top_rows.ranking", "left -= sum(one.nulls for one in files)", "left -= sum(one.rows for one in files)"),
    ("top_rows.ranking", "if self.nulls_first and file.nulls > 0:", "if False:"),
    ("top_rows.ranking", "        left = rows\n", "        left = rows - 1\n"),
    (
        "top_rows.ranking",
        "return file.low if self.falls else file.high",
        "return file.high if self.falls else file.low",
    ),
    ("top_rows.ranking", "return found if rows <= 0 else None", "return found"),
    ("top_rows.ranking", "        if rows <= 0:\n            break", "        if rows <= 1:\n            break"),
    # aggregates of a whole table
    ("plain_sql.metadata_answers", "return sum(one.rows - one.nulls for", "return sum(one.rows for"),
    ("plain_sql.metadata_answers", 'one.low if function == "min" else one.high', "one.low"),
    ("plain_sql.metadata_answers", 'min(ends) if function == "min" else max(ends)', "max(ends)"),
    (
        "plain_sql.metadata_answers",
        "return {one.path: one.size for one in files} == listed",
        "return {one.path: one.size for one in files}.items() <= listed.items()",
    ),
    (
        "plain_sql.metadata_answers",
        "return {one.path: one.size for one in files} == listed",
        "return {one.path for one in files} == listed.keys()",
    ),
]

CI_SHARE = [3, 9, 12, 17, 30, 36, 54, 95, 103, 111]
"""One of each kind, run with every test run."""
