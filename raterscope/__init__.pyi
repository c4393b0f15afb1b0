from raterscope.app.library import ClickResult as ClickResult
from raterscope.app.library import DataError as DataError
from raterscope.app.library import Figure as Figure
from raterscope.app.library import LabelResult as LabelResult
from raterscope.app.library import Labels as Labels
from raterscope.app.library import MaskResult as MaskResult
from raterscope.app.library import OpenReading as OpenReading
from raterscope.app.library import OpenStudy as OpenStudy
from raterscope.app.library import PairResult as PairResult
from raterscope.app.library import Pairs as Pairs
from raterscope.app.library import ReadingTask as ReadingTask
from raterscope.app.library import Result as Result
from raterscope.app.library import fuse_clicks as fuse_clicks
from raterscope.app.library import fuse_labels as fuse_labels
from raterscope.app.library import fuse_masks as fuse_masks
from raterscope.app.library import fuse_pairs as fuse_pairs
from raterscope.app.library import open_reading as open_reading
from raterscope.app.library import open_study as open_study

__version__: str
