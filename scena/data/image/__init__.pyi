"""The public names of `scena.data.image`; each is imported when it is first used."""

from scena.data.image.augment.operations import Operation as Operation
from scena.data.image.database import ImageData as ImageData
from scena.data.image.listing import images_in_tree as images_in_tree
from scena.data.image.params import AugmentParams as AugmentParams
from scena.data.image.params import CentralCropParams as CentralCropParams
from scena.data.image.params import ColorJitterParams as ColorJitterParams
from scena.data.image.params import CutoutParams as CutoutParams
from scena.data.image.params import DecodeImageParams as DecodeImageParams
from scena.data.image.params import ImageDataParams as ImageDataParams
from scena.data.image.params import ImagePipelineParams as ImagePipelineParams
from scena.data.image.params import NormalizeParams as NormalizeParams
from scena.data.image.params import OperationParams as OperationParams
from scena.data.image.params import PadParams as PadParams
from scena.data.image.params import RandomCropParams as RandomCropParams
from scena.data.image.params import RandomCropThenResizeParams as RandomCropThenResizeParams
from scena.data.image.params import RandomHorizontalFlipParams as RandomHorizontalFlipParams
from scena.data.image.params import RandomRotate90Params as RandomRotate90Params
from scena.data.image.params import RandomRotateParams as RandomRotateParams
from scena.data.image.params import RandomVerticalFlipParams as RandomVerticalFlipParams
from scena.data.image.params import ResizeParams as ResizeParams
from scena.data.image.params import ResizeThenRandomCropParams as ResizeThenRandomCropParams
from scena.data.image.params import TranslateParams as TranslateParams
