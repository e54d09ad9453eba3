"""Plain FastAPI, one request at a time: `python fastapi_app.py MODEL PORT`."""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from model import decode, encode, open_model

predict = open_model(sys.argv[1])
app = FastAPI()


@app.post("/predict")
def answer(body: dict[str, Any]) -> dict[str, Any]:
    """Predicts in a thread of FastAPI's pool."""
    return encode(predict(decode(body["instances"][0])[None]))


@app.get("/health")
def health() -> str:
    return "ok"


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False)
