"""Answers by which catalogs refuse staged creation, and answers that mean something else."""

from __future__ import annotations

import pytest
import requests
from pyiceberg.exceptions import BadRequestError, RESTError, ServerError, ServiceUnavailableError

from catalog.iceberg.table_creation import refuses_staging


def answered(error: RESTError, status: int) -> RESTError:
    """The error as pyiceberg raises it for this status."""
    response = requests.Response()
    response.status_code = status
    error.__cause__ = requests.HTTPError(response=response)
    return error


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadRequestError("Stage create is not supported")),
        (406, RESTError("UnsupportedOperationException")),
        (501, RESTError("NotImplementedException")),
        (500, ServerError("UnsupportedOperationException: Staged create is not supported")),
        (500, ServerError("NotImplementedError: stage-create")),
        (503, ServiceUnavailableError("stage-create is not implemented by this catalog")),
    ],
)
def test_refusals(status: int, error: RESTError) -> None:
    assert refuses_staging(answered(error, status))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, ServerError("NullPointerException")),
        (503, ServiceUnavailableError("try again")),
        (403, RESTError("not supported for you")),
        (409, RESTError("Table already exists")),
    ],
)
def test_other_answers(status: int, error: RESTError) -> None:
    assert not refuses_staging(answered(error, status))
    assert not refuses_staging(RESTError("without an answer"))
