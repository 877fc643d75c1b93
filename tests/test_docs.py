"""Every block of the README and the documentation runs, every formula is drawn, every paper cited has its entry.

A page is one program: its ```python and ```console blocks run in their order, in a folder of their own that has
`scores.csv` and `labels.csv` (the README's in an empty one). A block is left out only if the comment before it says
why: `<!-- not run: … -->`.
A block whose first line is a file's name, `# my_rules.py`, is written as that file and then imported; a package's
`# pyproject.toml` is noted as installed, as pip would, with the page's folder as its place.
"""

import csv
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(r"(?:<!-- (not run: [^\n]+) -->\n)?^```(python|console|toml)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"# ([\w.-]+\.(?:py|toml))\n")
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
"""The hosts that pages about several hosts speak of."""


def program(text: str) -> str:
    """The blocks of a page as one Python program."""
    lines = ["import importlib, pathlib, subprocess"]
    for left_out, kind, code in BLOCK.findall(text):
        if left_out:
            continue
        file = FILE.match(code)
        for name, content in ({} if file is None else {file[1]: code} | installed(file[1], code)).items():
            lines.append(f"pathlib.Path({name!r}).parent.mkdir(exist_ok=True)")
            lines.append(f"pathlib.Path({name!r}).write_text({content!r})")
        if kind == "console":
            lines.append(f"subprocess.run(['bash', '-euo', 'pipefail', '-c', {code!r}], check=True)")
        elif kind == "python" and file is None:
            lines.append(code)
        elif kind == "python":
            lines.append(f"importlib.invalidate_caches()\nfrom {Path(file[1]).stem} import *")
    return "\n".join(lines)


def installed(name: str, content: str) -> dict[str, str]:
    """The files that pip writes beside the modules of a package for its entry points, if this is a pyproject.toml."""
    if name != "pyproject.toml":
        return {}
    project = tomllib.loads(content)["project"]
    points = [
        f"[{group}]\n" + "".join(f"{point} = {where}\n" for point, where in named.items())
        for group, named in project["entry-points"].items()
    ]
    info = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    return {f"{info}/METADATA": about, f"{info}/entry_points.txt": "\n".join(points)}


def apart() -> list[str]:
    """The words before a command that give it ports, addresses and processes of its own, which end with it."""
    words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if (
        not all(map(shutil.which, ("unshare", "ip")))
        or subprocess.run([*words, "true"], capture_output=True).returncode
    ):
        return []
    addresses = "".join(f"ip address add {host}/32 dev lo; " for host in HOSTS)
    return [*words, "bash", "-c", f'ip link set lo up; {addresses}exec "$@"', "bash"]


def assert_runs(script: Path, folder: Path, before: tuple[str, ...] | list[str] = ()) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    modules = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PATH": path, "PYTHONPATH": modules, "COLLEGIUM_DATA": str(folder / "no-data")}
    command = [*before, sys.executable, str(script)]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.live
@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name)
def test_blocks_run(page, tmp_path):
    text, before = page.read_text(), apart()
    if not before and any(host in text for host in HOSTS):
        pytest.skip("several hosts on one machine need root and network namespaces (make system)")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.5, 1, -1)
    scores = 0.4 * y[:, None] + rng.normal(size=(400, 12))
    if page.name != "README.md":  # whose blocks run from an empty folder
        np.savetxt(tmp_path / "scores.csv", scores, delimiter=",")
        np.savetxt(tmp_path / "labels.csv", y, fmt="%d")
    script = tmp_path / f"{page.stem}.py"
    script.write_text(program(text))
    assert_runs(script, tmp_path, before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_known(page):
    kinds = re.findall(r"^```(\S*)", page.read_text(), re.MULTILINE)
    assert set(kinds[::2]) <= {"python", "console", "ini", "toml", "yaml", "text"}  # the last four are no programs
    assert set(kinds[1::2]) <= {""}


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(script, tmp_path):
    assert_runs(script, tmp_path)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


def test_every_formula_is_drawn(site):
    drawn = 0
    for page in site.rglob("*.html"):
        text = re.sub(r"<(script|style|pre|code)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
        drawn += text.count("<math")
        raw = re.findall(r".{0,40}(?:\\[A-Za-z{}]|\$|arithmatex|<merror).{0,40}", text)
        assert not raw, f"{page.relative_to(site)}: {raw[:3]}"
    assert drawn > 80


def test_nothing_is_fetched_when_the_site_is_read(site):
    for page in site.rglob("*.html"):
        fetched = re.findall(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"?https?://[^>]*>", page.read_text())
        assert not [one for one in fetched if 'rel="canonical"' not in one], page


def look(site: Path) -> tuple[set[str], list[tuple[float, float]], list[str]]:
    """Follow every link from the first page as a browser does from disk; then the heights of braces around fractions,
    each beside that of what it stands around; and what a search finds."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page()
        page.set_default_timeout(120_000)
        seen: set[str] = set()
        waiting = {(site / "index.html").as_uri()}
        while waiting:
            address = waiting.pop()
            seen.add(address)
            if not address.endswith(".html"):  # a folder, or a file to fetch
                continue
            page.goto(address)
            links = page.eval_on_selector_all("a[href]", "all => all.map(a => a.href.split('#')[0])")
            waiting |= {link for link in links if link.startswith("file:")} - seen
        page.goto((site / "theory.html").as_uri())
        page.evaluate("document.fonts.ready.then(() => true)")
        heights = page.evaluate(
            "[...document.querySelectorAll('mrow > mfrac ~ mo[fence]')].map(brace => [brace, brace.parentElement]"
            ".map(part => part.getBoundingClientRect().height))"
        )
        page.goto((site / "api" / "team.html").as_uri())
        page.click("input[name=query]")
        page.locator("input[name=query]").press_sequentially("conformalize")
        page.wait_for_selector(".md-search-result__item a", state="attached")
        found = page.eval_on_selector_all(".md-search-result__item a", "all => all.map(a => a.href)")
        chromium.close()
    return seen, heights, found


@pytest.mark.browser
def test_the_site_can_be_read_from_disk(site):
    if shutil.which("chromium") is None:
        pytest.skip("there is no chromium here: make system installs it")
    with ThreadPoolExecutor(1) as other:  # Playwright wants a thread of its own where another test has one open
        seen, heights, found = other.submit(look, site).result()
    files = {Path(unquote(urlsplit(address).path)) for address in seen}
    assert not [path for path in files if not path.is_file()]  # a folder would be listed
    assert files >= set(site.rglob("*.html")) - {site / "404.html"}
    assert (site / "api" / "team.html").as_uri() + "#collegium.team.Team.conformalize" in found
    assert len(heights) >= 5
    assert not [pair for pair in heights if pair[0] < 0.9 * pair[1]]  # without a font for formulas they do not grow


@pytest.mark.parametrize("name", sorted(path.stem for path in (DOCS / "api").glob("*.md")))
def test_every_name_an_api_page_promises_is_on_it(site, name):
    page, source = (site / "api" / f"{name}.html").read_text(), (DOCS / "api" / f"{name}.md").read_text()
    assert "<blockquote>" not in page  # what >>> becomes if nobody puts a fence around it
    there = set(re.findall(r'id="([\w.]+)"', page))
    promised = re.findall(r"^::: ([\w.]+)(?:\n    options:\n      members: \[([\w, ]+)\])?", source, re.MULTILINE)
    for module, members in promised:
        for name in [f"{module}.{member}" for member in members.split(", ")] if members else [module]:
            assert name in there, name


def test_braces_and_letters_of_formulas():
    spec = importlib.util.spec_from_file_location("formulas", DOCS / "formulas.py")
    formulas = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(formulas)
    drawn = formulas.mathml(r"\exp\Bigl\{-\mathcal N_k \setminus \mathbb 1, \mathfrak R, \mathcal L\Bigr\}^2", True)
    for sign in (">&#x0007B;<", ">&#x0007D;<", "𝒩", "𝟙", "ℜ", "ℒ"):
        assert sign in drawn
    assert "\\{" not in drawn
    assert "mathvariant" not in drawn
    assert "size=" not in drawn  # braces grow with what is between them
    assert "&#x0007D;</mo></mrow><mn>2</mn></msup>" in drawn  # and the power is that of the whole
    for hat in (r"\hat P", r"\widehat{\mathfrak R}"):
        assert '<mover accent="true">' in formulas.mathml(hat, False)
        assert "&#x0005E;" not in formulas.mathml(hat, False)


def measured(file: str, **levels: str) -> str:
    """A row of the kept results, as pages write it."""
    levels = {"quantity": "error", "round": "-1"} | levels
    with (DOCS / "results" / file).open(encoding="utf-8") as opened:
        rows = [row for row in csv.DictReader(opened) if levels.items() <= row.items()]
    assert len({row["n0"] for row in rows}) == len(rows)  # or it would not be clear which
    row = rows[-1]  # the largest N_0
    return f"{100 * float(row['mean']):.1f} ± {100 * float(row['ci95']):.1f}"


def modelnet(method: str) -> str:
    """The newest result; joint training and the oracle were not run anew with larger networks yet."""
    if method in ("VFL-JT", "Central oracle"):
        return f"{measured('modelnet-earlier.csv', method=method)} (earlier version)"
    return measured("modelnet/modelnet-main.csv", method=method)


def test_figures_of_the_pages_are_those_of_the_results():
    readme, choose = (ROOT / "README.md").read_text(), (DOCS / "choose.md").read_text()
    for method, name in (
        ("Non-cooperative", "alone"),
        ("Vote", "vote"),
        ("Avg-stat", "average"),
        ("Ours", "Collegium"),
        ("Learned fusion", "learned fusion"),
        ("Stacking", "stacking"),
        ("VFL-JT", "joint training"),
        ("Central oracle", "one model"),
    ):
        assert re.search(
            rf"\| {name}[^|]*\| {re.escape(modelnet(method))} \| "
            rf"{re.escape(measured('cifar/cifar-main.csv', method=method))} \|",
            readme,
        ), (method, modelnet(method), measured("cifar/cifar-main.csv", method=method))
    for graph, weights in (
        ("ring", "uniform"),
        ("grid", "uniform"),
        ("Erdős–Rényi", "uniform"),
        ("Erdős–Rényi", "Metropolis"),
    ):
        network = {"topology": graph, "weights": weights}
        cells = [
            measured("modelnet/topology.csv", **network, precision="64", round=rounds) for rounds in ("1", "5", "20")
        ]
        cells += [measured("modelnet/topology.csv", **network, precision=bits, round="20") for bits in ("8", "6", "4")]
        assert f"| {graph}, {weights} | {' | '.join(cells)} |" in choose, cells


def test_every_citation_has_an_entry():
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "src/collegium/refs.bib").read_text(), re.MULTILINE))
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        for group in re.findall(r"\[((?:[a-z]+\d{4}[^\[\]]*))\]", path.read_text()):
            cited |= set(re.findall(r"\b[a-z]+\d{4}\b", group))
    assert cited == entries


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    assert len(links) > 10
    assert not [link for link in links if "://" not in link and not (ROOT / link).is_file()]


def test_commands_named_on_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (page.name, target)
