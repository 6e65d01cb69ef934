"""The page of `sdy-report` in a browser."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Locator, Page, Request, expect

import sdy
from sdy.formatting import format_bytes
from sdy.passes.account.report.html_report import Report

# One worker runs these tests, so that it makes their fixtures once.
pytestmark = pytest.mark.xdist_group("browser")

EXAMPLE = Path(__file__).parents[2] / "examples" / "transformer.mlir"
VIEWS = ("findings", "collectives", "memory", "arrays", "program", "time")


class Open(Protocol):
    """Opens a report at a URL fragment, optionally on a narrow screen or in dark mode."""

    def __call__(self, report: Report, at: str = "", *, width: int = 1280, dark: bool = False) -> Page: ...


@pytest.fixture(scope="module")
def transformer() -> Report:
    return sdy.report(sdy.parse(EXAMPLE.read_text(), str(EXAMPLE)), hardware="h100-8")


@pytest.fixture(scope="module")
def context(browser: Browser) -> Callable[[int, str], BrowserContext]:
    """Return a function that opens a context once for each width and color scheme, which takes as long as a page."""

    @cache
    def opened(width: int, scheme: Literal["dark", "light"]) -> BrowserContext:
        return browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)

    return opened


@pytest.fixture
def open_report(context: Callable[[int, str], BrowserContext], tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens reports; fails on network requests and script errors."""
    wrong: list[str] = []
    pages: list[Page] = []
    path = tmp_path / "report.html"

    def asked(request: Request) -> None:
        if request.url.partition("#")[0] != path.as_uri():
            wrong.append(request.url)

    def failed(problem: Error) -> None:
        wrong.append(str(problem))

    def said(message: ConsoleMessage) -> None:
        wrong.append(message.text)

    def opened(report: Report, at: str = "", *, width: int = 1280, dark: bool = False) -> Page:
        report.write(path)
        page = context(width, "dark" if dark else "light").new_page()
        pages.append(page)
        page.on("request", asked)
        page.on("pageerror", failed)
        page.on("console", said)
        page.goto(f"{path.as_uri()}#{at}" if at else path.as_uri())
        return page

    yield opened
    for page in pages:
        page.close()
    assert not wrong


def rows(page: Page) -> Locator:
    return page.get_by_role("option")


def test_the_first_screen_has_the_answer(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer)
    for sentence in transformer.headline:
        expect(page.locator("#headline")).to_contain_text(sentence)
    most = max(sum(each["bytes"] for each in group) for group in transformer.data["collectives"])
    expect(rows(page).first).to_contain_text(format_bytes(most))
    expect(page.get_by_role("complementary")).to_be_hidden()


def test_from_a_collective_to_its_reason_its_line_and_a_tensor(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer)
    details = page.get_by_role("complementary")
    rows(page).filter(has_text="scatter").first.click()
    expect(details).to_contain_text("all-reduce over data")
    expect(details).to_contain_text("a collective combines them")
    expect(details).to_contain_text("given to argument")

    details.locator(".origin .place").first.click()
    line = EXAMPLE.read_text().split("\n")[2]
    expect(details.locator(".line.here")).to_contain_text(line[:60])

    page.go_back()
    expect(details).to_contain_text("all-reduce over data")
    details.locator(".chain .value").first.click()
    expect(details).to_contain_text("Why it has this sharding")
    expect(details.locator(".cell")).to_have_count(4)

    details.locator(".readers .op").first.click()
    expect(details).to_contain_text("Operands")
    details.get_by_role("link", name="in the program").click()
    expect(page.locator(".program [aria-selected=true]")).to_be_visible()


def test_an_address_is_what_it_was(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer, "view=arrays&search=arg6&show=v0")
    expect(page.get_by_role("searchbox")).to_have_value("arg6")
    expect(rows(page)).not_to_have_count(0)
    expect(page.get_by_role("complementary")).to_contain_text("%arg0")
    page.get_by_role("button", name="close").click()
    expect(page.get_by_role("complementary")).to_be_hidden()
    assert "show" not in page.url


