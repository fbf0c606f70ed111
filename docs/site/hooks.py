"""Changes that pages need on the site: links to files outside docs/ become their names, fences of tests become plain ones."""

import re

OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./[^)\s]+\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(\.\./[^)\s]+\)\n?")
FENCE = re.compile(r"^```python no-run$", re.M)
FOREIGN = re.compile(r'<script src="https://unpkg\.com/[^"]*"></script>')
NOTE = re.compile(r"^<!-- in tests: .*? -->\n", re.M)


def on_page_markdown(markdown, **_):
    """The text of a page as the site shows it."""
    markdown = PICTURE.sub("", markdown)
    markdown = OUTSIDE.sub(lambda match: match[1] if "`" in match[1] else f"`{match[1]}`", markdown)
    return FENCE.sub("```python", NOTE.sub("", markdown))


def on_post_page(output, **_):
    """The page without the one script that the theme would load from elsewhere; search works from files without it."""
    return FOREIGN.sub("", output)


def on_post_template(output_content, **_):
    """The same for pages that are no text of ours."""
    return FOREIGN.sub("", output_content)
