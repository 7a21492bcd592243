"""Refusals of staged creation or sort orders."""

from __future__ import annotations

import pytest
import requests
from pyiceberg.exceptions import (
    BadRequestError,
    CommitStateUnknownException,
    RESTError,
    ServerError,
    ServiceUnavailableError,
)

from catalog.iceberg.table_creation import refuses_order, refuses_staging


def answered(error: RESTError, status: int) -> RESTError:
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


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, BadRequestError("Source field with ID 11 for sort order with ID 1 does not exist")),  # Nessie 0.99.0
        (400, BadRequestError("Malformed request")),
        (422, RESTError("unprocessable")),
        (500, CommitStateUnknownException("ValidationException: Cannot find source column for sort field")),
        (501, RESTError("SortOrder is not implemented")),
    ],
)
def test_refused_orders(status: int, error: RESTError) -> None:
    assert refuses_order(answered(error, status))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, CommitStateUnknownException("no answer from the database")),  # apache/polaris#5145
        (403, RESTError("not yours")),
        (409, RESTError("Table already exists")),
        (500, CommitStateUnknownException("NullPointerException")),
    ],
)
def test_no_refused_orders(status: int, error: RESTError) -> None:
    assert not refuses_order(answered(error, status))
