"""The words of a row of the gallery's list as a column: text on SQLite, a tsvector on PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Dialect, Text, TypeDecorator, cast, type_coerce
from sqlalchemy.dialects.postgresql import TSVECTOR


class _Words(TypeDecorator[list[str]]):
    """A set of words of letters and digits, as text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: list[str] | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else " ".join(value)


class _Quoted(TypeDecorator[list[str]]):
    """The same with each word in quotes, as PostgreSQL reads a tsvector."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: list[str] | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else " ".join(f"'{word}'" for word in value)


class _Lexemes(TypeDecorator[list[str]]):
    """The same as a tsvector, taken as they are."""

    impl = TSVECTOR
    cache_ok = True

    def bind_expression(self, bindvalue: BindParameter[list[str]]) -> ColumnElement[Any]:
        return cast(type_coerce(bindvalue, _Quoted()), TSVECTOR)


Words = _Words().with_variant(_Lexemes(), "postgresql")
