"""Addresses that only TensorFlow opens, as a file system of fsspec. TensorFlow is loaded when one is used."""

import io
from typing import Any


def register_protocol(protocol: str) -> bool:
    """Makes fsspec open `protocol` through TensorFlow; False if TensorFlow does not know it either."""
    try:
        import tensorflow as tf
    except ImportError:
        return False
    if protocol not in tf.io.gfile.get_registered_schemes():
        return False
    import fsspec
    from upath import UPath
    from upath.registry import register_implementation

    class TensorFlowFiles(fsspec.AbstractFileSystem):
        """Files through `tf.io.gfile`."""

        cachable = False

        @classmethod
        def _strip_protocol(cls, path: Any) -> Any:
            if isinstance(path, list):
                return [cls._strip_protocol(one) for one in path]
            return str(path).removeprefix(f"{protocol}://").rstrip("/")

        def _at(self, path: str) -> str:
            return f"{protocol}://{self._strip_protocol(path)}"

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            del options
            try:
                found = tf.io.gfile.stat(self._at(path))
            except tf.errors.OpError:
                raise FileNotFoundError(self._at(path)) from None
            kind = "directory" if found.is_directory else "file"
            return {"name": self._strip_protocol(path), "size": found.length, "type": kind, "mtime": found.mtime_nsec}

        def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
            del options
            base = self._strip_protocol(path)
            if self.info(base)["type"] == "file":
                return [self.info(base)] if detail else [base]
            names = [f"{base}/{name.rstrip('/')}" for name in tf.io.gfile.listdir(self._at(path)) if name.rstrip("/")]
            return [self.info(name) for name in names] if detail else names

        def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
            del create_parents, options
            tf.io.gfile.makedirs(self._at(path))

        def makedirs(self, path: str, exist_ok: bool = False) -> None:
            del exist_ok
            tf.io.gfile.makedirs(self._at(path))

        def rm_file(self, path: str) -> None:
            tf.io.gfile.remove(self._at(path))

        def mv(self, path1: str, path2: str, **options: Any) -> None:
            del options
            tf.io.gfile.rename(self._at(path1), self._at(path2), overwrite=True)

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            del options
            file = OpenFile(tf.io.gfile.GFile(self._at(path), mode), mode)
            return io.BufferedReader(file) if "r" in mode else io.BufferedWriter(file)

    TensorFlowFiles.protocol = protocol
    fsspec.register_implementation(protocol, TensorFlowFiles, clobber=True)

    class TensorFlowPath(UPath):
        """A path whose file system is TensorFlow's."""

        __slots__ = ()

    register_implementation(protocol, TensorFlowPath, clobber=True)
    return True


class OpenFile(io.RawIOBase):
    """A file of `tf.io.gfile` with the methods of Python's files."""

    def __init__(self, file: Any, mode: str) -> None:
        self._file = file
        self._reads = "r" in mode

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return not self._reads

    def seekable(self) -> bool:
        return self._reads

    def readinto(self, buffer: Any) -> int:
        """Fills `buffer` as far as the file goes."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, data: Any) -> int:
        """Appends to the file."""
        self._file.write(bytes(data))
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._file.tell(), io.SEEK_END: self._file.size()}[whence]
        self._file.seek(base + offset)
        return int(base + offset)

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
