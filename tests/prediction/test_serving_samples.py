"""What a request means to the service: fields and inputs, classes by name, bad neighbours, huge images, late answers, the end."""

import base64
import http.client
import io
import json
import signal
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from scena import ArraySpec, Sample
from scena.data.image.augment.processor import decode_image
from scena.prediction.params import ServeParams
from scena.prediction.serving.payload import PayloadError, fields_of_json, sample_of_fields, sample_of_file
from tests.evaluation.exporting import export
from tests.prediction.http_service import ask, running, started
from tests.prediction.pairs import NAMES, PairScenario, ReadingDataParams
from tests.prediction.test_serving import PREDICT, Slow, in_threads, square
from tests.zygote import Zygote

LEFT, RIGHT = NAMES


def grey(value: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (9, 7), value).save(buffer, "PNG")
    return buffer.getvalue()


def form(*fields: tuple[str, str | None, bytes]) -> tuple[bytes, str]:
    """The body of a form and its content type: (field, file name or None, content)."""
    parts = b""
    for field, file, content in fields:
        name = f'; filename="{file}"' if file is not None else ""
        parts += f'--B\r\nContent-Disposition: form-data; name="{field}"{name}\r\n\r\n'.encode() + content + b"\r\n"
    return parts + b"--B--\r\n", "multipart/form-data; boundary=B"


def b64(content: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(content).decode()}


def pairs(folder: Path, numbered: bool = True, reading: bool = False) -> Any:
    params = PairScenario.default_trainer_params()
    params.scenario.model.numbered = numbered
    if reading:
        params.scenario.data = ReadingDataParams()
    return PairScenario.create_predictor(export(folder, 1, PairScenario, params))


@pytest.fixture(scope="module", params=[False, True], ids=["pictures", "processors"])
def port(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    predictor = pairs(tmp_path_factory.mktemp("pairs") / "model", reading=request.param)
    with running(predictor, ServeParams(), class_names=NAMES) as port:
        yield port


def test_fields_named_like_the_inputs_make_one_sample(port: int) -> None:
    body = form(("left", "a.png", grey(30)), ("right", "b.png", grey(10)))
    assert ask(port, PREDICT, *body) == (200, {"predictions": [{"pred": [0.75, 0.25], "class": LEFT}]})
    two = form(("left", "1", grey(30)), ("left", "2", grey(10)), ("right", "3", grey(10)), ("right", "4", grey(30)))
    assert [answer["class"] for answer in ask(port, PREDICT, *two)[1]["predictions"]] == [LEFT, RIGHT]
    instance = {"left": b64(grey(30)), "right": b64(grey(10))}
    expected = {"pred": [0.75, 0.25], "class": LEFT}
    assert ask(port, PREDICT, {"instances": [instance]}) == (200, {"predictions": [expected]})
    columns = {"inputs": {"left": [b64(grey(30))], "right": [b64(grey(10))]}}
    assert ask(port, PREDICT, columns) == (200, {"outputs": {"pred": [[0.75, 0.25]], "class": [LEFT]}})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([("left", "a", b"x")], "Each sample needs all inputs of the model. Received: 'left' 1 times, 'right' 0 times."),
        ([("left", "a", b"x"), ("rigth", "b", b"x")], "The model has no input 'rigth'. Name all fields of the form, or none,"),
        ([("note", None, b"x")], "The field 'note' is not a file, and the model has no such input: ['left', 'right']."),
        ([("left", None, b"{"), ("right", None, b"1")], "The field 'left' is neither a file nor JSON"),
    ],
)  # fmt: skip
def test_wrong_fields_are_named(port: int, fields: list[Any], message: str) -> None:
    status, answer = ask(port, PREDICT, *form(*fields))
    assert status == 400 and message in answer["error"]


def test_a_single_file_for_two_inputs_is_refused(tmp_path: Path) -> None:
    with running(pairs(tmp_path / "model"), ServeParams()) as port:
        status, answer = ask(port, PREDICT, grey(1), "image/png")
    assert (
        status == 400 and "name the fields of a form, or the keys of an instance, ['left', 'right']" in answer["error"]
    )


