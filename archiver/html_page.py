"""Self-contained HTML pages without scripts."""

from __future__ import annotations

from html import escape
from typing import Final

_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}th,td{border:1px solid #ccc;padding:.25em .6em;text-align:left;"
    "vertical-align:top;overflow-wrap:anywhere}code{font-size:90%}.bad{color:#a00}.number{text-align:right}"
)


def html_page(title: str, body: str, *, refresh_seconds: int | None = None) -> str:
    """`body` is HTML. Browsers reload the page after `refresh_seconds`."""
    refresh = "" if refresh_seconds is None else f'<meta http-equiv="refresh" content="{refresh_seconds}">'
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">{refresh}<title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}</body></html>\n"
    )


def page_from_markdown(title: str, text: str) -> str:
    """HTML in the text is escaped."""
    from markdown_it import MarkdownIt

    return html_page(title, MarkdownIt("commonmark", {"html": False}).enable("table").render(text))
