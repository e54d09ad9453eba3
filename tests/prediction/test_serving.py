"""The HTTP service: routes, limits, batching of concurrent requests, and a clean end."""

import base64
import http.client
import io
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from PIL import Image

from scena import ArraySpec, Sample
from scena.commands.main import main
from scena.data.params import DataBaseParams, PipelineMode
from scena.errors import DataError
from scena.prediction.params import ServeParams
from scena.prediction.predictor import Predictor
from scena.prediction.serving.batcher import Batcher, QueueFullError
from tests.prediction.http_service import ask, running, started
from tests.toy.scenario import ToyScenario
from tests.zygote import Zygote

PREDICT = "/v1/models/toy:predict"
ROW = [0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0]


class Slow:
    """Stands in for a predictor: takes its time, and fails on negative numbers."""

    mode = PipelineMode.PREDICTION
    sample_from_json = Predictor.sample_from_json
    sample_from_file = Predictor.sample_from_file
    sample_from_fields = Predictor.sample_from_fields
    reads_files = Predictor.reads_files
    decoded_inputs: frozenset[str] = frozenset()
    outputs = Predictor.outputs

    class data:  # noqa: N801
        params = DataBaseParams()

        @staticmethod
        def target_layer_specs() -> dict[str, ArraySpec]:
            return {}

        @staticmethod
        def input_layer_specs() -> dict[str, ArraySpec]:
            return {"x": ArraySpec((4, 4), "float32")}

    class built:  # noqa: N801
        class prediction_model:  # noqa: N801
            output = {"sum": keras.KerasTensor((None,), "float32")}

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.sizes: list[int] = []

    def predict_raw(self, samples: Sequence[Sample]) -> list[Sample]:
        self.sizes.append(len(samples))
        time.sleep(self.seconds)
        if any(sample.inputs["x"].min() < 0 for sample in samples):
            raise DataError("x must not be negative")
        return [sample.new_outputs({"sum": sample.inputs["x"].sum()}) for sample in samples]


@pytest.fixture(scope="module")
def port(exports: list[Path]) -> Iterator[int]:
    with running(ToyScenario.create_predictor(exports[0]), ServeParams(max_body=100_000, body_timeout=0.5)) as port:
        yield port


def square(value: float) -> dict[str, Any]:
    return {"instances": [{"x": np.full((4, 4), value).tolist()}]}


def test_rows_and_columns(port: int, exports: list[Path]) -> None:
    sample = Sample(inputs={"x": np.array(ROW, "float32")})
    expected = ToyScenario.create_predictor(exports[0]).predict_sample(sample).outputs
    status, answer = ask(port, PREDICT, {"instances": [{"x": ROW}, ROW]})  # a single input may go without its name
    assert status == 200
    for prediction in answer["predictions"]:
        assert prediction["pred"] == pytest.approx(expected["pred"].tolist(), abs=1e-6)
    status, answer = ask(port, PREDICT, {"inputs": {"x": [ROW, ROW]}})
    assert status == 200 and len(answer["outputs"]["pred"]) == 2
    assert answer["outputs"]["pred"][1] == pytest.approx(expected["pred"].tolist(), abs=1e-6)


def test_what_the_service_says_about_itself(port: int) -> None:
    assert ask(port, "/health") == (200, {"status": "ok"})
    assert ask(port, "/v1/models/toy")[1]["model_version_status"][0]["state"] == "AVAILABLE"
    signature = ask(port, "/v1/models/toy/metadata")[1]["metadata"]["signature_def"]["serving_default"]
    assert signature["inputs"] == {"x": {"shape": [None, 8], "dtype": "float32"}}
    assert set(signature["outputs"]) == {"logits", "pred"}
    assert PREDICT in ask(port, "/openapi.json")[1]["paths"] and PREDICT in ask(port, "/docs")[1]
    ask(port, PREDICT, {"instances": [ROW]})
    metrics = ask(port, "/metrics")[1]
    assert 'scena_requests_total{status="200"}' in metrics and "scena_batch_size_count" in metrics
    message = f"There is no /v1/models/other:predict here. The model answers POST {PREDICT}; /docs lists everything."
    assert ask(port, "/v1/models/other:predict", {"instances": [ROW]}) == (404, {"error": message})


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "The body is not JSON"),
        (b"[" * 100_000, 400, "The body is not JSON"),
        ({"x": 1}, 400, 'Expected {"instances"'),
        ({"instances": []}, 400, "at least one sample"),
        ({"instances": [{"y": 1}]}, 400, """exactly the keys ['x'], or it is a file: {"b64": "…"}. Missing: ['x']. Unknown: ['y']."""),
        ({"instances": [[None] * 8]}, 422, "The model predicts NaN: does it handle missing values (null)?"),
        ({"instances": [["1"] * 8]}, 400, "does not match the input 'x'"),
        ({"instances": ["/etc/hostname"]}, 400, "does not match the input 'x'"),
        ({"instances": [[1, 2]]}, 400, "does not match the input 'x': expected shape=(8,), dtype=float32; received shape=(2,), "),
        ({"instances": [[[1, 2], [3]]]}, 400, "The lists of the input 'x' have different lengths"),
        ({"inputs": {"x": [ROW], "y": []}}, 400, "the same length"),
        ({"instances": [{"b64": "?"}]}, 400, "is not base64"),
        (b" " * 200_000, 413, "larger than 100000 bytes"),
    ],
    ids=str,
)  # fmt: skip
def test_malformed_bodies_get_a_4xx(port: int, body: Any, status: int, message: str) -> None:
    received, answer = ask(port, PREDICT, body)
    assert received == status and message in answer["error"]
    assert ask(port, PREDICT, {"instances": [ROW]})[0] == 200