def test_an_address_of_nothing_says_so(open_report: Open, transformer: Report) -> None:
    for nothing in ("show=v999999", "show=c5.99", "show=zz", "show=p-3"):
        page = open_report(transformer, nothing)
        expect(page.get_by_role("complementary")).to_contain_text("refers to nothing")


@pytest.mark.parametrize(
    ("view", "wanted"),
    [("collectives", "scatter"), ("memory", "dot_general"), ("arrays", "argument 6"), ("time", "scatter")],
)
def test_search_leaves_what_has_the_words(open_report: Open, transformer: Report, view: str, wanted: str) -> None:
    page = open_report(transformer, f"view={view}")
    before = rows(page).count()
    page.get_by_role("searchbox").fill(wanted)
    expect(rows(page).first).to_contain_text(wanted.removeprefix("stablehlo."))
    assert 0 < rows(page).count() < before
    page.get_by_role("searchbox").fill("there is nothing like it")
    expect(rows(page)).to_have_count(0)


def test_a_program_is_searched_by_all_that_a_row_shows(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer, "view=program")
    for wanted in ("%84", "scatter", "tensor<4x16x64xf32>", "transformer.mlir:97", "{model}, {}, {}"):
        page.get_by_role("searchbox").fill(wanted)
        expect(rows(page).first).to_contain_text(wanted)


def test_layers_and_functions_are_folded(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer, "view=program")
    ((start, period, times),) = transformer.data["folds"]
    count = page.evaluate("programItems('').length")
    assert count == len(transformer.data["rows"]["op"]) - period * (times - 1) + 1
    page.evaluate(f"document.querySelector('.rows').scrollTop = {start - 5} * ROW_HEIGHT")
    fold = rows(page).filter(has_text=f"{times} repetitions of {period} operations")
    fold.get_by_role("button").click()
    assert page.evaluate("programItems('').length") == count + period * (times - 1)
    page.locator(".rows").focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("programItems('').length") == count


def test_a_tensor_in_a_folded_layer_is_found(open_report: Open, transformer: Report) -> None:
    ((start, period, _),) = transformer.data["folds"]
    page = open_report(transformer, f"view=program&show=r{start + period + 3}")
    expect(page.locator("[aria-selected=true]")).to_be_in_viewport()


def test_keys_do_all_that_a_mouse_does(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer)
    page.keyboard.press("4")
    expect(page.get_by_role("link", name="arrays")).to_have_attribute("aria-current", "page")
    page.keyboard.press("/")
    page.keyboard.type("argument 1")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    details = page.get_by_role("complementary")
    expect(details).to_be_visible()
    expect(page.locator("[aria-selected=true]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(details).to_be_hidden()
    page.keyboard.press("End")
    expect(rows(page).last).to_be_in_viewport()


def test_the_chart_of_memory_is_read_by_keys(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer, "view=memory")
    slider = page.get_by_role("slider")
    memory = transformer.data["memory"]
    expect(slider).to_have_attribute("aria-valuenow", str(memory["peak"]))
    expect(page.locator(".readout")).to_contain_text(format_bytes(memory["outside"] + max(memory["bytes"])))
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".readout")).to_contain_text(format_bytes(memory["outside"] + memory["bytes"][0]))
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuenow", str(len(memory["bytes"]) - 2))


def test_the_timeline_is_read_by_keys(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer, "view=time")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowDown")
    readout = page.locator(".readout")
    expect(readout).to_contain_text("link of 8 devices, at ")
    expect(readout).to_contain_text("all_reduce of stablehlo.")
    first = readout.inner_text()
    page.keyboard.press("ArrowRight")
    expect(readout).not_to_have_text(first)
    page.keyboard.press("Home")
    expect(readout).to_have_text(first)
    page.keyboard.press("Enter")
    expect(page.locator("#details")).to_be_visible()


