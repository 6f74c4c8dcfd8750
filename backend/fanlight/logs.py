"""Structured logs: JSON a line (sentences on a terminal), with the ids of request and job that are bound in `structlog.contextvars`.

Secrets never get that far: values under telling names are left out, and the finished line is searched for what a secret looks like.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
from collections.abc import Iterable, MutableMapping
from datetime import UTC, datetime
from typing import Any

import structlog

HIDDEN = "(hidden)"
NAMES = re.compile(r"(?i)^(authorization|cookie|set-cookie|password|passwd|secret|api_?key|token|access_token)$")
# Credentials of our own and of addresses, wherever they stand in a line: group 1 is kept.
LOOKS = re.compile(
    r"(?i)(\bbearer\s+)[^\s\"',\\]+"
    r"|([?&](?:token|code|state)=)[^\s\"'&\\]+"
    r"|(/s/)[\w-]{20,}"
    r"|(\bfl_[a-z0-9]{4,32}_)[\w-]{20,}"
    r"|(\bfanlight_(?:session_|oidc_)?[0-9a-f]{8}=)[^\s\"';\\]+"
    r"|(://[^\s/:@\"']*:)[^\s/@\"']+(?=@)"
)


class Redaction:
    """Takes secrets out of text. Args: secrets: values that must never appear, such as the access token."""

    def __init__(self, secrets: Iterable[str | None] = ()):
        found = sorted({s for s in secrets if s and len(s) >= 6}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, found))) if found else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        return LOOKS.sub(lambda m: next(g for g in m.groups() if g is not None) + HIDDEN, text)


def unnamed(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Leaves out values whose name says that they are secret."""
    return {k: HIDDEN if NAMES.match(k) else v for k, v in line.items()}


def configure(level: str, secrets: Iterable[str | None] = (), stream: Any = None) -> None:
    """Sets logging up for a server. Args: level: least severe message; secrets: as of `Redaction`; stream: default stderr."""
    redact = Redaction(secrets)
    terminal = (stream or sys.stderr).isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            unnamed,
            structlog.dev.ConsoleRenderer(colors=False) if terminal else structlog.processors.JSONRenderer(),
            lambda _logger, _name, text: redact(str(text)),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=lambda *_: _Printer(stream or sys.stderr),
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Plain(redact) if terminal else _Lines(redact))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class _Printer(structlog.PrintLogger):
    """A log that cannot be written (its disk is full, its reader gone) costs lines and nothing else."""

    def msg(self, message: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().msg(message)

    log = debug = info = warn = warning = msg
    fatal = failure = err = error = critical = exception = msg


class _Plain(logging.Formatter):
    """What libraries log, through the same sieve."""

    def __init__(self, redact: Redaction):
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


class _Lines(_Plain):
    """The same as JSON a line: what a stranger put into a message or a traceback begins no line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        line = {**structlog.contextvars.get_contextvars(), "logger": record.name, "event": record.getMessage()}
        line |= {
            "level": record.levelname.lower(),
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return self._redact(json.dumps(line, default=str))
