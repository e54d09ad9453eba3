"""Concurrent HTTP clients that cost little themselves: `python -m benchmarks.load HOST PORT PATH CLIENTS SECONDS FILE CONTENT_TYPE`.

Each client sends the file, waits for the answer, and sends it again. Prints JSON: requests, failures, seconds and latencies.
"""

import asyncio
import json
import sys
import time
from pathlib import Path


class Client(asyncio.Protocol):
    """One connection that asks again and again until the time is up."""

    def __init__(self, request: bytes, until: float, done: "asyncio.Future[None]") -> None:
        self.request = request
        self.until = until
        self.done = done
        self.times: list[float] = []
        self.statuses: dict[str, int] = {}
        self._buffer = b""
        self._started = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the first request."""
        self.transport = transport
        self._ask()

    def _ask(self) -> None:
        self._started = time.perf_counter()
        self.transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Collects an answer; asks again once it is complete."""
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        if len(body) < length:
            return
        self.times.append(time.perf_counter() - self._started)
        status = head[9:12].decode()
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self._buffer = b""
        if time.perf_counter() < self.until:
            self._ask()
        elif not self.done.done():
            self.done.set_result(None)
            self.transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """A connection that ends too early is a lost request."""
        if not self.done.done():
            self.statuses["lost"] = self.statuses.get("lost", 0) + 1
            self.done.set_result(None)


async def load(
    host: str, port: int, path: str, clients: int, seconds: float, body: bytes, kind: str
) -> dict[str, object]:
    """Runs the clients and returns what they saw."""
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    running: list[Client] = []
    for _ in range(clients):
        client = Client(head.encode() + body, started + seconds, loop.create_future())
        await loop.create_connection(lambda client=client: client, host, port)  # type: ignore[misc]
        running.append(client)
    await asyncio.gather(*(client.done for client in running))
    spent = time.perf_counter() - started
    statuses: dict[str, int] = {}
    for client in running:
        for status, count in client.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    times = sorted(t for client in running for t in client.times)
    return {
        "requests": len(times),
        "statuses": statuses,
        "per_second": len(times) / spent,
        "median_ms": 1000 * times[len(times) // 2],
        "p99_ms": 1000 * times[int(len(times) * 0.99)],
    }


if __name__ == "__main__":
    host, port, path, clients, seconds, file, kind = sys.argv[1:]
    body = Path(file).read_bytes()
    print(json.dumps(asyncio.run(load(host, int(port), path, int(clients), float(seconds), body, kind))))
