"""The search of pages that are opened from disk: our own script in place of one that would be fetched."""

from typing import Any

from mkdocs.utils import get_relative_url

_FETCHED = "https://unpkg.com/iframe-worker/shim"


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """mkdocs calls this with every page it made."""
    return output.replace(_FETCHED, get_relative_url("assets/worker.js", page.url))


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """And with pages that are made from a template alone, such as 404.html."""
    return output_content.replace(_FETCHED, "assets/worker.js")
