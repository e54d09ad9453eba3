"""Lines between the processes of a cluster may arrive in pieces, and what follows them belongs to others."""

import socket
import threading
import time

import pytest

from scena.backends.cluster import receive_line


@pytest.mark.parametrize("pieces", [[b"scena 12\n"], [b"s", b"cena", b" 12", b"\n"], [b"scena 12\nmore"]])
def test_a_line_in_pieces(pieces: list[bytes]) -> None:
    ours, theirs = socket.socketpair()

    def send() -> None:
        for piece in pieces:
            theirs.sendall(piece)
            time.sleep(0.005)

    ours.settimeout(60)
    sending = threading.Thread(target=send)
    sending.start()
    assert receive_line(ours, 32) == b"scena 12\n"
    sending.join()
    theirs.close()
    assert ours.recv(32) == (b"more" if len(pieces[0]) > 9 else b"")
    ours.close()


def test_a_line_that_is_too_long_or_ends_early() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"x" * 40)
    assert receive_line(ours, 32) == b"x" * 32
    theirs.close()
    assert receive_line(ours, 32) == b"x" * 8
    ours.close()
