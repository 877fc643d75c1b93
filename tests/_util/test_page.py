"""Pages with pictures, in Chromium."""

import io
import shutil

import pytest
from PIL import Image

from collegium._util import page


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_suit_the_reader_s_colours(tmp_path, scheme):
    """A figure is drawn on white; on a dark page it is dark too, and blue stays blue."""
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("there is no chromium here: make system installs it")
    from playwright.sync_api import sync_playwright

    png = io.BytesIO()
    figure = Image.new("RGB", (200, 100), "white")
    figure.paste((0, 114, 178), (100, 0, 200, 100))
    figure.save(png, "png")
    page.write(tmp_path / "page.html", "a page", [page.image(png.getvalue(), "a figure")])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        opened = browser.new_page(color_scheme=scheme)
        opened.goto((tmp_path / "page.html").as_uri())
        shown = Image.open(io.BytesIO(opened.locator("img").screenshot())).convert("RGB")
        browser.close()
    ground, (red, green, blue) = shown.getpixel((50, 50)), shown.getpixel((150, 50))
    assert max(ground) < 60 if scheme == "dark" else min(ground) == 255
    assert blue > red
    assert blue > green