def test_a_huge_body_without_a_length_is_cut_off(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", PREDICT, (b" " * 10_000 for _ in range(30)), {"Content-Type": "application/json"})
    assert connection.getresponse().status == 413
    connection.close()


def test_a_client_that_trickles_its_headers_gets_408(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
        slow.sendall(f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nX-Slow: ".encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as silent:
        assert silent.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_slow_client_gets_408_and_harms_nobody(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as slow:
        slow.sendall(f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert ask(port, PREDICT, {"instances": [ROW]})[0] == 200  # others go on meanwhile
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def picture(size: tuple[int, int] = (9, 7)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size, (255, 255, 255)).save(buffer, "PNG")
    return buffer.getvalue()


def test_files_as_body_in_a_form_and_in_json() -> None:
    with running(Slow(), ServeParams()) as port:
        assert ask(port, PREDICT, picture(), "image/png") == (200, {"predictions": [16 * 255.0]})
        form = b"".join(
            b'--B\r\nContent-Disposition: form-data; name="f"; filename="f.png"\r\n\r\n' + picture() + b"\r\n"
            for _ in range(2)
        )
        kind = "multipart/form-data; boundary=B"
        assert ask(port, PREDICT, form + b"--B--\r\n", kind) == (200, {"predictions": [16 * 255.0] * 2})
        encoded = base64.b64encode(picture()).decode()
        assert ask(port, PREDICT, {"instances": [{"b64": encoded}]}) == (200, {"predictions": [16 * 255.0]})
        status, answer = ask(port, PREDICT, b"no picture", "application/octet-stream")
        assert status == 400 and "The file 'upload' is not an image" in answer["error"]
        status, answer = ask(port, PREDICT, b"--B\r\n\r\nx\r\n--B--\r\n", kind)
        assert status == 400 and "form" in answer["error"]


def in_threads(count: int, work: Any) -> list[Any]:
    results: list[Any] = [None] * count
    threads = [threading.Thread(target=lambda i=i: results.__setitem__(i, work(i))) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_concurrent_requests_are_batched_and_each_gets_its_own_answer() -> None:
    predictor = Slow(0.05)
    with running(predictor, ServeParams(max_batch=8)) as port:
        answers = in_threads(24, lambda i: ask(port, PREDICT, square(i)))
    assert answers == [(200, {"predictions": [16.0 * i]}) for i in range(24)]
    assert len(predictor.sizes) < 12 and max(predictor.sizes) <= 8


def test_a_bad_sample_does_not_harm_its_batch() -> None:
    with running(Slow(0.05), ServeParams(max_batch=8)) as port:
        answers = in_threads(8, lambda i: ask(port, PREDICT, square(-1 if i == 3 else i)))
    assert answers.pop(3) == (422, {"error": "x must not be negative"})
    assert [status for status, _ in answers] == [200] * 7


def test_a_full_queue_gives_429_and_a_late_answer_504() -> None:
    with running(Slow(0.3), ServeParams(max_batch=1, max_queue=2)) as port:
        statuses = [status for status, _ in in_threads(8, lambda i: ask(port, PREDICT, square(i)))]
    assert set(statuses) == {200, 429} and statuses.count(200) >= 2
    with running(Slow(0.5), ServeParams(time_limit=0.1)) as port:
        assert ask(port, PREDICT, square(1))[0] == 504


def test_the_batcher_on_its_own() -> None:
    gate = threading.Event()
    batches: list[int] = []

    def predict(samples: Sequence[Sample]) -> list[Sample]:
        gate.wait()
        batches.append(len(samples))
        return list(samples)

    batcher = Batcher(predict, max_batch=4, max_delay=0.01, max_queue=6)
    groups = [[Sample(meta=(place, part)) for part in range(size)] for place, size in enumerate([3, 3, 2])]
    futures = [batcher.submit(groups[0])]
    time.sleep(0.1)  # the first group is being predicted
    futures += [batcher.submit(group) for group in groups[1:]]
    with pytest.raises(QueueFullError):
        batcher.submit(groups[0])
    gate.set()
    batcher.close()
    assert [future.result() for future in futures] == groups  # what waited was answered, in order
    assert batches == [3, 3, 2] and batcher.waiting == 0


def test_the_command_serves_the_whole_pipeline_and_ends_cleanly(
    zygote: Zygote, exports: list[Path], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with started(zygote, *map(str, exports), "--scenario", "tests.toy.scenario", log=log) as (process, port):
        assert len(ask(port, PREDICT, {"instances": [ROW] * 3})[1]["predictions"]) == 3
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.2", port), timeout=2)  # another address of this machine
        answers: list[Any] = []
        large = {"instances": [ROW] * 6_000}
        busy = threading.Thread(target=lambda: answers.append(ask(port, PREDICT, large)))
        busy.start()
        while "scena_batch_size_count 1.0" in ask(port, "/metrics")[1]:
            time.sleep(0.01)  # until the large request is being predicted
        process.kill(signal.SIGTERM)
        busy.join()
        assert process.wait() == 0
    assert "The service has ended." in log.read_text()
    assert answers[0][0] == 200 and len(answers[0][1]["predictions"]) == 6_000


def test_a_port_in_use_is_named(exports: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(exports[0]), "--scenario", "tests.toy.scenario", "--port", str(port)]) == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
