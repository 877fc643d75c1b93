"""The errors Collegium raises for its users' mistakes: each message names what is wrong, where, and what to do."""


class CollegiumError(Exception):
    """Any mistake Collegium noticed. Catch this one to catch them all."""


class GraphError(CollegiumError, ValueError):
    """A network that cannot be built or is not strongly connected."""


class PolicyError(CollegiumError, ValueError):
    """A matrix that is not a combination policy, or a policy that does not fit the scores."""


class ScoreError(CollegiumError, ValueError):
    """Scores that are not finite numbers of shape (items, agents), or lie outside a quantiser's range."""


class LabelError(CollegiumError, ValueError):
    """Labels that are not of two classes or do not match the items."""


class RuleError(CollegiumError, ValueError):
    """A rule with impossible settings, or a number of rounds that cannot be run."""


class AssumptionError(CollegiumError, ValueError):
    """A guarantee was asked for where one of its assumptions does not hold."""


class CheckError(CollegiumError, AssertionError):
    """A conformance check of `collegium.checks` failed."""


class InputFileError(CollegiumError, ValueError):
    """A file that is missing, foreign, damaged or in the wrong form."""


class BackendError(CollegiumError, ImportError):
    """Something needs an optional package that is not installed."""


class DataError(CollegiumError, ValueError):
    """Views that do not belong together, or a data set that is not where it was looked for."""


class ModelError(CollegiumError, ValueError):
    """A model that cannot be fitted, does not give one number per item, or cannot be saved."""


class LiveError(CollegiumError, RuntimeError):
    """A live network that cannot be set up, joined or reached."""


def brief(problem: object) -> str:
    """Another library's message in one line, cut to 300 characters.

    >>> brief(ValueError("bad\\n   input")), brief(KeyError("weights"))
    ('bad input', "KeyError: 'weights'")
    """
    text = " ".join(str(problem).removeprefix("[ONNXRuntimeError] : ").split())
    if isinstance(problem, KeyError) or not text:  # says little without its name
        text = f"{type(problem).__name__}: {text}".removesuffix(": ")
    return text if len(text) <= 300 else f"{text[:300]} …"
