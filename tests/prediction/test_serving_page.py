"""The pages of the service in a real browser against a real server, and requests that can be copied from them."""

import html
import http.client
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from scena import ArraySpec
from scena.prediction.params import ServeParams
from scena.prediction.serving.page import docs_page, model_page
from scena.prediction.serving.signature import ServedModel, Signature, python_example, type_text
from tests.pages.browser import Browser, needs_chromium
from tests.pages.checks import check_layout, check_theme_switch
from tests.prediction.http_service import ask, running
from tests.prediction.pairs import NAMES
from tests.prediction.test_serving import PREDICT, ROW, Slow, picture
from tests.prediction.test_serving_samples import LEFT, b64, form, grey, pairs
from tests.toy.scenario import ToyScenario


@pytest.fixture(scope="module")
def toy(exports: list[Path]) -> Iterator[int]:
    """A service that takes eight numbers."""
    with running(ToyScenario.create_predictor(exports[0]), ServeParams()) as port:
        yield port


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A service that takes two images."""
    predictor = pairs(tmp_path_factory.mktemp("pair") / "model")
    with running(predictor, ServeParams(), class_names=NAMES) as port:
        yield port


@pytest.fixture(scope="module")
def image() -> Iterator[int]:
    """A service that takes one image."""
    with running(Slow(), ServeParams()) as port:
        yield port


def examples(port: int) -> list[str]:
    """The requests that the page offers: for a shell, and in Python."""
    blocks = re.findall(r"<code>(.*?)</code>", ask(port, "/")[1], re.DOTALL)
    return [html.unescape(block) for block in blocks]


def operation(port: int) -> dict[str, Any]:
    described: dict[str, Any] = ask(port, "/openapi.json")[1]["paths"][PREDICT]["post"]
    return described


@pytest.mark.parametrize("service", ["toy", "pair", "image"])
def test_the_requests_on_the_page_work(service: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    port = request.getfixturevalue(service)
    for name in ("image", "left", "right"):
        (tmp_path / f"{name}.png").write_bytes(grey(30))
    curl, python = examples(port)
    assert f"http://127.0.0.1:{port}{PREDICT}" in curl
    run: dict[str, Any] = {"cwd": tmp_path, "capture_output": True, "text": True, "check": True, "timeout": 60}
    shown = subprocess.run([sys.executable, "-c", python], **run).stdout
    assert shown.strip(), python
    if shutil.which("curl"):
        answer = json.loads(subprocess.run(["sh", "-c", curl], **run).stdout)
        assert str(answer["predictions"][0]) == shown.strip()


def test_real_requests_and_answers_match_the_schemas(toy: int, pair: int) -> None:
    described = operation(toy)
    asked = described["requestBody"]["content"]["application/json"]
    answered = described["responses"]["200"]["content"]["application/json"]["schema"]
    for good in (
        asked["example"],
        {"instances": [ROW, {"x": ROW}]},
        {"inputs": {"x": [ROW]}},
        {"instances": [b64(b"x")]},
    ):
        jsonschema.validate(good, asked["schema"])
    for body in ({"instances": [ROW, {"x": ROW}]}, {"inputs": {"x": [ROW]}}, {"instances": [ROW, [1]]}):
        jsonschema.validate(ask(toy, PREDICT, body)[1], answered)
    for bad in ({"instances": []}, {"instances": [[1.0]]}, {"instances": [{"y": ROW}]}, {"instances": [["a"] * 8]}, {}):
        assert ask(toy, PREDICT, bad)[0] == 400
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, asked["schema"])
    described = operation(pair)
    assert set(described["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]) == {"left", "right"}
    answered = described["responses"]["200"]["content"]["application/json"]["schema"]
    answer = ask(pair, PREDICT, *form(("left", "a.png", grey(30)), ("right", "b.png", grey(10))))[1]
    jsonschema.validate(answer, answered)
    assert answered["properties"]["predictions"]["items"]["anyOf"][0]["properties"]["class"]["enum"] == NAMES


def test_every_route_is_described(toy: int) -> None:
    for path, methods in ask(toy, "/openapi.json")[1]["paths"].items():
        for method, route in methods.items():
            if method == "get" and "application/json" in (contents := route["responses"]["200"]["content"]):
                jsonschema.validate(ask(toy, path)[1], contents["application/json"]["schema"])
            assert route["summary"] in ask(toy, "/docs")[1]


def test_names_are_text_and_nothing_is_fetched_from_elsewhere() -> None:
    evil = "</script><b>'\"&"
    signature = Signature({evil: ArraySpec((None,), "str")}, {evil: ArraySpec((), "int32")}, [evil] * 2)
    model = ServedModel("m", [evil] * 2, evil, {evil: evil})
    description = {"paths": {"/p": {"post": {**signature.operation(), "summary": evil}}}}
    for page in (model_page(model, signature, "http://x", "/p"), docs_page(description, "m")):
        assert "<b>'" not in page and page.count("</script>") == page.count("<script")
        assert not re.findall(r"""(?:src|href)=["'](?!/|#)|url\(|@import|https?://(?!x/p)""", page)
        assert len(page.encode()) < 60_000


