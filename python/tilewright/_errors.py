"""The exceptions. Their texts are those of the command line."""


class Error(Exception):
    """What every exception of this package is."""


class InputError(Error, ValueError):
    """An argument or an array that a call does not take."""


class ArtifactError(Error):
    """A file that is no artifact, is damaged, or is for other hardware or another version."""


class ModelError(Error):
    """A model that cannot be imported or compiled."""


class ConfigError(Error, ValueError):
    """A hardware configuration that is not valid. The text lists everything that is wrong."""


class DeviceError(Error):
    """A device that is not there or fails."""


class BusyError(Error):
    """A session that another thread runs."""


class ClosedError(Error, ValueError):
    """A session or a connection that was closed."""


class NotFoundError(Error, LookupError):
    """A name that nothing has."""


class CallError(Error):
    """A function or step that failed. ``__cause__`` is the exception of a function in Python."""


class GraphError(Error, ValueError):
    """A graph that is not valid. The text lists everything that is wrong."""


class PassError(ModelError):
    """A pass that raised or returned an invalid graph. ``__cause__`` is what a pass in Python raised."""
