"""Pages for browsers: text stays text."""

from __future__ import annotations

from archiver.html_page import html_page, page_from_markdown


def test_markdown_becomes_tables_and_html_stays_text() -> None:
    page = page_from_markdown("A <title>", "# Head\n\n| a | b |\n|---|---|\n| <script>x</script> | `c` |\n")
    assert "<title>A &lt;title&gt;</title>" in page
    assert "<h1>Head</h1>" in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "<script>" not in page
    assert "<td><code>c</code></td>" in page


def test_a_page_is_loaded_again_if_it_says_so() -> None:
    assert 'http-equiv="refresh" content="10"' in html_page("a", "", refresh_seconds=10)
    assert "refresh" not in html_page("a", "")
