"""The public names of `scena.model.layers`; each is imported when it is first used."""

from scena.model.layers.algebra import ALGEBRAS as ALGEBRAS
from scena.model.layers.algebra import Algebra as Algebra
from scena.model.layers.algebra import get_algebra as get_algebra
from scena.model.layers.algebra import multiply_blades as multiply_blades
from scena.model.layers.algebra_conversion import IntoAlgebra as IntoAlgebra
from scena.model.layers.algebra_conversion import OutOfAlgebra as OutOfAlgebra
from scena.model.layers.componentwise import AlgebraConcatenate as AlgebraConcatenate
from scena.model.layers.componentwise import AlgebraDropout as AlgebraDropout
from scena.model.layers.componentwise import AlgebraFlatten as AlgebraFlatten
from scena.model.layers.componentwise import AlgebraPadChannels as AlgebraPadChannels
from scena.model.layers.convolution import AlgebraConv2D as AlgebraConv2D
from scena.model.layers.convolution import AlgebraConv2DTranspose as AlgebraConv2DTranspose
from scena.model.layers.convolution import AlgebraDepthwiseConv2D as AlgebraDepthwiseConv2D
from scena.model.layers.convolution import AlgebraSeparableConv2D as AlgebraSeparableConv2D
from scena.model.layers.linear import AlgebraDense as AlgebraDense
from scena.model.layers.linear import AlgebraInitializer as AlgebraInitializer
from scena.model.layers.normalization import WhiteningBatchNormalization as WhiteningBatchNormalization
from scena.model.layers.portable import PortableConv2D as PortableConv2D
from scena.model.layers.portable import Transpose as Transpose