def test_one_bad_file_does_not_fail_its_neighbours(port: int) -> None:
    good, bad = {"left": b64(grey(30)), "right": b64(grey(10))}, {"left": b64(b"no picture"), "right": b64(grey(10))}
    status, answer = ask(port, PREDICT, {"instances": [good, bad, {"left": 1}, good]})
    assert status == 200
    first, second, third, last = answer["predictions"]
    assert first == last == {"pred": [0.75, 0.25], "class": LEFT}
    assert list(second) == ["error"] and ("not an image" in second["error"] or "is broken" in second["error"])
    assert third == {
        "error": """An instance has exactly the keys ['left', 'right'], or it is a file: {"b64": "…"}. Missing: ['right']."""
    }
    status, answer = ask(port, PREDICT, {"instances": [bad, bad]})  # nothing is right: the request fails
    assert status in (400, 422) and answer["error"].startswith("Sample 0: ")
    columns = {"inputs": {name: [good[name], bad[name]] for name in good}}
    status, answer = ask(port, PREDICT, columns)  # a column has no place for an error
    assert status in (400, 422) and answer["error"].startswith("Sample 1: ")


def test_a_name_is_added_where_the_model_puts_out_probabilities_only(tmp_path: Path) -> None:
    body = form(("left", "a.png", grey(10)), ("right", "b.png", grey(30)))
    predictor = pairs(tmp_path / "model", numbered=False)
    with running(predictor, ServeParams(), class_names=NAMES) as port:
        assert ask(port, PREDICT, *body)[1] == {"predictions": [{"pred": [0.25, 0.75], "class": RIGHT}]}
        signature = ask(port, "/v1/models/toy/metadata")[1]["metadata"]["signature_def"]["serving_default"]
        assert signature["class_names"] == NAMES
    with running(predictor, ServeParams()) as port:  # nothing is known about the classes
        assert ask(port, PREDICT, *body)[1] == {"predictions": [[0.25, 0.75]]}


