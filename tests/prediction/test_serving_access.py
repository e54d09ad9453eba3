"""Who may use a service, over what connection, and how it takes over an export that was replaced."""

import http.client
import json
import shutil
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from scena import Sample
from scena.commands.main import main
from scena.errors import ScenaError
from scena.prediction.params import ServeParams
from scena.prediction.serving.access import check_certificate, read_tokens
from scena.prediction.serving.reload import return_freed_memory
from scena.prediction.serving.server import create_server
from scena.prediction.serving.signature import ServedModel
from tests.prediction.http_service import ask, in_thread, running, started
from tests.prediction.test_serving import PREDICT, Slow, square
from tests.toy.scenario import ToyScenario
from tests.zygote import Zygote

BODY = {"instances": [{"x": [1.0] * 8}]}


def ask_with(port: int, path: str, authorization: str | None) -> tuple[int, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {} if authorization is None else {"Authorization": authorization}
    connection.request("GET" if path != PREDICT else "POST", path, json.dumps(BODY), headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, response.getheader("WWW-Authenticate")


def test_only_requests_with_a_token_are_answered(
    exports: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("first-secret\n\nsecond-secret\n")
    predictor = ToyScenario.create_predictor(exports[0])
    with running(predictor, ServeParams(token_file=tokens)) as port:
        for path in (PREDICT, "/", "/docs", "/metrics", "/openapi.json", "/v1/models/toy"):
            assert ask_with(port, path, None) == (401, "Bearer")
            assert ask_with(port, path, "Bearer first-secre") == (401, "Bearer")
            assert ask_with(port, path, "Basic first-secret") == (401, "Bearer")
            assert ask_with(port, path, "Bearer first-secret") == (200, None)
        assert ask_with(port, PREDICT, "bearer second-secret") == (200, None)
        assert ask_with(port, "/health", None) == (200, None)
    monkeypatch.setenv("SCENA_SERVE_TOKEN", "third")
    with running(predictor, ServeParams()) as port:
        assert ask_with(port, PREDICT, None)[0] == 401
        assert ask_with(port, PREDICT, "Bearer third")[0] == 200


def test_an_empty_token_file_does_not_open_the_service(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("\n  \n")
    with pytest.raises(ScenaError, match="has no token; write one in a line"):
        read_tokens(ServeParams(token_file=tmp_path / "tokens"))
    with pytest.raises(ScenaError, match="Cannot read --token_file .*: No such file"):
        read_tokens(ServeParams(token_file=tmp_path / "missing"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(private, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    cert.write_bytes(made.public_bytes(pem))
    plain = serialization.NoEncryption()
    key.write_bytes(private.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return cert, key


def test_https(exports: list[Path], certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    with running(ToyScenario.create_predictor(exports[0]), ServeParams(tls_cert=cert, tls_key=key)) as port:
        trusting = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=trusting)
        connection.request("POST", PREDICT, json.dumps(BODY))
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(port, "/health")  # not encrypted


def test_wrong_certificates_are_named(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = certificate
    with pytest.raises(ScenaError, match="--tls_key needs --tls_cert"):
        check_certificate(None, key)
    with pytest.raises(ScenaError, match="Cannot use --tls_cert .*missing.*: No such file"):
        check_certificate(tmp_path / "missing", None)
    with pytest.raises(ScenaError, match="Cannot use --tls_cert .*key.pem"):
        check_certificate(key, cert)


def test_a_replaced_export_takes_over_and_no_request_is_lost(
    exports: list[Path], tmp_path: Path, zygote: Zygote, capsys: pytest.CaptureFixture[str]
) -> None:
    served = tmp_path / "best"
    shutil.copytree(exports[0], served)
    for directory in (served, other := tmp_path / "other"):
        if directory is other:
            shutil.copytree(exports[1], other)
        assert main(["export", str(directory), "--scenario", "tests.toy.scenario", "--format", "onnx"]) == 0
    row = Sample(inputs={"x": np.ones(8, "float32")})
    before, after = (ToyScenario.create_predictor(path).predict_sample(row).outputs["pred"] for path in (served, other))
    flags = ["--scenario", "tests.toy.scenario", "--reload", "0.2"]
    with started(zygote, str(served), *flags, log=tmp_path / "log") as (process, port):
        answers: list[tuple[int, list[float]]] = []
        ended = threading.Event()

        def keep_asking() -> None:
            while not ended.is_set():
                status, answer = ask(port, PREDICT, BODY)
                answers.append((status, answer["predictions"][0]["pred"] if status == 200 else []))

        clients = [threading.Thread(target=keep_asking) for _ in range(3)]
        for client in clients:
            client.start()
        served.rename(tmp_path / "old")
        time.sleep(0.5)  # as long as it is gone the old model answers
        other.rename(served)
        assert process.wait_for("the new model is in service", timeout=60), process.text
        count = len(answers)
        while len(answers) < count + 30:
            time.sleep(0.01)
        (served / "model.onnx").write_bytes(b"damaged")
        (served / "converted.json").touch()
        (served / "scenario.json").write_text("{")
        assert process.wait_for("cannot be loaded; the model before it stays", timeout=60), process.text
        count = len(answers)
        while len(answers) < count + 10:
            time.sleep(0.01)
        ended.set()
        for client in clients:
            client.join()
        assert ask(port, "/v1/models/toy")[1]["model_version_status"][0]["version"] == "2"
    assert {status for status, _ in answers} == {200}
    np.testing.assert_allclose(answers[0][1], before, atol=1e-4)
    np.testing.assert_allclose(answers[-1][1], after, atol=1e-4)
    switches = np.diff([np.abs(np.array(pred) - after).max() < 1e-4 for _, pred in answers]).nonzero()[0]
    assert 1 <= len(switches) <= 5  # three clients may overtake each other at the moment of the change


class Classes(Slow):
    """Answers a class after a while."""

    def predict_raw(self, samples: Sequence[Sample]) -> list[Sample]:
        self.sizes.append(len(samples))
        time.sleep(self.seconds)
        return [sample.new_outputs({"class": np.int64(1)}) for sample in samples]


def test_names_and_schemas_belong_to_the_model_that_answers(exports: list[Path]) -> None:
    old = Classes(0.5)
    server = create_server(old, ServeParams(port=0), ServedModel("toy", ["old", "older"]))
    service: Any = server.config.app.service  # type: ignore[union-attr]
    with in_thread(server) as port, ThreadPoolExecutor(1) as thread:
        first = thread.submit(ask, port, PREDICT, square(1))
        while not old.sizes:
            time.sleep(0.01)
        service.replace(ToyScenario.create_predictor(exports[0]), ServedModel("toy", ["new", "newer"]))
        assert first.result() == (200, {"predictions": ["older"]})
        assert ask(port, PREDICT, BODY)[1]["predictions"][0]["class"] in ("new", "newer")
        described = ask(port, "/openapi.json")[1]["paths"]
        rows = described[PREDICT]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert rows == {"instances": [{"x": [0.0] * 8}]}
        assert "newer" in ask(port, "/docs")[1] and "older" not in ask(port, "/docs")[1]
        assert ask(port, "/v1/models/toy/metadata")[1]["model_spec"]["version"] == "2"


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can return memory")
def test_freed_memory_is_returned_to_the_system() -> None:
    def used() -> int:
        return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) // 1000

    pieces = [bytes([number % 256]) * 3000 for number in range(60_000)]
    last = pieces.pop()  # as a small object of the new model, it keeps the memory below it
    full = used()
    pieces.clear()
    return_freed_memory()
    assert used() < full - 120 and len(last) == 3000