def test_arrays_are_sorted_by_each_column_both_ways(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer, "view=arrays")

    def first() -> int:
        return page.evaluate("tensor(found.arrays[arrayItems('')[0]].tensor).local")

    sizes = page.evaluate("found.arrays.map((array) => tensor(array.tensor).local)")
    assert first() == max(sizes)
    page.get_by_role("button", name="bytes per device").click()
    assert first() == min(sizes)
    page.get_by_role("button", name="name").click()
    expect(rows(page).first).to_contain_text("argument 0")


def test_dark_and_light(open_report: Open, transformer: Report) -> None:
    def paper(page: Page) -> list[int]:
        return [
            int(part) for part in re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
        ]

    dark = open_report(transformer, dark=True)
    assert max(paper(dark)) < 80
    dark.get_by_title("light or dark").click()
    assert min(paper(dark)) > 200
    light = open_report(transformer, dark=False)
    assert min(paper(light)) > 200
    light.get_by_title("light or dark").click()
    assert max(paper(light)) < 80


@pytest.mark.parametrize("view", VIEWS[1:])
def test_a_narrow_screen_is_not_wider_than_it_is(open_report: Open, transformer: Report, view: str) -> None:
    page = open_report(transformer, f"view={view}", width=400)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    rows(page).nth(2).click(position={"x": 5, "y": 15})
    expect(page.get_by_role("complementary")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="close").click()
    expect(rows(page).first).to_be_visible()


@pytest.fixture(scope="module")
def gathered() -> Report:
    """Report of a training step with a constraint that forgets the axis of the batch."""
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def loss(up: jax.Array, down: jax.Array, x: jax.Array) -> jax.Array:
        h = jax.lax.with_sharding_constraint(jnp.tanh(x @ up), NamedSharding(mesh, P(None, "model")))
        return jnp.mean((h @ down) ** 2)

    def step(up: jax.Array, down: jax.Array, x: jax.Array) -> tuple[jax.Array, ...]:
        gradients = jax.grad(loss, (0, 1))(up, down, x)
        return up - gradients[0], down - gradients[1]

    specs = (P("data", "model"), P("model", "data"), P("data"))
    shapes = ((1024, 4096), (4096, 1024), (16384, 1024))
    tensors = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return sdy.report(sdy.jit(step, mesh=mesh, in_shardings=specs), *tensors)


def test_findings_come_first_and_are_read_by_keys(open_report: Open, gathered: Report) -> None:
    page = open_report(gathered)
    expect(page.get_by_role("link", name="findings")).to_have_attribute("aria-current", "page")
    expect(page.locator("#headline p").first).to_contain_text("Avoidable: each device receives 180 MiB more")
    expect(page.locator("#headline p").first).to_contain_text("Fix: change jax.lax.with_sharding_constraint")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("180 MiB")
    page.locator(".rows").focus()
    page.keyboard.press("Enter")
    details = page.get_by_role("complementary")
    expect(details).to_contain_text("receives 40 MiB instead of 220 MiB")
    details.get_by_role("link", name="96 MiB").click()
    expect(details).to_contain_text("all-gather over data")


@pytest.mark.parametrize("width", [400, 1280])
def test_collectives_wear_badges(open_report: Open, gathered: Report, width: int) -> None:
    page = open_report(gathered, "view=collectives", width=width)
    expect(rows(page).filter(has_text="all-reduce").locator(".chip").first).to_have_text("tensor-parallel sum")
    expect(rows(page).filter(has_text="FSDP gather")).to_have_count(1)
    rows(page).get_by_role("link", name="avoidable").click()
    expect(page.get_by_role("complementary")).to_contain_text("Fix")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_page_without_findings_says_so(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer)
    expect(page.get_by_role("link", name="collectives")).to_have_attribute("aria-current", "page")
    page.keyboard.press("1")
    expect(page.locator("#view")).to_have_attribute("data-none", "No findings above 1 MiB.")


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'{{data}}\u202e"