def test_a_strange_host_is_not_repeated(toy: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", toy)
    connection.request("GET", "/", headers={"Host": "x; rm -rf ~"})
    page = connection.getresponse().read().decode()
    connection.close()
    assert "rm -rf" not in page and "http://127.0.0.1" in page


def test_schemas_in_short() -> None:
    signature = Signature(
        {"img": ArraySpec((28, None), "uint8")}, {"pred": ArraySpec((3,), "float32")}, [f"c{i}" for i in range(9)]
    )
    assert type_text(signature.form_schema()) == "{img: file}"
    text = type_text(signature.answer_schema())
    assert "pred: number[3]" in text and '"c0" | "c1"' in text and "(3 more)" in text and "{error: string}" in text
    assert "integer 0…255[28][]" in type_text(signature.request_schema())
    long = Signature({"x": ArraySpec((5, 100), "bool"), "t": ArraySpec((), "str")}, {})
    assert "[[False] * 100] * 5" in python_example(long, "http://x") and "'t': ''" in python_example(long, "http://x")


@needs_chromium
def test_a_person_tries_numbers(toy: int, chromium: Browser) -> None:
    chromium.open(f"http://127.0.0.1:{toy}/")
    check_layout(chromium)
    check_theme_switch(chromium)
    chromium.click("#json button")
    assert "0.500" in chromium.text("#answer", "ms") and "pred" in chromium.text("#answer", "ms")
    chromium.run("document.getElementById('instance').value = '{\"x\": 1}'")
    chromium.click("#json button")
    assert "does not match the input 'x'" in chromium.text("#answer [role=alert]", "match")


@needs_chromium
def test_a_copy_button_copies(toy: int, chromium: Browser) -> None:
    chromium.open(f"http://127.0.0.1:{toy}/")
    permission = {"permissions": ["clipboardReadWrite"], "origin": f"http://127.0.0.1:{toy}"}
    chromium.call("POST", "/goog/cdp/execute", cmd="Browser.grantPermissions", params=permission)
    chromium.click("[role=tab]:nth-child(2)")
    chromium.click("#example-1 .copy")
    assert chromium.text("#example-1 .copy", "Copied") == "Copied"
    assert chromium.run("return navigator.clipboard.readText()") == examples(toy)[1]


@needs_chromium
def test_a_person_gives_the_page_an_image(image: int, chromium: Browser, tmp_path: Path) -> None:
    file = tmp_path / "white.png"
    file.write_bytes(picture())
    chromium.open(f"http://127.0.0.1:{image}/")
    chromium.choose_file("#file", file)
    assert "4080" in chromium.text("#answer", "4080")
    file.write_bytes(b"no picture")
    chromium.open(f"http://127.0.0.1:{image}/")
    chromium.choose_file("#file", file)
    assert "The file 'upload' is not an image" in chromium.text("#answer", "not an image")


@needs_chromium
def test_the_page_has_a_field_for_each_input_and_shows_names_as_text(
    pair: int, chromium: Browser, tmp_path: Path
) -> None:
    chromium.open(f"http://127.0.0.1:{pair}/")
    for name, value in (("left", 30), ("right", 10)):
        (tmp_path / f"{name}.png").write_bytes(grey(value))
        chromium.choose_file(f"input[name={name}]", tmp_path / f"{name}.png")
    chromium.click("#several button")
    text = chromium.text("#answer", "0.750")
    assert LEFT in text and "0.250" in text
    assert chromium.run("return document.getElementById('evil') === null")
    check_layout(chromium)


@needs_chromium
def test_requests_are_tried_on_the_page_of_the_interface(
    toy: int, pair: int, chromium: Browser, tmp_path: Path
) -> None:
    chromium.open(f"http://127.0.0.1:{toy}/docs")
    check_layout(chromium)
    chromium.resize(1280)
    chromium.click("form[data-kind='application/json'] button.main")
    shown = chromium.text("#operation-0 .reply", "predictions")
    assert shown.startswith("200 after") and '"pred"' in shown
    chromium.click("form[data-path='/health'] button.main")
    assert '"status": "ok"' in chromium.text("section:has([data-path='/health']) .reply", "ok")
    chromium.open(f"http://127.0.0.1:{pair}/docs")
    for name in ("left", "right"):
        (tmp_path / f"{name}.png").write_bytes(grey(30))
        chromium.choose_file(f"form[data-kind='multipart/form-data'] input[name={name}]", tmp_path / f"{name}.png")
    chromium.click("form[data-kind='multipart/form-data'] button.main")
    assert "0.5" in chromium.text("#operation-0 .reply", "predictions")
    assert chromium.run("return document.getElementById('evil') === null")
