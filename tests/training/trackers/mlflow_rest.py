"""A server that speaks as much of MLflow's REST interface as trackers use, keeps every number it gets, and fails when it is told to.

It starts in a millisecond, where MLflow's own takes half a minute; `test_mlflow_server.py` does the same with MLflow's own.
"""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

API = "/api/2.0/mlflow/"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"


class MlflowRest:
    """The server, in a thread. Numbers that come twice are kept twice."""

    def __init__(self) -> None:
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.artifacts: dict[str, bytes] = {}
        self.faults: list[str] = []
        """What happens to the next requests that add numbers: "refuse" one, "lose" its answer, or drop it "half" way."""
        self.headers: list[str] = []
        self._port = 0

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> "MlflowRest":
        """Starts it, on the same port as before if it was stopped."""
        rest = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # no connection outlives `stop`

            def do_GET(self) -> None:
                rest.answer(self, {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()})

            def do_POST(self) -> None:
                rest.answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def do_PUT(self) -> None:
                rest.artifacts[urlsplit(self.path).path.removeprefix(ARTIFACTS)] = self._body()
                rest.reply(self, {})

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def numbers(self, identity: str) -> list[tuple[str, int, float]]:
        """What the run with this identity holds, in the order in which it came."""
        (run,) = (run for run in self.runs.values() if run["tags"]["scena.run"] == identity and not run["deleted"])
        return [(each["key"], int(each["step"]), float(each["value"])) for each in run["metrics"]]

    def reply(self, handler: Any, content: Any, status: int = 200) -> None:
        body = json.dumps(content).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def answer(self, handler: Any, request: dict[str, Any]) -> None:
        self.headers.append(str(handler.headers.get("Authorization")))
        path = urlsplit(handler.path).path
        if path.startswith(ARTIFACTS):
            self.reply(handler, {"files": []})
            return
        what = path.removeprefix(API)
        fault = self.faults.pop(0) if what == "runs/log-batch" and request.get("metrics") and self.faults else ""
        if fault == "refuse":
            self.reply(handler, {"error_code": "TEMPORARILY_UNAVAILABLE", "message": "not now"}, 503)
            return
        if fault == "half":
            request["metrics"] = request["metrics"][: len(request["metrics"]) // 2]
        method = getattr(self, f"_{what.replace('/', '_').replace('-', '_')}", None)
        found = method(request) if method is not None else None
        if fault:
            handler.close_connection = True
            handler.connection.close()
        elif found is None:
            self.reply(handler, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"no {what}"}, 404)
        else:
            self.reply(handler, found)

    def _experiments_get_by_name(self, request: dict[str, Any]) -> Any:
        number = self.experiments.get(request["experiment_name"])
        if number is None:
            return None
        return {
            "experiment": {"experiment_id": number, "name": request["experiment_name"], "lifecycle_stage": "active"}
        }

    def _experiments_create(self, request: dict[str, Any]) -> Any:
        self.experiments[request["name"]] = str(len(self.experiments) + 1)
        return {"experiment_id": self.experiments[request["name"]]}

    def _runs_create(self, request: dict[str, Any]) -> Any:
        run_id = uuid.uuid4().hex
        tags = {tag["key"]: tag["value"] for tag in request.get("tags", [])}
        self.runs[run_id] = {
            "experiment": request["experiment_id"],
            "name": request.get("run_name", ""),
            "start": request.get("start_time", 0),
            "tags": tags,
            "params": {},
            "metrics": [],
            "status": "RUNNING",
            "deleted": False,
        }
        return {"run": self._shown(run_id)}

    def _runs_search(self, request: dict[str, Any]) -> Any:
        identity = request["filter"].rpartition(" = ")[2].strip("'")
        runs = [
            self._shown(run_id)
            for run_id, run in self.runs.items()
            if not run["deleted"]
            and run["experiment"] in request["experiment_ids"]
            and run["tags"].get("scena.run") == identity
        ]
        return {"runs": runs}

    def _runs_get(self, request: dict[str, Any]) -> Any:
        return {"run": self._shown(request["run_id"])}

    def _runs_delete(self, request: dict[str, Any]) -> Any:
        self.runs[request["run_id"]]["deleted"] = True
        return {}

    def _runs_update(self, request: dict[str, Any]) -> Any:
        self.runs[request["run_id"]]["status"] = request.get("status", "RUNNING")
        return {"run_info": self._shown(request["run_id"])["info"]}

    def _runs_set_tag(self, request: dict[str, Any]) -> Any:
        self.runs[request["run_id"]]["tags"][request["key"]] = request["value"]
        return {}

    def _runs_log_batch(self, request: dict[str, Any]) -> Any:
        run = self.runs[request["run_id"]]
        run["metrics"] += request.get("metrics", [])
        run["params"] |= {param["key"]: param["value"] for param in request.get("params", [])}
        run["tags"] |= {tag["key"]: tag["value"] for tag in request.get("tags", [])}
        return {}

    def _metrics_get_history(self, request: dict[str, Any]) -> Any:
        metrics = self.runs[request["run_id"]]["metrics"]
        return {"metrics": [metric for metric in metrics if metric["key"] == request["metric_key"]]}

    def _shown(self, run_id: str) -> dict[str, Any]:
        run = self.runs[run_id]
        latest = {metric["key"]: metric for metric in run["metrics"]}
        pairs = [[{"key": k, "value": v} for k, v in run[part].items()] for part in ("params", "tags")]
        return {
            "info": {
                "run_id": run_id,
                "run_uuid": run_id,
                "run_name": run["name"],
                "experiment_id": run["experiment"],
                "status": run["status"],
                "start_time": run["start"],
                "artifact_uri": f"mlflow-artifacts:/{run_id}",
                "lifecycle_stage": "active",
            },
            "data": {"metrics": list(latest.values()), "params": pairs[0], "tags": pairs[1]},
        }
