"""Pictures to classify."""

from scena.data.errors import DataError
from scena.data.generator import RandomAccessGenerator
from scena.data.sample import Sample
from scena.scenario.classification.params import PictureFilesParams


class PictureFiles(RandomAccessGenerator[PictureFilesParams]):
    """Reads picture files; a processor decodes them."""

    def __len__(self) -> int:
        return len(self.params.image_files)

    def __getitem__(self, index: int) -> Sample:
        path = self.params.image_files[index]
        try:
            return Sample(inputs={"image": path.read_bytes()}, meta={"name": str(path)})
        except OSError as error:
            raise DataError(f"Cannot read the picture {path}: {error.strerror}.") from error
