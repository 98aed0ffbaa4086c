"""Hooks of the documentation site: the list of commands, files outside docs/, and a check of every link.

mkdocs calls the functions that begin with `on_`; mkdocs.yml names this file.
"""

import inspect
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from posixpath import relpath
from typing import Any
from urllib.parse import unquote, urlsplit

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
#: The page that lists every command, and its heading that the list comes after.
COMMAND_LINE = "reference/cli.md"
#: The page of changes, a file above docs/.
CHANGELOG = "changelog.md"
#: The folder of results: its first page lists the others, which the navigation does not have.
RESULTS = "results/"
#: Files outside docs/ that pages name are copied to this folder of the site.
COPIES = "files"
#: What a page may not show: click's mark of an option without a default.
UNWANTED = "Sentinel.UNSET"

_LINK = re.compile(r"(?<=\]\()(?:\.\./)+[^)\s#]+")


def on_config(config: Any) -> Any:
    """Add the link to the repository, if this checkout came from one."""
    if not config.repo_url and (url := _repository()):
        config.repo_url, config.repo_name = url, url.rpartition("/")[2]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the changelog, and the files outside docs/ that pages name."""
    files.append(File.generated(config, CHANGELOG, abs_src_path=str(ROOT / "CHANGELOG.md")))
    for page in [file for file in files if file.src_uri.endswith(".md")]:
        for path in outside_links(page.src_uri, Path(page.abs_src_path or "").read_text(encoding="utf-8")):
            uri = f"{COPIES}/{path}"
            if files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Complete a page's Markdown: the list of commands, links to files outside docs/, the way back."""
    uri = page.file.src_uri
    if uri == COMMAND_LINE:
        from bridge.cli.main import cli

        markdown = "\n".join([markdown, *describe_command(cli, click.Context(cli, info_name="bridge"))])
    if uri == CHANGELOG:  # it lies above docs/
        markdown = markdown.replace("](docs/", "](")
    if uri.startswith(RESULTS) and uri != f"{RESULTS}README.md":
        markdown += "\n\n[All results](README.md)\n"
    for path, link in outside_links(uri, markdown).items():
        here = uri.rpartition("/")[0]
        markdown = markdown.replace(f"]({link}", f"]({relpath(f'{COPIES}/{path}', here or '.')}")
    return markdown


def on_post_build(config: Any) -> None:
    """Refuse (PluginError) a site with a broken link, or with an option whose default is not text."""
    if problems := find_problems(Path(config.site_dir)):
        raise PluginError("the site is not sound:\n" + "\n".join(problems))


def outside_links(uri: str, markdown: str) -> dict[str, str]:
    """Return the files outside docs/ that a page links to: path in the repository -> link as written."""
    page, docs = (ROOT / "docs" / uri).parent, ROOT / "docs"
    links = {}
    for link in _LINK.findall(markdown):
        path = (page / link).resolve()
        if path.is_file() and path.suffix != ".md" and not path.is_relative_to(docs):
            links[path.relative_to(ROOT).as_posix()] = link
    return links


def describe_command(command: click.Command, context: click.Context, depth: int = 1) -> Iterator[str]:
    """Yield the Markdown of a command and of all commands in it."""
    name = context.command_path
    if depth > 1:
        yield f"{'#' * depth} {name} {{ #{name.replace(' ', '-')} data-toc-label='{context.info_name}' }}"
    yield from ["", *_paragraphs(inspect.cleandoc(command.help or "")), ""]
    yield from ["```text", " ".join([name, *command.collect_usage_pieces(context)]), "```", ""]
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(context):
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record is not None:
            groups.setdefault(getattr(param, "group", "") or "Options", []).append(record)
    for heading, records in groups.items():
        yield from [f"| {heading} | |", "|---|---|"]
        yield from (f"| `{option}` | {_escape(text)} |" for option, text in records)
        yield ""
    if isinstance(command, click.Group):
        for inner_name in command.list_commands(context):
            inner = command.get_command(context, inner_name)
            if inner is not None and not inner.hidden:
                inner_context = click.Context(inner, parent=context, info_name=inner_name)
                yield from describe_command(inner, inner_context, depth + 1)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield a help text as Markdown; of a paragraph that keeps its lines, the indented ones are code."""
    for paragraph in text.split("\n\n"):
        keeps, _, rest = paragraph.partition("\b\n")
        if keeps.strip() or not rest:
            yield from [_escape(paragraph), ""]
            continue
        lines = rest.splitlines()
        code = [line for line in lines if line.startswith("  ")]
        yield from ["  \n".join(_escape(line) for line in lines if line not in code), ""]
        if code:
            yield from ["```sh", *(line[2:] for line in code), "```", ""]


def _escape(text: str) -> str:
    """Return text whose signs mean nothing in Markdown, except what is code already."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"[*_\[\]|]", r"\\\g<0>", part).replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


class _Page(HTMLParser):
    """The links of a page, and the places in it that links can name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Note an element; called by the parser."""
        for key, value in attrs:
            if key in ("id", "name") and value:
                self.anchors.add(value)
            elif key in ("href", "src") and value:
                self.links.add(value)


def find_problems(site: Path) -> list[str]:
    """Return what is wrong with a site that is opened as files: links that lead nowhere, unwanted text."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}
    pages = {path.resolve(): _Page(text) for path, text in texts.items()}
    problems = [f"{path.relative_to(site)}: {UNWANTED}" for path, text in texts.items() if UNWANTED in text]
    for path, page in zip(texts, pages.values(), strict=True):
        if path.name == "404.html":  # a server shows it anywhere, so its links begin at the root
            continue
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            if not target.is_file():
                problems.append(f"{path.relative_to(site)}: {link} leads to no file")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                problems.append(f"{path.relative_to(site)}: {link} leads to no heading")
    return problems


def _repository() -> str:
    """Return the address of the repository that this checkout came from; empty: none that a browser opens."""
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    try:
        url = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
    url = re.sub(r"^git@([^:]+):", r"https://\1/", url).removesuffix(".git")
    return url if url.startswith("https://") and "@" not in url else ""