def bomb(width: int, height: int) -> bytes:
    """A small PNG file of a huge grey picture."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(b"\0" * (width + 1)) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def huge() -> bytes:
    """164 kB that unfold to 13,000 × 13,000 pixels."""
    content = bomb(13_000, 13_000)
    assert len(content) < 180_000
    return content


def test_the_pixels_of_all_images_count_in_every_scenario(port: int, huge: bytes) -> None:
    message = "The images of the request have more than 50000000 pixels together. Send smaller or fewer ones."
    for fields in ([("left", "a", huge), ("right", "b", grey(1))], [("left", "a", huge), ("right", "b", huge)] * 27):
        body, kind = form(*fields)
        begun = time.process_time()
        assert ask(port, PREDICT, body, kind) == (413, {"error": message})
        assert time.process_time() - begun < 2  # nothing was decoded: that would take many seconds
    instance = {"left": b64(huge), "right": b64(grey(1))}
    assert ask(port, PREDICT, {"instances": [instance]}) == (413, {"error": message})
    middle = bomb(4_000, 4_000)  # each one is small enough, four are not
    fields = [(name, "a", middle) for name in ("left", "right")] * 2
    assert ask(port, PREDICT, *form(*fields))[0] == 413
    assert ask(port, PREDICT, *form(*fields[:2]))[0] == 200


def test_work_of_a_request_that_is_over_is_cancelled() -> None:
    predictor = Slow(0.2)
    with running(predictor, ServeParams(time_limit=0.5, max_batch=2)) as port:
        many = {"instances": square(1)["instances"] * 40}  # 20 batches of 0.2 seconds
        assert ask(port, PREDICT, many)[0] == 504
        assert ask(port, PREDICT, square(1))[0] == 200  # it is not behind 16 batches for nobody
    assert sum(predictor.sizes) < 15


def test_decoding_for_a_request_that_is_over_stops() -> None:
    class Decoding(Slow):
        """Takes long to read a file."""

        read = 0

        def sample_from_file(self, content: bytes, name: str) -> Sample:  # type: ignore[override]
            self.read += 1
            time.sleep(0.2)
            return Slow.sample_from_file(self, content, name)  # type: ignore[arg-type]

    predictor = Decoding()
    with running(predictor, ServeParams(time_limit=0.5)) as port:
        begun = time.monotonic()
        assert ask(port, PREDICT, *form(*[("f", "f.png", grey(1))] * 30))[0] == 504
        assert ask(port, "/health")[0] == 200
        assert time.monotonic() - begun < 5  # others are answered while files are decoded
    assert predictor.read < 10


def test_all_that_was_sent_before_sigterm_is_answered(zygote: Zygote, tmp_path: Path) -> None:
    export(tmp_path / "model", 1, PairScenario)
    flags = ["--scenario", "tests.prediction.pairs", "--max_batch", "2", "--max_queue", "1000", "--shutdown_time", "60"]
    instance = {"left": [[3.0] * 4] * 4, "right": [[1.0] * 4] * 4}
    body = json.dumps({"instances": [instance] * 20}).encode()
    with started(zygote, str(tmp_path / "model"), *flags, log=tmp_path / "log") as (process, port):
        predict = "/v1/models/pair:predict"
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(40)]
        for connection in connections[:20]:  # half of them are known to the service, the others are new
            connection.connect()
        for connection in connections:
            connection.request("POST", predict, body, {"Content-Type": "application/json"})
        process.kill(signal.SIGTERM)
        statuses = []
        for connection in connections:
            response = connection.getresponse()
            statuses.append((response.status, len(json.loads(response.read()).get("predictions", []))))
            connection.close()
        assert process.wait() == 0
    assert statuses == [(200, 20)] * 40


def test_a_request_that_cannot_be_finished_at_the_end_gets_503() -> None:
    predictor = Slow(3.0)
    answers: list[Any] = []
    with running(predictor, ServeParams(shutdown_time=1, max_batch=1)) as port:
        asking = threading.Thread(target=lambda: answers.extend(in_threads(3, lambda i: ask(port, PREDICT, square(i)))))
        asking.start()
        while not predictor.sizes:
            time.sleep(0.01)
        time.sleep(0.2)
    asking.join()
    message = {"error": "The service ended before the prediction was ready."}
    assert answers == [(503, message)] * 3


def test_rows_are_named_as_in_the_table_and_null_is_a_missing_number() -> None:
    specs = {
        "price__EUR_": ArraySpec((), "float32"),
        "sizes": ArraySpec((2,), "float32"),
        "place": ArraySpec((), "str"),
    }
    fields = fields_of_json({"price (EUR)": None, "sizes": [1, None], "place": "bog"}, specs)
    inputs = sample_of_fields(fields, specs, processed=False).inputs
    assert np.isnan(inputs["price__EUR_"]) and inputs["sizes"][0] == 1 and np.isnan(inputs["sizes"][1])
    for name, value, received in (("place", None, "null"), ("price__EUR_", "13", '"13"')):
        with pytest.raises(PayloadError, match=f"does not match the input '{name}': .*; received {received}"):
            sample_of_fields({**fields, name: value}, specs, processed=False)


def test_images_are_decoded_as_in_a_training() -> None:
    specs = {"img": ArraySpec((2, 3), "uint8")}
    values = np.array([[0, 10_000, 20_000], [30_000, 40_000, 65_535]], "uint16")
    deep, turned, tags = io.BytesIO(), io.BytesIO(), Image.Exif()
    Image.fromarray(values).save(deep, "PNG")
    tags[0x0112] = 3  # upside down
    Image.fromarray((values // 256).astype("uint8")).save(turned, "PNG", exif=tags)
    for content, expected in ((deep, values // 256), (turned, (values // 256)[::-1, ::-1])):
        sample = sample_of_file(content.getvalue(), "a.png", specs, processed=False)
        np.testing.assert_array_equal(sample.inputs["img"], expected)
        np.testing.assert_array_equal(decode_image(content.getvalue(), 1)[..., 0], expected)
    # the pipeline decodes it itself, whatever other processors there are
    sample = sample_of_file(deep.getvalue(), "a.png", specs, processed=True, decoded={"img"})
    assert sample.inputs == {"img": deep.getvalue()}


def test_a_form_that_ends_too_early_is_refused_as_a_whole() -> None:
    with running(Slow(), ServeParams()) as port:
        body, kind = form(("a", "a.png", grey(1)), ("b", "b.png", grey(2)))
        assert len(ask(port, PREDICT, body, kind)[1]["predictions"]) == 2
        for broken in (body[:-20], body.replace(b"--B--", b"")):
            status, answer = ask(port, PREDICT, broken, kind)
            assert status == 400 and answer["error"].startswith("The form cannot be read: "), answer
        many, kind = form(*[("a", "a.png", b"")] * 1001)
        assert ask(port, PREDICT, many, kind) == (
            400,
            {"error": "The form cannot be read: it has more than 1000 fields"},
        )


def test_other_methods_are_refused() -> None:
    with running(Slow(), ServeParams()) as port:
        assert ask(port, PREDICT) == (405, {"error": f"{PREDICT} takes POST; /docs describes it."})
        assert ask(port, "/health", b"") == (405, {"error": "/health takes GET; /docs describes it."})
