"""The bundled sample: short English passages with German, UD trees and coreference; no torch.

>>> from headcount.bundle import sample
>>> sample.sentences()[0]
'The old kettle had been whistling for a whole minute before anyone noticed it.'
>>> sample.pairs()[3][1]
'Ihr Bruder beantwortet solche Fragen nie vor dem Frühstück.'
"""

from typing import TYPE_CHECKING

from headcount.doors import open_door

if TYPE_CHECKING:
    from headcount.bundle.sample.read import FILES, pairs, path, sentences

open_door(__name__)
