"""Who may use a service: bearer tokens, and the certificate of HTTPS."""

import hmac
import os
import ssl
from collections.abc import Iterable
from pathlib import Path

from scena.errors import ScenaError
from scena.prediction.params import ServeParams

VARIABLE = "SCENA_SERVE_TOKEN"
OPEN = "/health"
"""The path that needs no token: whoever starts services asks it."""


def read_tokens(params: ServeParams) -> list[bytes]:
    """The tokens that are accepted; without any, everybody is.

    Raises:
        ScenaError: the file cannot be read, or has no token.
    """
    if params.token_file is None:
        token = os.environ.get(VARIABLE, "").strip()
        return [token.encode()] if token else []
    try:
        lines = params.token_file.read_text().splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ScenaError(f"Cannot read --token_file {params.token_file}: {reason}.") from error
    tokens = [line.strip().encode() for line in lines if line.strip()]
    if not tokens:
        raise ScenaError(f"--token_file {params.token_file} has no token; write one in a line.")
    return tokens


def is_allowed(tokens: list[bytes], headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a request has one of the tokens. The time it takes does not tell how much of a token is right."""
    given = next((value for name, value in headers if name == b"authorization"), b"")
    scheme, _, token = given.partition(b" ")
    matches = [hmac.compare_digest(token.strip(), known) for known in tokens]
    return scheme.lower() == b"bearer" and any(matches)


def check_certificate(cert: Path | None, key: Path | None) -> None:
    """Finds wrong files before the model is loaded.

    Raises:
        ScenaError: one cannot be read, or they do not belong together.
    """
    if cert is None:
        if key is not None:
            raise ScenaError("--tls_key needs --tls_cert, the certificate that it belongs to.")
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        both = f"--tls_cert {cert}" + (f" with --tls_key {key}" if key is not None else "")
        reason = "there is no certificate with its key in PEM form" if "PEM" in str(error) else error.strerror or error
        raise ScenaError(f"Cannot use {both}: {reason}.") from error
