"""The public names of `scena.model.metric_learning`; each is imported when it is first used."""

from scena.model.metric_learning.heads import ArcFace as ArcFace
from scena.model.metric_learning.heads import CenterLoss as CenterLoss
from scena.model.metric_learning.heads import CombinedMargin as CombinedMargin
from scena.model.metric_learning.heads import CosFace as CosFace
from scena.model.metric_learning.heads import MarginHead as MarginHead
from scena.model.metric_learning.heads import Softmax as Softmax
from scena.model.metric_learning.heads import SphereFace as SphereFace
from scena.model.metric_learning.heads import create_center_loss as create_center_loss
from scena.model.metric_learning.heads import create_head as create_head
from scena.model.metric_learning.measures import EmbeddingAccuracy as EmbeddingAccuracy
from scena.model.metric_learning.measures import PixelwiseBinaryCrossentropy as PixelwiseBinaryCrossentropy
from scena.model.metric_learning.measures import balanced_weights as balanced_weights
from scena.model.metric_learning.measures import nearest_is_same as nearest_is_same
from scena.model.metric_learning.measures import normalised as normalised
from scena.model.metric_learning.params import ArcFaceParams as ArcFaceParams
from scena.model.metric_learning.params import CombinedMarginParams as CombinedMarginParams
from scena.model.metric_learning.params import CosFaceParams as CosFaceParams
from scena.model.metric_learning.params import HeadParams as HeadParams
from scena.model.metric_learning.params import SoftmaxCenterParams as SoftmaxCenterParams
from scena.model.metric_learning.params import SoftmaxParams as SoftmaxParams
from scena.model.metric_learning.params import SphereFaceParams as SphereFaceParams
from scena.model.metric_learning.verification import ErrorRates as ErrorRates
from scena.model.metric_learning.verification import error_rates as error_rates
from scena.model.metric_learning.verification import pair_scores as pair_scores