def test_names_are_text_and_nothing_else(open_report: Open) -> None:
    name = HOSTILE.replace('"', '\\"')
    module = sdy.parse(f"""
module @"{name}" {{
  sdy.mesh @mesh = <["{name}"=8]>
  func.func @main(%a: tensor<64x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"{name}"}}]>}} loc("{name}"),
                  %b: tensor<64x64xf32>) -> tensor<64x64xf32> {{
    %0 = stablehlo.dot %a, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
        loc("{name}"("{name}.py":3:4))
    return %0 : tensor<64x64xf32>
  }}
}}""")
    report = sdy.report(module, hardware="h100-8")
    for view in VIEWS:
        page = open_report(report, f"view={view}&show=v0")
        if view != "findings":
            expect(rows(page).first).to_be_visible()
        expect(page.get_by_role("complementary")).to_contain_text("onerror=alert(2)")
        assert page.locator("img, script:not([id]):nth-of-type(n+3)").count() == 0
        assert "\u202e" not in page.content()
        expect(page.locator("#facts")).to_contain_text("</script>")


def test_parts_of_any_rank_on_any_mesh(open_report: Open) -> None:
    module = sdy.parse("""
sdy.mesh @mesh = <["a"=2, "b"=3, "c"=2], device_ids=[11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]>
func.func @main(%x: tensor<4x7x2x5xi8>, %y: tensor<7x3xf32>, %z: tensor<f32>)
    -> (tensor<4x7x2x5xi8>, tensor<7x3xf32>, tensor<f32>) {
  %0 = stablehlo.abs %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}, {"c"}, {}]>]>}
      : tensor<4x7x2x5xi8>
  %1 = stablehlo.tanh %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>} : tensor<7x3xf32>
  return %0, %1, %z : tensor<4x7x2x5xi8>, tensor<7x3xf32>, tensor<f32>
}""")
    report = sdy.report(module)
    page = open_report(report, "view=arrays&show=v3")

    def titles() -> list[str | None]:
        return [cell.get_attribute("title") for cell in page.locator(".cell").all()]

    expect(page.locator("figure")).to_have_count(2)
    assert titles()[0] == "[0:2, 0:3, 0:1, :] on device 11"
    assert titles()[-1] == "[2:4, 6:7, 1:2, :] on device 0"
    page.goto(page.url.replace("show=v3", "show=v4"))
    expect(page.locator(".cell")).to_have_count(3)
    assert titles() == [
        "[0:3, :] on devices 4-5, 10-11",
        "[3:6, :] on devices 2-3, 8-9",
        "[6:7, :] on devices 0-1, 6-7",
    ]
    page.goto(page.url.replace("show=v4", "show=v2"))
    expect(page.locator(".picture")).to_contain_text("Replicated on 12 devices")


def test_a_notebook_shows_the_page(browser: Browser, transformer: Report) -> None:
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    shown = transformer._repr_html_()  # pyright: ignore[reportPrivateUsage]: it is what notebooks call
    page.set_content(f"<h1>a notebook</h1>{shown}")
    frame = page.frame_locator("iframe")
    frame.get_by_role("option").first.click()
    expect(frame.get_by_role("complementary")).to_contain_text("Why it is there")
    frame.get_by_role("link", name="program").click()
    expect(frame.get_by_role("option").first).to_contain_text("func.func")
    assert not problems


def test_the_program_of_one_device_as_python(open_report: Open, transformer: Report) -> None:
    page = open_report(transformer)
    page.keyboard.press("7")
    code = page.get_by_label("Python", exact=True)
    expect(code).to_contain_text("_on_one_device(")
    expect(code).to_contain_text("lax.psum(")
    page.get_by_placeholder("search").fill("jax.shard_map")
    expect(code.locator(".here")).to_contain_text("jax.shard_map(")
    expect(code.locator(".here")).to_be_in_viewport()


def test_a_program_that_sends_nothing(open_report: Open) -> None:
    page = open_report(
        sdy.report(sdy.parse("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}"))
    )
    expect(page.locator("#headline")).to_contain_text("Devices exchange no data.")
    for view in VIEWS[:5]:
        page.get_by_role("link", name=view).click()
        expect(page.get_by_role("link", name=view)).to_have_attribute("aria-current", "page")
