"""Convert literals in sqlglot's tokens so that the tree has them exactly as Spark reads them.

sqlglot turns ``1.5BD`` and ``DATE '2024-01-01'`` into casts, and its escapes differ from Spark's. So its tokens for
literals are replaced before they are parsed. A typed literal becomes one token with the user's own text. A string token
gets the value that Spark's rules give it.
"""

from __future__ import annotations

import re

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined,unused-ignore]

_NUMBER = re.compile(r"(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?(L|S|Y|D|F|BD)", re.IGNORECASE)
_TYPED = {"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "X"}
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)", re.DOTALL)


def typed_literal(name: str) -> bool:
    """Return whether an unquoted name is a literal that :func:`exact_literals` made one token of."""
    return bool(_NUMBER.fullmatch(name)) or name.endswith(("'", '"'))


def unescape(raw: str) -> str:
    r"""Return the value of a Spark string literal; ``raw`` includes its quotes.

    ``ParserUtils.unescapeSQLString``: ``\uXXXX``, ``\UXXXXXXXX``, three octal digits, the letters above. ``\%`` and
    ``\_`` keep their backslash for LIKE; any other character stands for itself. A doubled quote is one quote (Spark 4).
    """
    quote, body = raw[0], raw[1:-1]
    pieces: list[str] = []
    position = 0
    while position < len(body):
        match = _ESCAPE.match(body, position)
        if match is not None:
            code = match[1]
            if len(code) > 1:
                pieces.append(chr(int(code, 8) if code[0] in "01" else int(code[1:], 16)))
            else:
                pieces.append(_ESCAPED.get(code, code))
            position = match.end()
        else:
            pieces.append(body[position])
            position += 2 if body[position] == quote else 1  # a quote inside is always doubled
    return "".join(pieces)


def exact_literals(tokens: list[Token], source: str) -> list[Token]:
    """Return ``tokens`` with literals replaced as the module's docstring describes."""
    result: list[Token] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        raw = source[token.start : token.end + 1]
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        kind = token.token_type
        if kind == TokenType.STRING:
            end = token.end
            while following is not None and following.token_type == TokenType.STRING and following.start == end + 1:
                end = following.end  # 'o''k' comes as two adjacent tokens
                position += 1
                following = tokens[position + 1] if position + 1 < len(tokens) else None
            result.append(_token(TokenType.STRING, unescape(source[token.start : end + 1]), token.start, end))
        elif kind == TokenType.NUMBER and _NUMBER.fullmatch(raw):
            # Three tokens, number, ``::`` and type, each with the range of the whole literal.
            result.append(_token(TokenType.VAR, raw, token.start, token.end))
            while position + 1 < len(tokens) and tokens[position + 1].start <= token.end:
                position += 1
        elif (
            following is not None
            and following.token_type == TokenType.STRING
            and raw.upper() in _TYPED
            and following.start > token.end
        ):
            text = f"{raw.upper()} {source[following.start : following.end + 1]}"
            result.append(_token(TokenType.VAR, text, token.start, following.end))
            position += 1
        elif kind == TokenType.HEX_STRING:
            result.append(_token(TokenType.VAR, raw, token.start, token.end))
        else:
            result.append(token)
        position += 1
    return result


def in_parentheses(tokens: list[Token], source: str) -> list[Token]:
    """Return ``tokens`` between parentheses that touch none of them."""
    opening = _token(TokenType.L_PAREN, "(", -2, -2)
    return [opening, *tokens, _token(TokenType.R_PAREN, ")", len(source) + 1, len(source) + 1)]


def _token(kind: TokenType, text: str, start: int, end: int) -> Token:
    return Token(kind, text, start=start, end=end)
